import { type Hex, isHex } from 'viem';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { CLIENT_LIBRARIES, type ClientLibrary } from '../support/client-libraries.ts';
import { ClientStage, DEPLOYMENT } from '../support/client-stage.ts';
import { fundingOf, routeOf } from '../support/portal-funding.ts';
import { usdcOn } from '../support/sandbox-order.ts';
import { refusalOf } from '../support/service-client.ts';

/*
 * A client that prices transfers, as applications do it: fetch, JSON and a library for what is signed or encoded. The
 * bodies are those that clients of deployments send.
 */

const stage = new ClientStage(['--seed', '7']);

const SOLANA = 1399811149;
const SOLANA_WALLETS = {
  funder: '7v91N7iZ9mNicL8WfG6cgSCKyRXydQjLh6UYBWwm6y1Q',
  refunds: '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T',
};
const EVM_REFUNDS = '0x2222222222222222222222222222222222222222';
const AMOUNT = '25000000';

const chainsSchema = z.object({ chains: z.array(z.object({ chainId: z.int(), quoteSigner: z.string() })) });

const hex = z.custom<Hex>((value) => isHex(value));

const signedSchema = z.object({
  id: z.string().startsWith('quote:'),
  signature: hex,
  expiresAt: z.int(),
  intentHash: hex,
  source: z.looseObject({ chainId: z.int() }),
  destination: z.looseObject({ amountOut: z.string(), minAmountOut: z.string() }),
  steps: z.array(z.object({ intents: z.array(z.object({ intentHash: hex })) })),
  execution: z.looseObject({
    transaction: z.discriminatedUnion('type', [
      z.object({ type: z.literal('evm'), chainId: z.int(), to: hex, data: hex, value: z.string() }),
      z.object({
        type: z.literal('svm'),
        chainId: z.int(),
        feePayer: z.string(),
        instructions: z.array(z.unknown()),
      }),
    ]),
  }),
});

const quoteSchema = signedSchema.extend({ quotes: z.array(signedSchema).nullable() });

type Signed = z.infer<typeof signedSchema>;

const openQuoteSchema = z.object({
  quoteResponse: z.looseObject({
    encodedRoute: hex,
    sourceAmount: z.string(),
    destinationAmount: z.string(),
  }),
});
const openListSchema = z.object({ data: z.array(z.object({ quoteData: openQuoteSchema })).min(1) });
const singleSchema = z.object({ data: openQuoteSchema });

type OpenQuote = z.infer<typeof openQuoteSchema>;

/** The address that signed a quote, for the chain that it names or for another. */
function signerOf(
  library: ClientLibrary,
  { id, signature, expiresAt, ...quote }: Signed,
  chainId: number = quote.source.chainId,
): Promise<string> {
  const named = [quote, ...quote.steps.flatMap(({ intents }) => intents)];
  const intentHashes = [...new Set(named.map(({ intentHash }) => intentHash.toLowerCase()))].toSorted();
  const types = {
    Quote: [
      { name: 'id', type: 'string' },
      { name: 'intentHashes', type: 'bytes32[]' },
      { name: 'expiresAt', type: 'uint64' },
    ],
  };
  const domain = { name: DEPLOYMENT.quoteDomain, version: '1', chainId };
  const message = { id, intentHashes, expiresAt: BigInt(expiresAt) };
  return library.recover({ domain, types, primaryType: 'Quote', message }, signature);
}

async function publishedSigner(chainId: number): Promise<string> {
  const { chains } = chainsSchema.parse(await stage.client().v1('/chains'));
  const signer = chains.find((chain) => chain.chainId === chainId)?.quoteSigner;
  if (signer === undefined) throw new Error(`no signer is published for chain ${chainId}`);
  return signer;
}

type Ends = { from: number; to: number; funder: string; recipient: string };

/** A transfer of USDC, as a body of `POST /v1/quotes`. */
function exactIn({ from, to, funder, recipient }: Ends) {
  return {
    type: 'exact-in',
    dappId: 'acme-app',
    source: { chainId: from, token: usdcOn(from), funder, amount: AMOUNT },
    destination: { chainId: to, token: usdcOn(to), recipient },
  };
}

/** The same as a body of the open quoting service, with the amount that an endpoint fixes. */
function openBody({ from, to, funder, recipient }: Ends, more: object = { sourceAmount: AMOUNT }) {
  return {
    dAppID: 'acme-app',
    intentExecutionTypes: ['SELF_PUBLISH'],
    quoteRequest: {
      sourceChainID: from,
      destinationChainID: to,
      sourceToken: usdcOn(from),
      destinationToken: usdcOn(to),
      funder,
      recipient,
      ...more,
    },
  };
}

async function requestQuote(body: unknown): Promise<z.infer<typeof quoteSchema>> {
  return quoteSchema.parse(await stage.client().v1('/quotes', body));
}

describe.each(CLIENT_LIBRARIES)('a client with %s', (_name, library) => {
  const anyone = (): Hex => stage.wallet(library, 8453).address;

  test.each([
    ['without a refund recipient', {}],
    ['with a refund recipient', { refundRecipient: EVM_REFUNDS }],
  ])('prices a transfer between EVM chains %s, and its bytes do what was requested', async (_case, extra) => {
    const [funder, recipient] = [anyone(), anyone()];
    const request = { ...exactIn({ from: 8453, to: 10, funder, recipient }), ...extra };
    const quote = await requestQuote(request);
    expect(quote.quotes).toBe(null);
    expect(quote.source).toMatchObject(request.source);
    expect(quote.destination).toMatchObject(request.destination);
    expect(await signerOf(library, quote)).toBe(await publishedSigner(8453));

    const { transaction } = quote.execution;
    if (transaction.type !== 'evm') throw new Error(`found a transaction of ${transaction.type}`);
    expect(transaction).toMatchObject({ chainId: 8453, value: '0' });
    const funding = fundingOf(library, transaction.data);
    const { amountOut } = quote.destination;
    expect(funding).toMatchObject({
      intentHash: quote.intentHash,
      destination: 10n,
      reward: {
        creator: 'refundRecipient' in extra ? extra.refundRecipient : funder,
        tokens: [[usdcOn(8453), BigInt(AMOUNT)]],
      },
      route: {
        tokens: [[usdcOn(10), BigInt(amountOut)]],
        pays: [{ token: usdcOn(10), recipient, amount: BigInt(amountOut) }],
      },
    });
    expect(funding.route.deadline).toBeGreaterThan(quote.expiresAt);
    expect(funding.reward.deadline).toBeGreaterThan(funding.route.deadline);
  });

  test.each([
    ['without a refund recipient', {}],
    ['with a refund recipient', { refundRecipient: SOLANA_WALLETS.refunds }],
  ])('prices a transfer from Solana %s', async (_case, extra) => {
    const { funder } = SOLANA_WALLETS;
    const request = { ...exactIn({ from: SOLANA, to: 8453, funder, recipient: anyone() }), ...extra };
    const quote = await requestQuote(request);
    expect(quote.execution).toMatchObject({
      transaction: { type: 'svm', chainId: SOLANA, feePayer: funder },
      vault: null,
    });
    expect(await signerOf(library, quote)).toBe(await publishedSigner(SOLANA));
    expect(await signerOf(library, quote, 8453)).not.toBe(await publishedSigner(SOLANA));
  });

  test('prices a transfer to Solana', async () => {
    const { funder: recipient } = SOLANA_WALLETS;
    const quote = await requestQuote(exactIn({ from: 8453, to: SOLANA, funder: anyone(), recipient }));
    expect(quote.destination).toMatchObject({ chainId: SOLANA, recipient });
    expect(await signerOf(library, quote)).toBe(await publishedSigner(8453));
  });

  test('gets the quote of each solver, the best first, each with a signature of its own', async () => {
    const request = exactIn({ from: 8453, to: 10, funder: anyone(), recipient: anyone() });
    const { quotes, ...best } = await requestQuote({ ...request, options: { allQuotes: true } });
    const all = quotes ?? [];
    expect(all.length).toBeGreaterThan(1);
    expect(all[0]).toEqual(best);
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    const outputs = all.map(({ destination }) => Number(destination.amountOut));
    expect(outputs).toEqual(outputs.toSorted((a, b) => b - a));
    const signer = await publishedSigner(8453);
    for (const quote of all) expect(await signerOf(library, quote)).toBe(signer);
  });

  /** Compares an open quote with its request, and the bytes of its route with both. */
  function expectQuoted({ quoteResponse }: OpenQuote, { quoteRequest }: ReturnType<typeof openBody>): void {
    const { encodedRoute, ...stated } = quoteResponse;
    const { funder, recipient } = quoteRequest;
    expect(stated).toMatchObject({ refundRecipient: funder, ...quoteRequest });
    const amount = BigInt(stated.destinationAmount);
    expect(routeOf(library, encodedRoute)).toMatchObject({
      tokens: [[usdcOn(10), amount]],
      pays: [{ token: usdcOn(10), recipient, amount }],
    });
    expect(BigInt(stated.sourceAmount)).toBeGreaterThan(amount);
  }

  test.each([
    ['exactIn', {}],
    ['exactIn', { refundRecipient: EVM_REFUNDS }],
    ['exactOut', {}],
    ['exactOut', { refundRecipient: EVM_REFUNDS }],
  ])('gets open quotes by %s with %j, whose routes pay what they state', async (path, refunds) => {
    const fixed = path === 'exactIn' ? { sourceAmount: AMOUNT } : { destinationAmount: AMOUNT };
    const ends = { from: 8453, to: 10, funder: anyone(), recipient: anyone() };
    const request = openBody(ends, { ...fixed, ...refunds });
    const { data } = openListSchema.parse(await stage.client().open(`/quotes/${path}`, request));
    for (const { quoteData } of data) expectQuoted(quoteData, request);
  });

  test('gets the best open quote by single', async () => {
    const request = openBody({ from: 8453, to: 10, funder: anyone(), recipient: anyone() });
    const client = stage.client();
    const single = singleSchema.parse(await client.open('/quotes/single', request)).data;
    expectQuoted(single, request);
    const { data } = openListSchema.parse(await client.open('/quotes/exactIn', request));
    const outputs = data.map(({ quoteData }) => quoteData.quoteResponse.destinationAmount);
    expect(single.quoteResponse.destinationAmount).toBe(outputs[0]);
  });

  test('gets no open quote where no solver quotes, which is no error of a list', async () => {
    const ends = { from: 8453, to: 10, funder: anyone(), recipient: anyone() };
    const request = openBody(ends, { sourceAmount: '1' });
    const client = stage.client();
    expect(await client.open('/quotes/exactIn', request)).toEqual({ data: [] });
    expect(await refusalOf(client.open('/quotes/single', request))).toMatchObject({ status: 404 });
  });

  test('reads why a request was refused', async () => {
    const client = stage.client();
    const request = exactIn({ from: 8453, to: 10, funder: anyone(), recipient: anyone() });
    const { source, destination } = request;
    const refused = (body: unknown) => refusalOf(client.v1('/quotes', body));
    expect(await refused({ ...request, slippage: 5 })).toMatchObject({
      status: 400,
      message: expect.stringContaining('not a percent'),
    });
    expect(await refused({ ...request, swapType: 'exact-in' })).toMatchObject({
      status: 400,
      message: expect.stringContaining('swapType'),
    });
    expect(await refused({ ...request, source: { ...source, amount: '1' } })).toMatchObject({
      status: 422,
      message: expect.stringContaining('at least'),
    });
    expect(await refused({ ...request, destination: { ...destination, chainId: 999 } })).toMatchObject({
      status: 422,
      message: expect.stringContaining('999'),
    });
    expect(await refusalOf(stage.client(null).v1('/quotes', request))).toMatchObject({
      status: 403,
      message: expect.stringContaining('not authorized'),
    });
    expect(await refusalOf(stage.client('another-key').v1('/quotes', request))).toMatchObject({
      status: 401,
      message: expect.stringContaining('API key'),
    });
    const open = openBody({ from: 8453, to: 10, funder: anyone(), recipient: anyone() });
    expect(await refusalOf(client.open('/quotes/exactIn', { ...open, dAppID: 'not a name' }))).toMatchObject({
      status: 400,
      message: expect.stringContaining('dAppID'),
    });
  });
});
