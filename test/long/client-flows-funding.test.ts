import { type Hex, isHex, toHex } from 'viem';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { CLIENT_LIBRARIES, type ClientWallet } from '../support/client-libraries.ts';
import { ClientStage } from '../support/client-stage.ts';
import { eventually } from '../support/eventually.ts';
import { fundingOf, PUBLISH_AND_FUND } from '../support/portal-funding.ts';
import { usdcOn } from '../support/sandbox-order.ts';
import { type Generation, refusalOf, VAULT_PATHS } from '../support/service-client.ts';

/*
 * A client that funds transfers and follows them, as applications do it: a wallet of its library on the chain's JSON-RPC,
 * and polls until the transfer has ended. The bodies are those that clients of deployments send.
 */

const FLAGS = ['--seed', '11', '--time-scale', '10', '--faucet'];
const stage = new ClientStage(FLAGS);

const FROM = 8453;
const TO = 10;
const AMOUNT = 25_000_000n;
const USDC: Hex = hexOf(usdcOn(FROM));
const HOUR_SECONDS = 3_600;

const hex = z.custom<Hex>((value) => isHex(value));

const quoteSchema = z.object({
  id: z.string(),
  intentHash: hex,
  destination: z.object({ amountOut: z.string() }),
  execution: z.object({ transaction: z.object({ to: hex, data: hex, value: z.string() }) }),
});

const openQuoteSchema = z.object({
  data: z.object({
    contracts: z.object({ sourcePortal: hex, prover: hex }),
    quoteResponse: z.object({ encodedRoute: hex, deadline: z.int(), destinationAmount: z.string() }),
  }),
});

const hashed = z.object({ txHash: hex });
const statusSchema = z.object({
  results: z.array(
    z.object({ status: z.string(), sourceTx: hashed.optional(), destinationTx: hashed.optional() }),
  ),
});

const openTx = z.object({ transactionHash: hex }).nullable();
const openStatus = z.object({
  status: z.partialRecord(z.enum(['Pending', 'Completed']), z.string()),
  intentCreated: openTx,
  fulfillment: openTx,
  refund: openTx,
});
const openStatusSchema = z.object({ data: openStatus });

const vaultSchema = z.object({
  data: z.object({ vaultAddress: hex, amount: z.string(), deadline: z.int() }),
});
const vaultStateSchema = z.object({
  data: z.object({ state: z.string(), intentHash: hex.optional(), sourceChainId: z.int() }),
});
const jobSchema = z.object({
  data: z.object({
    id: z.string(),
    status: z.string(),
    intentHash: hex.optional(),
    error: z.string().optional(),
  }),
});

function hexOf(text: string): Hex {
  if (!isHex(text)) throw new Error(`found ${text}, expected hex`);
  return text;
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1_000);
}

/** Polls the status of an intent with the key, until it is one of these. */
function statusBecomes(intentHash: Hex, ...expected: string[]) {
  return eventually(`intent ${intentHash} is ${expected.join(' or ')}`, async () => {
    const answer = await stage.client().v1(`/intents/status?intentHash=${intentHash}`);
    const [record] = statusSchema.parse(answer).results;
    return record !== undefined && expected.includes(record.status) && record;
  });
}

/** Polls the same without a key. Returns the sub-statuses in the order in which they came, and the last answer. */
async function openStatusBecomes(at: ClientStage, { intentHash, word }: { intentHash: Hex; word: string }) {
  const seen: string[] = [];
  const last = await eventually(`intent ${intentHash} is ${word}`, async () => {
    const answer = await at.client(null).open('/intents/intentStatus', { intentHash });
    const { data } = openStatusSchema.parse(answer);
    const [found = ''] = Object.values(data.status);
    if (!seen.includes(found)) seen.push(found);
    return found === word && data;
  });
  return { seen, last };
}

async function balanceOf(wallet: ClientWallet, owner: Hex): Promise<unknown> {
  const token = hexOf(usdcOn(wallet.chainId));
  const [balance] = await wallet.read(token, 'function balanceOf(address) view returns (uint256)', [owner]);
  return balance;
}

/** The domain of a token's signatures, as its contract states it. */
async function tokenDomain(wallet: ClientWallet) {
  const [name] = await wallet.read(USDC, 'function name() view returns (string)', []);
  const [version] = await wallet.read(USDC, 'function version() view returns (string)', []);
  return { name: String(name), version: String(version), chainId: wallet.chainId, verifyingContract: USDC };
}

const uint256 = (name: string) => ({ name, type: 'uint256' });
const address = (name: string) => ({ name, type: 'address' });

/** A signed ERC-3009 authorization, as the body of its submit. */
async function authorization(wallet: ClientWallet, { to, value }: { to: Hex; value: bigint }, more = {}) {
  const message = {
    from: wallet.address,
    to,
    value: String(value),
    validAfter: '0',
    validBefore: String(nowSeconds() + HOUR_SECONDS),
    nonce: toHex(crypto.getRandomValues(new Uint8Array(32))),
    ...more,
  };
  const signature = await wallet.signTypedData({
    domain: await tokenDomain(wallet),
    types: {
      TransferWithAuthorization: [
        address('from'),
        address('to'),
        uint256('value'),
        uint256('validAfter'),
        uint256('validBefore'),
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'TransferWithAuthorization',
    message,
  });
  return { chainId: wallet.chainId, ...message, signature };
}

/** A signed EIP-2612 permit for a vault, as the body of its submit in each generation. */
async function permit(wallet: ClientWallet, { vault, generation }: { vault: Hex; generation: Generation }) {
  const { address: owner } = wallet;
  const [nonce] = await wallet.read(USDC, 'function nonces(address) view returns (uint256)', [owner]);
  const deadline = String(nowSeconds() + HOUR_SECONDS);
  const value = String(AMOUNT);
  const signature = await wallet.signTypedData({
    domain: await tokenDomain(wallet),
    types: {
      Permit: [address('owner'), address('spender'), uint256('value'), uint256('nonce'), uint256('deadline')],
    },
    primaryType: 'Permit',
    message: { owner, spender: vault, value, nonce, deadline },
  });
  const named = generation === 'legacy' ? { depositAddress: vault } : { spender: vault };
  return { chainId: wallet.chainId, owner, ...named, value, deadline, signature };
}

/** The body that creates a vault. That of the legacy generation names no destination. */
function vaultBody({ address: owner }: ClientWallet, generation: Generation) {
  const common = { sourceChainId: FROM, amount: String(AMOUNT), recipient: owner, refundRecipient: owner };
  return generation === 'legacy'
    ? { ...common, depositor: owner }
    : { ...common, destinationChainId: TO, sourceToken: USDC, destinationToken: usdcOn(TO) };
}

const FUNDINGS = ['ERC-3009', 'permit', 'plain transfer'] as const;
const GENERATIONS: readonly Generation[] = ['legacy', 'current'];

describe.concurrent.each(CLIENT_LIBRARIES)('a client with %s', (_name, library) => {
  // A sandbox of its own, which loses its solvers.
  const deserted = new ClientStage(FLAGS);
  const newWallet = (at = stage): Promise<ClientWallet> => at.fundedWallet(library, FROM);

  /** A call of a function of the token, by its declaration. */
  function tokenCall(declaration: string, args: readonly unknown[]) {
    return { to: USDC, data: library.encodeCall(declaration, args), value: '0' };
  }

  /** Requests a quote and sends its transaction as it is, once the Portal may take the amount. */
  async function fundQuote(
    wallet: ClientWallet,
    {
      at = stage,
      more = {},
      quoted = () => {},
    }: { at?: ClientStage; more?: object; quoted?: () => unknown } = {},
  ) {
    const answer = await at.client().v1('/quotes', {
      type: 'exact-in',
      dappId: 'acme-app',
      source: { chainId: FROM, token: USDC, funder: wallet.address, amount: String(AMOUNT) },
      destination: { chainId: TO, token: usdcOn(TO), recipient: wallet.address },
      ...more,
    });
    const quote = quoteSchema.parse(answer);
    const { transaction } = quote.execution;
    await wallet.send(tokenCall('function approve(address, uint256)', [transaction.to, AMOUNT]));
    await quoted();
    return { quote, txHash: await wallet.send(transaction) };
  }

  /** Submits a signed payload for a vault, twice as after a lost answer, and polls its job to the end. */
  async function fundBySignature(
    wallet: ClientWallet,
    { vault, generation, funding }: { vault: Hex; generation: Generation; funding: 'ERC-3009' | 'permit' },
  ): Promise<void> {
    const client = stage.client();
    const paths = VAULT_PATHS[generation];
    const [path, body, words] =
      funding === 'permit'
        ? [paths.permit, await permit(wallet, { vault, generation }), ['PENDING', 'PERMIT_SENT', 'COMPLETED']]
        : [
            paths.erc3009,
            await authorization(wallet, { to: vault, value: AMOUNT }),
            ['PENDING', 'COMPLETED'],
          ];
    const { data: queued } = jobSchema.parse(await client.gateway(path, { body }));
    expect(queued.status).toBe('PENDING');
    expect(jobSchema.parse(await client.gateway(path, { body })).data.id).toBe(queued.id);
    const seen = new Set<string>();
    const job = await eventually('the job is done', async () => {
      const { data } = jobSchema.parse(await client.gateway(paths.job, { id: queued.id }));
      seen.add(data.status);
      return data.status === 'COMPLETED' && data;
    });
    expect(words).toEqual(expect.arrayContaining([...seen]));
    expect(job.intentHash).toBeDefined();
  }

  test('funds a quote by its transaction, and the recipient has what was quoted', async () => {
    const wallet = await newWallet();
    const before = await balanceOf(wallet, wallet.address);
    const { quote, txHash } = await fundQuote(wallet);
    expect(await balanceOf(wallet, wallet.address)).toBe(BigInt(String(before)) - AMOUNT);
    const { sourceTx, destinationTx } = await statusBecomes(quote.intentHash, 'filled', 'settled');
    expect(sourceTx?.txHash).toBe(txHash);
    expect(destinationTx).toBeDefined();
    const arrived = stage.wallet(library, TO);
    expect(await balanceOf(arrived, wallet.address)).toBeGreaterThanOrEqual(
      BigInt(quote.destination.amountOut),
    );
  });

  test('follows a transfer without a key, by its intent and by each of its transactions', async () => {
    const wallet = await newWallet();
    const client = stage.client(null);
    const unknown = { intentHash: toHex(crypto.getRandomValues(new Uint8Array(32))) };
    expect(await refusalOf(client.open('/intents/intentStatus', unknown))).toMatchObject({ status: 404 });
    const { quote, txHash } = await fundQuote(wallet);
    const { intentHash } = quote;
    const { seen, last } = await openStatusBecomes(stage, { intentHash, word: 'Fulfilled' });
    expect(['WaitingToFulfill', 'Fulfilled']).toEqual(expect.arrayContaining(seen));
    expect(last).toMatchObject({
      status: { Completed: 'Fulfilled' },
      intentCreated: { transactionHash: txHash },
      refund: null,
    });
    const fulfillmentHash = last.fulfillment?.transactionHash;
    expect(fulfillmentHash).toBeDefined();
    for (const body of [{ intentCreatedHash: txHash }, { fulfillmentHash }]) {
      expect(await client.open('/intents/intentStatus', body)).toMatchObject({ data: { intentHash } });
    }
    const many = { intentHashes: [intentHash, unknown.intentHash] };
    expect(await client.open('/intents/status', many)).toMatchObject({ data: [{ intentHash }] });
  });

  test('publishes and funds an open quote at the Portal, and follows it without a key', async () => {
    const wallet = await newWallet();
    const recipient = stage.wallet(library, TO);
    const answer = await stage.client(null).open('/quotes/single', {
      dAppID: 'acme-app',
      intentExecutionTypes: ['SELF_PUBLISH'],
      quoteRequest: {
        sourceChainID: FROM,
        destinationChainID: TO,
        sourceToken: USDC,
        destinationToken: usdcOn(TO),
        sourceAmount: String(AMOUNT),
        funder: wallet.address,
        recipient: recipient.address,
      },
    });
    const { contracts, quoteResponse: quote } = openQuoteSchema.parse(answer).data;
    const { sourcePortal: portal, prover } = contracts;
    const reward = [BigInt(quote.deadline), wallet.address, prover, 0n, [[USDC, AMOUNT]]];
    const data = library.encodeCall(PUBLISH_AND_FUND, [BigInt(TO), quote.encodedRoute, reward, false]);
    const { intentHash } = fundingOf(library, data);
    await wallet.send(tokenCall('function approve(address, uint256)', [portal, AMOUNT]));
    const txHash = await wallet.send({ to: portal, data, value: '0' });
    const { last } = await openStatusBecomes(stage, { intentHash, word: 'Fulfilled' });
    expect(last.intentCreated?.transactionHash).toBe(txHash);
    expect(await balanceOf(recipient, recipient.address)).toBe(BigInt(quote.destinationAmount));
  });

  test('gets its money back at the refund recipient when nobody fills', async () => {
    const wallet = await newWallet(deserted);
    const { address: refundRecipient } = await newWallet(deserted);
    const before = await balanceOf(wallet, refundRecipient);
    const quoted = (): Promise<void> => deserted.sandbox.setSolvers(0);
    const { quote } = await fundQuote(wallet, { at: deserted, more: { refundRecipient }, quoted });
    const { seen, last } = await openStatusBecomes(deserted, {
      intentHash: quote.intentHash,
      word: 'Refunded',
    });
    expect(['WaitingToFulfill', 'WaitingForRefund', 'Refunded']).toEqual(expect.arrayContaining(seen));
    expect(last).toMatchObject({ status: { Completed: 'Refunded' }, fulfillment: null });
    expect(last.refund).not.toBe(null);
    expect(await balanceOf(wallet, refundRecipient)).toBe(BigInt(String(before)) + AMOUNT);
  });

  describe.each(GENERATIONS)('at the %s paths of vaults', (generation) => {
    const paths = VAULT_PATHS[generation];

    test.each(FUNDINGS)('funds a vault by %s, and follows it to its intent', async (funding) => {
      const wallet = await newWallet();
      const client = stage.client();
      const body = vaultBody(wallet, generation);
      const { data: vault } = vaultSchema.parse(await client.gateway(paths.create, { body }));
      expect(vault.amount).toBe(String(AMOUNT));
      expect(vault.deadline).toBeGreaterThan(nowSeconds());
      const query = { sourceChainId: String(FROM) };
      const readState = async () =>
        vaultStateSchema.parse(await client.gateway(paths.vault, { id: vault.vaultAddress, query })).data;
      expect(await readState()).toMatchObject({ state: 'PENDING', sourceChainId: FROM });
      if (generation === 'legacy') {
        // A client that has lost the answer requests the same again.
        const again = await client.gateway(paths.create, { body: { ...body, dAppID: 'acme-app' } });
        expect(vaultSchema.parse(again).data.vaultAddress).not.toBe(vault.vaultAddress);
        expect(vaultSchema.parse(await client.gateway(paths.create, { body })).data).toEqual(vault);
      }

      if (funding === 'plain transfer') {
        await wallet.send(tokenCall('function transfer(address, uint256)', [vault.vaultAddress, AMOUNT]));
      } else {
        await fundBySignature(wallet, { vault: vault.vaultAddress, generation, funding });
      }
      const published = await eventually('the vault is published', async () => {
        const found = await readState();
        return found.state === 'PUBLISHED' && found;
      });
      const { intentHash } = published;
      if (intentHash === undefined) throw new Error('the vault names no intent');
      await statusBecomes(intentHash, 'filled', 'settled');
    });

    test('funds one vault after the other by permits, each with the nonce that the token states', async () => {
      const wallet = await newWallet();
      const client = stage.client();
      for (const dAppID of ['acme-app', 'acme-other']) {
        const body = { ...vaultBody(wallet, generation), dAppID };
        const { data } = vaultSchema.parse(await client.gateway(paths.create, { body }));
        await fundBySignature(wallet, { vault: data.vaultAddress, generation, funding: 'permit' });
      }
    });

    test('reads why a vault was refused', async () => {
      const wallet = await newWallet();
      const client = stage.client();
      const body = vaultBody(wallet, generation);
      expect(await refusalOf(client.gateway(paths.create, { body: { ...body, amount: '1' } }))).toMatchObject(
        {
          status: 422,
          message: expect.stringContaining('at least'),
        },
      );
      expect(
        await refusalOf(client.gateway(paths.create, { body: { ...body, recipient: 'nobody' } })),
      ).toMatchObject({ status: 400, message: expect.stringContaining('recipient') });
      const { data } = vaultSchema.parse(await client.gateway(paths.create, { body }));
      const vault = { to: data.vaultAddress, value: AMOUNT };
      const refused = async (signed: object) => refusalOf(client.gateway(paths.erc3009, { body: signed }));
      expect(await refused(await authorization(wallet, { ...vault, value: AMOUNT - 1n }))).toMatchObject({
        status: 422,
        message: expect.stringContaining('at least the quoted'),
      });
      expect(await refused(await authorization(wallet, vault, { validBefore: '1' }))).toMatchObject({
        status: 401,
        message: expect.stringContaining('good until'),
      });
      const forged = { ...(await authorization(await newWallet(), vault)), from: wallet.address };
      expect(await refused(forged)).toMatchObject({
        status: 403,
        message: expect.stringContaining('signed by'),
      });
      const nowhere = `0x${'99'.repeat(20)}` as const;
      expect(await refused(await authorization(wallet, { to: nowhere, value: AMOUNT }))).toMatchObject({
        status: 404,
        message: expect.stringContaining('no vault'),
      });
      const query = { sourceChainId: String(FROM) };
      expect(await refusalOf(client.gateway(paths.vault, { id: nowhere, query }))).toMatchObject({
        status: 404,
        message: expect.stringContaining('no vault'),
      });
      expect(await refusalOf(client.gateway(paths.job, { id: 'none' }))).toMatchObject({
        status: 404,
        message: expect.stringContaining('no gasless job'),
      });
    });
  });
});
