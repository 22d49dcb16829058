/**
 * Transfers as their sender sees them: discover what can be quoted, get a quote, check it and its bytes, fund it in each
 * of seven ways, and follow it to `settled` by the webhooks of a daemon that watches the sender's wallet. One more is
 * filled by nobody, and is followed to `refunded`. See README.md.
 */
import { parseArgs } from 'node:util';
import { type Address, isAddress, isHex } from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { provableDomain } from '../../src/domain/quotes/quote-signature.ts';
import { Secret } from '../../src/secret.ts';
import { UpstreamClient } from '../../src/upstream/client/client.ts';
import { QuoteSigners } from '../../src/upstream/client/quote-signers.ts';
import { METHODS, type Payer, pay } from './pay.ts';
import { createWallet, type Wallet } from './wallet.ts';
import { type Event, Webhooks } from './webhooks.ts';

const SOURCE_CHAIN = 8453;
const DESTINATION_CHAIN = 10;
const AMOUNT = 25_000_000n;

/** The statuses of a transfer that has ended, and the last of one that is sound. */
const ENDS = ['settled', 'refunded', 'failed'] as const;
type End = 'settled' | 'refunded';

const { values: flags } = parseArgs({
  options: {
    'base-url': { type: 'string', default: 'http://127.0.0.1:8080' },
    'rpc-url': { type: 'string', default: `http://127.0.0.1:8080/chains/${SOURCE_CHAIN}/wallet` },
    'control-url': { type: 'string', default: 'http://127.0.0.1:8081' },
    'quote-domain': { type: 'string', default: 'ServiceQuoteV1' },
    'gateway-prefix': { type: 'string', default: 'deposit-gateway' },
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

/** Finds USDC on both chains, among all that can be quoted. */
async function discover(client: UpstreamClient): Promise<{ source: Address; destination: Address }> {
  const [chains, tokens] = await Promise.all([client.chains(), client.tokens()]);
  console.log(`discovered ${chains.value.entries.length} chains, ${tokens.value.entries.length} tokens`);
  const usdc = (chainId: number): Address => {
    const token = tokens.value.entries.find((entry) => entry.chainId === chainId && entry.symbol === 'USDC');
    const address = token?.address;
    if (address === undefined || !isAddress(address)) throw new Error(`no USDC on chain ${chainId}`);
    return address;
  };
  return { source: usdc(SOURCE_CHAIN), destination: usdc(DESTINATION_CHAIN) };
}

/** Sets the number of solvers of the sandbox. Without one, nobody fills a transfer that is funded. */
async function setSolvers(solvers: number): Promise<void> {
  const response = await fetch(`${flags['control-url']}/market`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ solvers }),
  });
  if (!response.ok) throw new Error(`the sandbox has no market: HTTP ${response.status}`);
}

/** A wallet whose transactions are sent while nobody fills transfers. */
function unfilled(wallet: Wallet): Wallet {
  return {
    ...wallet,
    async send(funding) {
      await setSolvers(0);
      try {
        return await wallet.send(funding);
      } finally {
        await setSolvers(3);
      }
    },
  };
}

/** The transfers that are followed, by the id of their intent, and those of them that have not ended. */
class Following {
  readonly #followed = new Map<string, { name: string; end: End }>();
  readonly #early: Event[] = [];
  readonly #open = new Set<string>();
  readonly #done = Promise.withResolvers<void>();
  #isComplete = false;

  /** All of them ended as expected; throws when one ended otherwise. */
  readonly done: Promise<void> = this.#done.promise;

  /** Takes an event. One can come before the answer to what it is about: it is stored for then. */
  take(event: Event): void {
    const { subject, status, sequence } = event.data;
    const followed = this.#followed.get(subject.id);
    if (followed === undefined) {
      this.#early.push(event);
      return;
    }
    const { name, end } = followed;
    console.log(`${name}: webhook ${event.type} #${sequence} of ${subject.id}, signature verified`);
    if (status === end) this.#open.delete(subject.id);
    else if (ENDS.some((other) => other === status)) {
      this.#done.reject(new Error(`${name}: ${subject.id} is ${status}, expected ${end}`));
    }
    this.#poll();
  }

  add(name: string, { intentHash, end }: { intentHash: string; end: End }): void {
    const id = `intent:${intentHash.toLowerCase()}`;
    this.#open.add(id);
    this.#followed.set(id, { name, end });
    for (const event of this.#early.splice(0)) this.take(event);
  }

  /** No more are added. */
  complete(): void {
    this.#isComplete = true;
    this.#poll();
  }

  #poll(): void {
    if (this.#isComplete && this.#open.size === 0) this.#done.resolve();
  }
}

async function run(owner: PrivateKeyAccount): Promise<void> {
  const signal = AbortSignal.timeout(Number(flags.timeout) * 1_000);
  const prefix = flags['gateway-prefix'];
  const client = new UpstreamClient({
    baseUrl: flags['base-url'],
    apiKey: new Secret(variable('UPSTREAM_API_KEY')),
    timeoutMs: 10_000,
    gateway: {
      prefix,
      vaultPath: `/${prefix}/v2/depositAddresses/{vaultAddress}`,
      chainParam: 'sourceChainId',
      jobPath: `/${prefix}/v1/gasless/jobs/{id}`,
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
    const wallet = createWallet({ owner, chainId: SOURCE_CHAIN, rpcUrl: flags['rpc-url'] });
    const domain = provableDomain({ name: flags['quote-domain'], version: '1', isExplicit: true });
    const payerOf = (name: string): Payer => ({
      service: { client, prefix },
      signers,
      wallet,
      source,
      destination: { chainId: DESTINATION_CHAIN, address: tokens.destination },
      amount: AMOUNT,
      log: (line) => console.log(`${name}: ${line}`),
      signal,
    });
    const signers = new QuoteSigners({ client, domain });
    const source = await wallet.token(tokens.source);
    for (const method of METHODS) {
      following.add(method, { intentHash: await pay(method, payerOf(method)), end: 'settled' });
    }
    const nobodyFills = { ...payerOf('refund'), wallet: unfilled(wallet) };
    following.add('refund', { intentHash: await pay('transaction', nobodyFills), end: 'refunded' });
    following.complete();
    const expired = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error(`not all ended within ${flags.timeout} s`)));
    });
    await Promise.race([following.done, expired]);
    console.log(`${METHODS.length} of ${METHODS.length} settled, 1 of 1 refunded`);
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
