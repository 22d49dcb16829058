/**
 * A transfer as its sender sees it: discover what can be quoted, get a quote, verify it, fund it in each of five ways,
 * and follow it to `settled` by the webhooks of a daemon that watches the sender's wallet. See README.md.
 */
import { parseArgs } from 'node:util';
import { isAddress, isHex } from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { z } from 'zod';
import { Secret } from '../../src/secret.ts';
import { UpstreamClient } from '../../src/upstream/client/client.ts';
import { QuoteSigners } from '../../src/upstream/client/quote-signers.ts';
import { METHODS, type Method, pay, published } from './pay.ts';
import type { Token } from './sign.ts';
import { type Event, Webhooks } from './webhooks.ts';

const SOURCE_CHAIN = 8453;
const DESTINATION_CHAIN = 10;
const AMOUNT = 25_000_000n;

/** A transfer that has ended otherwise does not settle any more. */
const LOST = ['refunded', 'failed'];

const { values: flags } = parseArgs({
  options: {
    'base-url': { type: 'string', default: 'http://127.0.0.1:8080' },
    'control-url': { type: 'string', default: 'http://127.0.0.1:8081' },
    port: { type: 'string', default: '8090' },
    timeout: { type: 'string', default: '900' },
    wallet: { type: 'boolean', default: false },
  },
});

/** A variable that must be set. */
function variable(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === '') throw new Error(`${name} is not set, see README.md`);
  return value;
}

function sender(): PrivateKeyAccount {
  const key = variable('SENDER_KEY');
  if (!isHex(key) || key.length !== 66) throw new Error('SENDER_KEY: expected 0x and 64 hex digits');
  return privateKeyToAccount(key);
}

/** Finds USDC on a chain, among all that can be quoted. */
async function discover(client: UpstreamClient): Promise<{ source: Token; destination: Token }> {
  const [chains, tokens] = await Promise.all([client.chains(), client.tokens()]);
  console.log(`discovered ${chains.value.entries.length} chains, ${tokens.value.entries.length} tokens`);
  const usdc = (chainId: number): Token => {
    const token = tokens.value.entries.find((entry) => entry.chainId === chainId && entry.symbol === 'USDC');
    const address = token?.address;
    if (address === undefined || !isAddress(address)) throw new Error(`no USDC on chain ${chainId}`);
    return { chainId, address, name: 'USD Coin' };
  };
  return { source: usdc(SOURCE_CHAIN), destination: usdc(DESTINATION_CHAIN) };
}

/** There is no chain behind the sandbox: it is reported that the transaction was seen. Elsewhere, a wallet sends it. */
async function sendAtSandbox(quoteId: string): Promise<string> {
  const response = await fetch(`${flags['control-url']}/fund`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ quoteId }),
  });
  const body: unknown = await response.json();
  if (!response.ok) throw new Error(`the sandbox did not fund ${quoteId}: ${JSON.stringify(body)}`);
  return z.object({ sourceTxHash: z.string() }).parse(body).sourceTxHash;
}

/** The transfers that are followed, by the id of their intent, and those of them that have settled. */
class Following {
  readonly #methods = new Map<string, Method>();
  readonly #early: Event[] = [];
  readonly #unsettled = new Set<string>();
  readonly #done = Promise.withResolvers<void>();
  #isComplete = false;

  /** All of them settled; throws when one ended otherwise. */
  readonly done: Promise<void> = this.#done.promise;

  /** Takes an event. One can come before the answer to what it is about: it is stored for then. */
  take(event: Event): void {
    const { subject, status, sequence } = event.data;
    const method = this.#methods.get(subject.id);
    if (method === undefined) {
      this.#early.push(event);
      return;
    }
    console.log(`${method}: webhook ${event.type} #${sequence} of ${subject.id}, signature verified`);
    if (status === 'settled') this.#unsettled.delete(subject.id);
    if (status !== null && LOST.includes(status)) {
      this.#done.reject(new Error(`${method}: ${subject.id} is ${status}, expected settled`));
    }
    this.#poll();
  }

  add(method: Method, intentHash: string): void {
    const id = `intent:${intentHash.toLowerCase()}`;
    this.#unsettled.add(id);
    this.#methods.set(id, method);
    for (const event of this.#early.splice(0)) this.take(event);
  }

  /** No more are added. */
  complete(): void {
    this.#isComplete = true;
    this.#poll();
  }

  #poll(): void {
    if (this.#isComplete && this.#unsettled.size === 0) this.#done.resolve();
  }
}

async function run(owner: PrivateKeyAccount): Promise<void> {
  const signal = AbortSignal.timeout(Number(flags.timeout) * 1_000);
  const client = new UpstreamClient({
    baseUrl: flags['base-url'],
    apiKey: new Secret(variable('UPSTREAM_API_KEY')),
    timeoutMs: 10_000,
    gateway: {
      prefix: 'deposit-gateway',
      vaultPath: '/v1/deposit-gateway/{vaultAddress}',
      chainParam: 'sourceChainId',
      jobPath: '/v1/deposit-gateway/status?id={id}',
    },
  });
  const following = new Following();
  const webhooks = new Webhooks({
    secret: variable('WEBHOOK_SECRET'),
    onEvent: (event) => following.take(event),
    onRefused: (reason) => console.error(`a webhook was refused: ${reason}`),
  });
  // A transfer that is lost while others are still funded is reported when all are.
  following.done.catch(() => {});
  try {
    await webhooks.start(Number(flags.port));
    const tokens = await discover(client);
    const signers = new QuoteSigners({ client });
    for (const method of METHODS) {
      const log = (line: string): void => console.log(`${method}: ${line}`);
      const send = ({ id }: { id: string }): Promise<string> => sendAtSandbox(id);
      const payment = await pay(method, { ...tokens, client, signers, owner, amount: AMOUNT, send, log });
      following.add(method, payment.intentHash);
      if (payment.job !== null) log(`job ${await published(client, payment.job, signal)}`);
    }
    following.complete();
    const expired = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error(`not all settled within ${flags.timeout} s`)));
    });
    await Promise.race([following.done, expired]);
    console.log(`${METHODS.length} of ${METHODS.length} settled`);
  } finally {
    await Promise.all([webhooks.close(), client.close()]);
  }
}

try {
  const owner = sender();
  if (flags.wallet) console.log(owner.address);
  else await run(owner);
} catch (error) {
  console.error(`round-trip: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
