import { setTimeout as delay } from 'node:timers/promises';
import { type Address, type Hex, isAddress, toHex } from 'viem';
import type { QuoteSigners } from '../../src/upstream/client/quote-signers.ts';
import type { Quote } from '../../src/upstream/wire/quote.ts';
import { checkedFunding, expectSame, type Funding } from './bytes.ts';
import { type Grant, signErc2612, signErc3009, signPermit2, signPermit3, type Token } from './sign.ts';
import {
  createVault,
  type GaslessJob,
  type Service,
  submitErc3009,
  submitPermit2,
  submitPermit3,
  submitVaultErc3009,
  submitVaultPermit,
} from './submit.ts';
import type { Wallet } from './wallet.ts';

/**
 * The ways to fund a transfer. A quote is funded by its transaction, or by an authorization that the service sends; a
 * vault by an authorization, by a permit, or by a plain transfer of the token.
 */
export const METHODS = [
  'transaction',
  'erc-3009',
  'permit2',
  'permit3',
  'vault-erc-3009',
  'vault-permit',
  'vault-transfer',
] as const;

/** One of the ways to fund a transfer. */
export type Method = (typeof METHODS)[number];

/** All that a payment needs. `amount` is base units. */
export type Payer = {
  service: Service;
  signers: { verify: QuoteSigners['verify'] };
  wallet: Wallet;
  source: Token;
  destination: { chainId: number; address: Address };
  amount: bigint;
  /** Takes a line for each thing that was done. */
  log: (line: string) => void;
  /** Ends every wait. */
  signal: AbortSignal;
};

/** The time that an authorization is good, once it is signed. */
const AUTHORIZED_SECONDS = 3_600;
const POLL_EVERY_MS = 250;

/**
 * Orders a transfer and funds it. Returns the hash of its intent once the service has published it. Throws when the
 * order is not what was requested: then nothing is funded.
 */
export async function pay(method: Method, payer: Payer): Promise<string> {
  switch (method) {
    case 'transaction': {
      const { quote, funding } = await order(payer);
      await fund(payer, funding);
      return quote.intentHash;
    }
    case 'erc-3009':
    case 'permit2':
    case 'permit3': {
      const { quote, funding } = await order(payer);
      const { id, status } = await submit(method, { payer, quote, spender: funding.to });
      payer.log(`signed, ${id} ${status}`);
      payer.log(`job ${await publishedJob(payer, id)}`);
      return quote.intentHash;
    }
    case 'vault-erc-3009':
    case 'vault-permit':
    case 'vault-transfer':
      return payIntoVault(method, payer);
    default:
      return method satisfies never;
  }
}

/** Sends the transaction that funds a quote, once the Portal may take the amount. */
async function fund({ wallet, source, amount, log }: Payer, funding: Funding): Promise<void> {
  log(`approved ${await wallet.approve(source.address, { spender: funding.to, amount })}`);
  log(`sent ${await wallet.send(funding)}`);
}

/** Requests a quote and checks it: its signature, the members that the signature does not cover, and the bytes. */
async function order(payer: Payer): Promise<{ quote: Quote; funding: Funding }> {
  const { service, signers, wallet, source, destination, amount, log } = payer;
  const owner = wallet.owner.address;
  const { value: quote } = await service.client.quote({
    type: 'exact-in',
    dappId: 'round-trip',
    slippage: '0.005',
    source: { chainId: source.chainId, token: source.address, funder: owner, amount: String(amount) },
    destination: { chainId: destination.chainId, token: destination.address, recipient: owner },
  });
  const verdict = await signers.verify(quote.raw);
  if (!verdict.valid) throw new Error(`the quote is not valid, ${verdict.part}: ${verdict.reason}`);
  expectSame('source.chainId', quote.source.chainId, source.chainId);
  expectSame('source.token', quote.source.token, source.address);
  expectSame('source.amount', quote.source.amount, amount);
  expectSame('source.funder', quote.source.funder, owner);
  expectSame('destination.chainId', quote.destination.chainId, destination.chainId);
  expectSame('destination.token', quote.destination.token, destination.address);
  expectSame('destination.recipient', quote.destination.recipient, owner);
  log(`${quote.id} gives ${quote.destination.amountOut}, signed by ${verdict.signer}: valid`);
  const funding = checkedFunding(quote, {
    source: { chainId: source.chainId, token: source.address, amount },
    destination: { chainId: destination.chainId, token: destination.address, recipient: owner },
    refundRecipient: owner,
  });
  log('its bytes pay what was requested');
  return { quote, funding };
}

async function submit(
  method: 'erc-3009' | 'permit2' | 'permit3',
  { payer, quote, spender }: { payer: Payer; quote: Quote; spender: Address },
): Promise<GaslessJob> {
  const { service } = payer;
  const grant = grantTo(spender, payer);
  switch (method) {
    case 'erc-3009': {
      const signed = await signErc3009(grant, random32());
      return (await submitErc3009(service, { quoteId: quote.id, ...signed })).value;
    }
    case 'permit2': {
      const signed = await signPermit2(grant, BigInt(random32()));
      return (await submitPermit2(service, { quoteId: quote.id, ...signed })).value;
    }
    case 'permit3': {
      const signed = await signPermit3(grant, { salt: random32(), nowSeconds: nowSeconds() });
      return (await submitPermit3(service, { quoteId: quote.id, ...signed })).value;
    }
    default:
      return method satisfies never;
  }
}

/** A vault is quoted as it is created. Its answer bears no signature. */
async function payIntoVault(
  method: 'vault-erc-3009' | 'vault-permit' | 'vault-transfer',
  payer: Payer,
): Promise<string> {
  const { service, wallet, source, amount, log } = payer;
  const owner = wallet.owner.address;
  const { value: vault } = await createVault(service, {
    sourceChainId: source.chainId,
    amount: String(amount),
    recipient: owner,
    depositor: owner,
    refundRecipient: owner,
  });
  const { vaultAddress: address } = vault;
  if (address === null || !isAddress(address)) throw new Error('vaultAddress: expected an EVM address');
  expectSame('amount', vault.raw.amount, amount);
  log(`vault ${address} on chain ${source.chainId}`);
  if (method === 'vault-transfer') {
    log(`sent ${await wallet.transfer(source.address, { to: address, amount })}`);
  } else {
    const job = await submitToVault(method, { payer, vault: address });
    if (job.id === null) throw new Error('id: found nothing, expected the id of the job');
    log(`signed, gasless:gateway:${job.id} ${job.status}`);
    log(`job ${await completedJob(payer, job.id)}`);
  }
  return publishedVault(payer, address);
}

async function submitToVault(
  method: 'vault-erc-3009' | 'vault-permit',
  { payer, vault }: { payer: Payer; vault: Address },
) {
  const { service, wallet, source } = payer;
  const grant = grantTo(vault, payer);
  if (method === 'vault-permit') {
    const nonce = await wallet.permitNonce(source.address);
    const { spender: depositAddress, ...permit } = await signErc2612(grant, nonce);
    return (await submitVaultPermit(service, { ...permit, depositAddress })).value;
  }
  const { authorization, signature } = await signErc3009(grant, random32());
  const payload = { chainId: source.chainId, ...authorization, signature };
  return (await submitVaultErc3009(service, payload)).value;
}

/** The status of a job of v1 that has done what it is for. */
function publishedJob({ service: { client }, signal }: Payer, id: string): Promise<string> {
  const jobId = id.slice(id.indexOf(':') + 1);
  return polled(signal, async () => {
    const [job] = (await client.status({ jobId }, { signal })).value.records;
    if (job?.status === 'failed') throw new Error(`${id} failed`);
    return job?.status === 'published' ? job.status : null;
  });
}

/** The same of a job of the vault endpoints. */
function completedJob({ service: { client }, signal }: Payer, id: string): Promise<string> {
  return polled(signal, async () => {
    const { status, raw } = (await client.gaslessJob(id, { signal })).value;
    if (status === 'FAILED') throw new Error(`job ${id} failed: ${raw.error}`);
    return status === 'COMPLETED' ? status : null;
  });
}

/** The intent that a funded vault became. */
function publishedVault({ service: { client }, source, signal }: Payer, address: Address): Promise<string> {
  return polled(signal, async () => {
    const { value: vault } = await client.vault({ address, chainId: source.chainId }, { signal });
    return vault.state === 'PUBLISHED' ? vault.intentHash : null;
  });
}

/** Polls until there is an answer. */
async function polled(signal: AbortSignal, poll: () => Promise<string | null>): Promise<string> {
  for (;;) {
    const answer = await poll();
    if (answer !== null) return answer;
    await delay(POLL_EVERY_MS, undefined, { signal });
  }
}

function grantTo(spender: Address, { wallet: { owner }, source: token, amount }: Payer): Grant {
  return { owner, token, spender, amount, until: BigInt(nowSeconds() + AUTHORIZED_SECONDS) };
}

function random32(): Hex {
  return toHex(crypto.getRandomValues(new Uint8Array(32)));
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1_000);
}
