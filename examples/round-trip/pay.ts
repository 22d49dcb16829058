import { setTimeout as delay } from 'node:timers/promises';
import { type Hex, isAddress, toHex } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { UpstreamClient } from '../../src/upstream/client/client.ts';
import type { QuoteSigners } from '../../src/upstream/client/quote-signers.ts';
import type { Quote } from '../../src/upstream/wire/quote.ts';
import { type Grant, signErc2612, signErc3009, signPermit2, signPermit3, type Token } from './sign.ts';
import {
  createVault,
  type GaslessJob,
  submitErc3009,
  submitPermit2,
  submitPermit3,
  submitVaultErc2612,
} from './submit.ts';

/** The ways to fund a transfer: send the quote's transaction, or sign and let the service send one. */
export const METHODS = ['transaction', 'erc-3009', 'eip-2612', 'permit2', 'permit3'] as const;

/** One of the ways to fund a transfer. */
export type Method = (typeof METHODS)[number];

/** All that a payment needs. `amount` is base units. */
export type Market = {
  client: UpstreamClient;
  signers: Pick<QuoteSigners, 'verify'>;
  owner: PrivateKeyAccount;
  source: Token;
  destination: Token;
  amount: bigint;
  /** Sends the transaction that funds a quote; gives its hash. */
  send: (quote: Quote) => Promise<string>;
  /** Reported what was done, a line each. */
  log: (line: string) => void;
};

/** What was funded. Ids are as a config wants them: quotes and jobs as bare UUIDs. */
export type Payment = {
  intentHash: string;
  quote: string | null;
  vault: { address: string; chainId: number } | null;
  job: { id: string; endpoint: 'status' | 'gateway' } | null;
};

/** The time that an authorization is good, once it is signed. */
const AUTHORIZED_SECONDS = 3_600;
const JOB_EVERY_MS = 250;

/** Orders a transfer and funds it. Throws when the order is not what was requested: then nothing is funded. */
export async function pay(method: Method, market: Market): Promise<Payment> {
  switch (method) {
    case 'transaction': {
      const quote = await order(market);
      market.log(`sent ${await market.send(quote)}`);
      return { intentHash: quote.intentHash, quote: bareId(quote.id), vault: null, job: null };
    }
    case 'erc-3009':
    case 'permit2':
    case 'permit3': {
      const quote = await order(market);
      const submitted = await submit(method, { market, quote });
      market.log(`signed, ${submitted.id} ${submitted.status}`);
      const job = { id: bareId(submitted.id), endpoint: 'status' } as const;
      return { intentHash: quote.intentHash, quote: bareId(quote.id), vault: null, job };
    }
    case 'eip-2612':
      return payIntoVault(market);
    default:
      return method satisfies never;
  }
}

/** Resolves when the service has done what a job is for. Throws when it failed, or the signal's reason. */
export async function published(
  client: UpstreamClient,
  { id, endpoint }: NonNullable<Payment['job']>,
  signal: AbortSignal,
): Promise<string> {
  for (;;) {
    const status =
      endpoint === 'gateway'
        ? (await client.gaslessJob(id, { signal })).value.status
        : (await client.status({ jobId: id }, { signal })).value.records[0]?.status;
    if (status === 'published' || status === 'COMPLETED') return status;
    if (status?.toLowerCase() === 'failed') throw new Error(`job ${id} failed`);
    await delay(JOB_EVERY_MS, undefined, { signal });
  }
}

/** Requests a quote and verifies it: the signature, and the members that the signature does not cover. */
async function order({ client, signers, owner, source, destination, amount, log }: Market): Promise<Quote> {
  const { value: quote } = await client.quote({
    type: 'exact-in',
    dappId: 'round-trip',
    slippage: '0.005',
    source: {
      chainId: source.chainId,
      token: source.address,
      funder: owner.address,
      amount: String(amount),
    },
    destination: {
      chainId: destination.chainId,
      token: destination.address,
      recipient: owner.address,
    },
  });
  const verdict = await signers.verify(quote.raw);
  if (!verdict.valid) throw new Error(`the quote is not valid, ${verdict.part}: ${verdict.reason}`);
  expectSame('source.chainId', quote.source.chainId, source.chainId);
  expectSame('source.token', quote.source.token, source.address);
  expectSame('source.amount', quote.source.amount, String(amount));
  expectSame('source.funder', quote.source.funder, owner.address);
  expectSame('destination.chainId', quote.destination.chainId, destination.chainId);
  expectSame('destination.token', quote.destination.token, destination.address);
  expectSame('destination.recipient', quote.destination.recipient, owner.address);
  log(`${quote.id} gives ${quote.destination.amountOut}, signed by ${verdict.signer}: valid`);
  return quote;
}

async function submit(
  method: 'erc-3009' | 'permit2' | 'permit3',
  { market: { client, owner, source, amount }, quote }: { market: Market; quote: Quote },
): Promise<GaslessJob> {
  const grant = { owner, token: source, spender: portalOf(quote), amount, until: inAnHour() };
  switch (method) {
    case 'erc-3009': {
      const signed = await signErc3009(grant, random32());
      return (await submitErc3009(client, { quoteId: quote.id, ...signed })).value;
    }
    case 'permit2': {
      const signed = await signPermit2(grant, BigInt(random32()));
      return (await submitPermit2(client, { quoteId: quote.id, ...signed })).value;
    }
    case 'permit3': {
      const signed = await signPermit3(grant, { salt: random32(), nowSeconds: nowSeconds() });
      return (await submitPermit3(client, { quoteId: quote.id, ...signed })).value;
    }
    default:
      return method satisfies never;
  }
}

/** A vault is quoted as it is created. Its answer bears no signature. */
async function payIntoVault(market: Market): Promise<Payment> {
  const { client, owner, source, destination, amount, log } = market;
  const { value: vault } = await createVault(client, {
    sourceChainId: source.chainId,
    destinationChainId: destination.chainId,
    sourceToken: source.address,
    destinationToken: destination.address,
    amount: String(amount),
    recipient: owner.address,
    refundRecipient: owner.address,
  });
  const { vaultAddress, intentHash } = vault;
  expectSame('amount', vault.raw.amount, String(amount));
  expectSame('sourceChainId', vault.chainId, source.chainId);
  if (vaultAddress === null || !isAddress(vaultAddress))
    throw new Error('vaultAddress: expected an EVM address');
  if (intentHash === null) throw new Error('intentHash: found nothing, expected the intent of the vault');
  log(`vault ${vaultAddress} on chain ${source.chainId}`);
  const grant: Grant = { owner, token: source, spender: vaultAddress, amount, until: inAnHour() };
  const { value: job } = await submitVaultErc2612(client, await signErc2612(grant, 0n));
  if (job.id === null) throw new Error('id: found nothing, expected the id of the job');
  log(`signed, gasless:gateway:${job.id} ${job.status}`);
  return {
    intentHash,
    quote: null,
    vault: { address: vaultAddress, chainId: source.chainId },
    job: { id: job.id, endpoint: 'gateway' },
  };
}

/** The contract that a quote is funded at: the one that its transaction would call. */
function portalOf({ transaction }: Quote): Hex {
  const to = transaction?.to;
  if (typeof to === 'string' && isAddress(to)) return to;
  throw new Error('execution.transaction.to: expected an EVM address');
}

function expectSame(field: string, found: unknown, expected: string | number): void {
  if (String(found).toLowerCase() === String(expected).toLowerCase()) return;
  throw new Error(`${field}: found ${JSON.stringify(found)}, expected ${expected} as asked`);
}

function bareId(id: string): string {
  return id.slice(id.indexOf(':') + 1);
}

function random32(): Hex {
  return toHex(crypto.getRandomValues(new Uint8Array(32)));
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1_000);
}

function inAnHour(): bigint {
  return BigInt(nowSeconds() + AUTHORIZED_SECONDS);
}
