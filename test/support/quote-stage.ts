import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Hex } from 'viem';
import { inject } from 'vitest';
import type { Daemon } from '../../src/daemon/daemon.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { QuoteDomain } from '../../src/domain/quotes/quote-signature.ts';
import type { Signals } from '../../src/signals.ts';
import { startDaemon, type TestConfig, TestReceiver, testPrefix } from './daemon.ts';
import { DEPLOYMENT } from './deployment.ts';
import type { opening } from './opening.ts';
import { type Scripted, ScriptedUpstream } from './scripted-upstream.ts';
import { IN_2100, QUOTE_CHAIN, QUOTE_SIGNER, signQuote } from './signed-quote.ts';

/** The one imported quote, and its one intent. */
export const QUOTE_ID = 'quote:3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41';
export const QUOTE_INTENT: Hex = `0x${'ab'.repeat(32)}`;

/** Unix seconds. */
export function now(): number {
  return Math.floor(Date.now() / 1_000);
}

/** The quote as the upstream made it. */
export async function signedQuote(
  expiresAt = IN_2100,
  signer = QUOTE_SIGNER,
  name = DEPLOYMENT.domain.name,
): Promise<JsonObject> {
  const covered = {
    name,
    id: QUOTE_ID,
    intentHashes: [QUOTE_INTENT],
    expiresAt: BigInt(expiresAt),
    chainId: QUOTE_CHAIN,
  };
  return {
    id: QUOTE_ID,
    type: 'exact-in',
    signature: await signQuote(covered, signer),
    expiresAt,
    intentHash: QUOTE_INTENT,
    source: { chainId: QUOTE_CHAIN },
    steps: [{ type: 'BRIDGE', intents: [{ intentHash: QUOTE_INTENT, role: 'primary' }] }],
  };
}

/** The tokens that the quote moves, on its two chains. */
export const PROMISED_TOKENS = {
  source: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
  destination: '0x0b2c639c533813f4aa9d7837caf62653d097ff85',
};

/** The delivery of the transfer, without its amount. */
export const destinationTx = {
  chainId: 10,
  txHash: `0x${'d7'.repeat(32)}`,
  token: PROMISED_TOKENS.destination,
};

/** The funding of the transfer. */
export const sourceTx = {
  chainId: QUOTE_CHAIN,
  txHash: `0x${'51'.repeat(32)}`,
  token: PROMISED_TOKENS.source,
  amount: '1000000',
};

/** The quote with its promise: at least 994,000 units of the destination token. */
export async function promisingQuote(): Promise<JsonObject> {
  return {
    ...(await signedQuote()),
    destination: {
      chainId: 10,
      token: PROMISED_TOKENS.destination,
      recipient: '0x52908400098527886e0f7030069857d2e4169ee7',
      amountOut: '999000',
      minAmountOut: '994000',
    },
    fees: [{ type: 'solver', token: PROMISED_TOKENS.source, amount: '1000' }],
  };
}

/** The chains, with a signer, with none, or with an invalid one. */
export function chainsWith(signer: string | null): Scripted {
  return { status: 200, body: JSON.stringify([{ chainId: QUOTE_CHAIN, quoteSigner: signer }]) };
}

/** The upstream does not know the quote. */
export const UNKNOWN: Scripted = {
  records: [{ id: QUOTE_ID, type: 'quote', status: 'unknown', updatedAt: null }],
};

export function typesOf(events: readonly RenderedEvent[]): string[] {
  return events.map(({ type }) => type);
}

/** Quotes under watch: `start` can be called again, for a restart. */
export type Watching = {
  hook: TestReceiver;
  config: TestConfig;
  start: () => Promise<{ daemon: Daemon; signals: Signals }>;
};

/** Shared means of tests of imported quotes: an upstream, files of quotes, and daemons that watch them. */
export function quoteStage({ later, started }: ReturnType<typeof opening>) {
  // Recent, because old ones are watched no longer, and the same for every poll.
  const times = { active: now() - 20, submitted: now() - 10 };
  return {
    /** The upstream shows the quote in a status that it has just reached. */
    shown: (status: keyof typeof times, more: JsonObject = {}): Scripted => ({
      records: [{ id: QUOTE_ID, type: 'quote', status, updatedAt: times[status], steps: [], ...more }],
    }),

    /** Starts an upstream that answers as the test decides, and publishes the signer unless the test sets other chains. */
    serving: (
      answer: ScriptedUpstream['answer'],
      chains: () => Scripted | Promise<Scripted> = () => chainsWith(QUOTE_SIGNER.address),
    ): Promise<ScriptedUpstream> =>
      started(
        new ScriptedUpstream((request) => (request.path === '/v1/chains' ? chains() : answer(request)), {
          lists: true,
        }),
      ),

    quoteFile: async (quote: JsonObject): Promise<string> => {
      const folder = await mkdtemp(join(tmpdir(), 'intentwatch-quote-'));
      later(() => rm(folder, { recursive: true, maxRetries: 5 }));
      const file = join(folder, 'quote.json');
      await writeFile(file, JSON.stringify(quote));
      return file;
    },

    /** A config with quotes, whose receiver gets the events of a subject in order. */
    watching: async (
      baseUrl: string,
      quotes: (string | { file: string; watchVault?: true })[],
      {
        quoteDomain = DEPLOYMENT.domain,
        ...more
      }: { quoteDomain?: QuoteDomain | null } & Record<string, unknown> = {},
    ): Promise<Watching> => {
      const hook = await started(new TestReceiver());
      const config: TestConfig = {
        baseUrl,
        redisUrl: inject('redisUrl'),
        prefix: testPrefix(),
        receivers: { hook: { url: hook.url, more: { ordering: 'subject', events: ['*', 'intentwatch.*'] } } },
        subscriptions: [{ name: 's', quotes, receivers: ['hook'], ...more }],
        upstream: { quoteDomain },
      };
      const start = async () => {
        const running = await startDaemon(config);
        later(() => running.daemon.close());
        return running;
      };
      return { hook, config, start };
    },
  };
}
