import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { Sandbox } from '../../src/sandbox/sandbox.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { hashOf, type Scripted, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started, child } = opening();

const UUID = '3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41';
const ID = `quote:${UUID}`;
const HASH: Hex = `0x${'ab'.repeat(32)}`;
const CHAIN = 8453;
const FAR = 4_102_444_800;
const SIGNER = privateKeyToAccount(`0x${'11'.repeat(32)}`);
const OTHER_SIGNER = privateKeyToAccount(`0x${'22'.repeat(32)}`);

/** The order of secp256k1. */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

const QUOTE_TYPES = {
  Quote: [
    { name: 'id', type: 'string' },
    { name: 'intentHashes', type: 'bytes32[]' },
    { name: 'expiresAt', type: 'uint64' },
  ],
} as const;

async function signedQuote(expiresAt = FAR, signer = SIGNER): Promise<JsonObject> {
  const signature = await signer.signTypedData({
    domain: { name: 'ServiceQuoteV1', version: '1', chainId: CHAIN },
    types: QUOTE_TYPES,
    primaryType: 'Quote',
    message: { id: ID, intentHashes: [HASH], expiresAt: BigInt(expiresAt) },
  });
  return {
    id: ID,
    type: 'exact-in',
    signature,
    expiresAt,
    intentHash: HASH,
    source: { chainId: CHAIN },
    steps: [{ type: 'BRIDGE', intents: [{ intentHash: HASH, role: 'primary' }] }],
  };
}

const chains = (signer: string | null): Scripted => ({
  status: 200,
  body: JSON.stringify([{ chainId: CHAIN, quoteSigner: signer }]),
});

const unknown = (id = ID): Scripted => ({
  records: [{ id, type: 'quote', status: 'unknown', updatedAt: null }],
});

/** The moments at which the quote comes into its statuses: recent, for old ones are watched no longer. */
const TIMES = new Map([
  ['active', now() - 20],
  ['submitted', now() - 10],
]);

const shown = (status: string): Scripted => ({
  records: [{ id: ID, type: 'quote', status, updatedAt: TIMES.get(status) ?? null, steps: [] }],
});

/** The same signature with its last byte counted from another number than 27. */
function withEnd(signature: string, from: number): string {
  const parity = Number.parseInt(signature.slice(-2), 16) - 27;
  return `${signature.slice(0, -2)}${(from + parity).toString(16).padStart(2, '0')}`;
}

/** The other of the two signatures that recover alike. */
function withHighS(signature: string): string {
  const s = (ORDER - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0');
  return `${signature.slice(0, 66)}${s}${signature.endsWith('1b') ? '1c' : '1b'}`;
}

async function quoteFile(quote: JsonObject): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-quote-'));
  later(() => rm(folder, { recursive: true }));
  const file = join(folder, 'quote.json');
  await writeFile(file, JSON.stringify(quote));
  return file;
}

async function watching(baseUrl: string, quotes: (string | { file: string })[], more: object = {}) {
  const hook = await started(new TestReceiver());
  const config = {
    baseUrl,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url } },
    subscriptions: [{ name: 's', quotes, receivers: ['hook'], ...more }],
  };
  const start = async () => {
    const running = await startDaemon(config);
    later(() => running.daemon.close());
    return running;
  };
  return { hook, config, start };
}

const typesOf = (events: readonly RenderedEvent[]): string[] => events.map(({ type }) => type);

function now(): number {
  return Math.floor(Date.now() / 1_000);
}

describe('a quote that was handed over', () => {
  test('is verified before anything is asked about it, and followed in silence when it is valid', async () => {
    const upstream = await started(
      new ScriptedUpstream(({ path }) => (path === '/v1/chains' ? chains(SIGNER.address) : shown('active')), {
        lists: true,
      }),
    );
    const { hook, start } = await watching(upstream.url, [{ file: await quoteFile(await signedQuote()) }]);
    await start();
    const events = await hook.until((all) => all.length === 1);
    const paths = upstream.asked.map(({ path }) => path);
    expect(paths.indexOf('/v1/chains')).toBe(0);
    expect(paths).toContain('/v1/intents/status');
    expect(events).toMatchObject([{ type: 'quote.active', data: { sequence: 1, previousStatus: null } }]);
  });

  test.each([
    ['recovery byte 0 or 1', (signature: string) => withEnd(signature, 0)],
    ['a high s', (signature: string) => withHighS(signature)],
  ])('and signed with %s holds, so that its expiry is told', async (_, rewrite) => {
    const upstream = await started(
      new ScriptedUpstream(({ path }) => (path === '/v1/chains' ? chains(SIGNER.address) : shown('active')), {
        lists: true,
      }),
    );
    const quote = await signedQuote(now() - 10);
    const file = await quoteFile({ ...quote, signature: rewrite(String(quote.signature)) });
    const { hook, start } = await watching(upstream.url, [{ file }]);
    await start();
    const events = await hook.until((all) => all.length === 2);
    expect(typesOf(events)).toEqual(['quote.active', 'quote.expired']);
  });

  test.each<[string, (quote: JsonObject) => JsonObject, object]>([
    ['another key', (quote) => quote, { part: 'signature', recovered: OTHER_SIGNER.address }],
    ['an expiry that was moved', (quote) => ({ ...quote, expiresAt: FAR + 1 }), { part: 'signature' }],
    [
      'an intent that was added',
      ({ steps, ...quote }) => ({ ...quote, steps: [...z.array(z.json()).parse(steps), step(hashOf(9))] }),
      { part: 'steps', recovered: expect.any(String) },
    ],
    ['a signature cut short', (quote) => ({ ...quote, signature: '0x1234' }), { part: 'signature' }],
    ['no expiry', ({ expiresAt: _, ...quote }) => quote, { part: 'expiresAt', recovered: null }],
  ])('and has %s is told as invalid, with the part that is wrong', async (name, alter, signature) => {
    const upstream = await started(
      new ScriptedUpstream(({ path }) => (path === '/v1/chains' ? chains(SIGNER.address) : unknown()), {
        lists: true,
      }),
    );
    const signer = name === 'another key' ? OTHER_SIGNER : SIGNER;
    const file = await quoteFile(alter(await signedQuote(FAR, signer)));
    const { hook, start } = await watching(upstream.url, [{ file }]);
    await start();
    const [event] = await hook.until((all) => all.length === 1);
    expect(event).toMatchObject({
      type: 'quote.signature_invalid',
      data: {
        sequence: 1,
        status: 'unknown',
        changes: [],
        record: { id: ID, signature: { valid: false, reason: expect.any(String), ...signature } },
      },
    });
  });

  test('and is invalid is told so once, also over a restart, and followed all the same', async () => {
    let status = unknown();
    const upstream = await started(
      new ScriptedUpstream(({ path }) => (path === '/v1/chains' ? chains(SIGNER.address) : status), {
        lists: true,
      }),
    );
    const file = await quoteFile(await signedQuote(now() - 10, OTHER_SIGNER));
    const { hook, start } = await watching(upstream.url, [{ file }]);
    const { daemon } = await start();
    await hook.until((all) => all.length === 1);
    await daemon.close();
    // It was found out once: a restart neither tells it again nor asks again.
    const asked = upstream.asked.length;
    status = shown('active');
    await start();
    const events = await hook.until((all) => all.length === 2);
    expect(events[1]).toMatchObject({
      type: 'quote.active',
      data: { sequence: 2, previousStatus: 'unknown' },
    });
    expect(upstream.asked.slice(asked).filter(({ path }) => path === '/v1/chains')).toEqual([]);
  });

  test('and is invalid is told so once, also when the process ends between the event and our note of it', async () => {
    const upstream = await started(
      new ScriptedUpstream(({ path }) => (path === '/v1/chains' ? chains(SIGNER.address) : shown('active')), {
        lists: true,
      }),
    );
    const file = await quoteFile(await signedQuote(FAR, OTHER_SIGNER));
    const { hook, config, start } = await watching(upstream.url, [{ file }]);
    const { daemon } = await start();
    await hook.until((all) => all.length === 2);
    await daemon.close();
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    await redis.del(`{${config.prefix}}:verdicts`);
    await start();
    await eventually('a second verdict', async () =>
      redis.exists(`{${config.prefix}}:verdicts`).then(Boolean),
    );
    expect(typesOf(hook.events)).toEqual(['quote.signature_invalid', 'quote.active']);
    expect(await redis.xlen(`{${config.prefix}}:events`)).toBe(2);
  });

  test('is verified once: a signer that rotates later takes nothing back', async () => {
    let signer = SIGNER.address;
    let status = shown('active');
    const upstream = await started(
      new ScriptedUpstream(({ path }) => (path === '/v1/chains' ? chains(signer) : status), { lists: true }),
    );
    const { hook, start } = await watching(upstream.url, [{ file: await quoteFile(await signedQuote()) }]);
    const { daemon } = await start();
    await hook.until((all) => all.length === 1);
    await daemon.close();
    signer = OTHER_SIGNER.address;
    status = shown('submitted');
    await start();
    expect(typesOf(await hook.until((all) => all.length === 2))).toEqual(['quote.active', 'quote.submitted']);
  });

  test('is verified anew with another content', async () => {
    const upstream = await started(
      new ScriptedUpstream(({ path }) => (path === '/v1/chains' ? chains(SIGNER.address) : unknown()), {
        lists: true,
      }),
    );
    const file = await quoteFile({ ...(await signedQuote(now() - 10)), expiresAt: FAR });
    const { hook, start } = await watching(upstream.url, [{ file }]);
    const { daemon } = await start();
    await hook.until((all) => all.length === 1);
    await daemon.close();
    await writeFile(file, JSON.stringify(await signedQuote(now() - 10)));
    await start();
    expect(typesOf(await hook.until((all) => all.length === 2))).toEqual([
      'quote.signature_invalid',
      'quote.expired',
    ]);
  });

  test.each<[string, Scripted]>([
    ['cannot be read', { status: 503, body: '<html>gateway</html>' }],
    ['name no signer', chains(null)],
    ['name something that is no signer', chains('soon')],
  ])('is not called invalid where the chains %s, and goes on being polled', async (_, answer) => {
    const upstream = await started(
      new ScriptedUpstream(({ path }) => (path === '/v1/chains' ? answer : shown('active')), { lists: true }),
    );
    const { hook, config, start } = await watching(upstream.url, [
      { file: await quoteFile(await signedQuote(now() - 10, OTHER_SIGNER)) },
    ]);
    await start();
    const events = await hook.until((all) => all.length === 1);
    // Nothing that it says is believed before it is verified, its expiry neither.
    await upstream.asks(({ path }) => path === '/v1/intents/status');
    expect(typesOf(events)).toEqual(['quote.active']);
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    expect(await redis.hgetall(`{${config.prefix}}:verdicts`)).toEqual({});
  });

  test('is told as invalid later where the chains could not be read at first', async () => {
    let away = true;
    const upstream = await started(
      new ScriptedUpstream(
        ({ path }) => {
          if (path !== '/v1/chains') return shown('active');
          return away ? { status: 503, body: '' } : chains(SIGNER.address);
        },
        { lists: true },
      ),
    );
    const { hook, start } = await watching(upstream.url, [
      { file: await quoteFile(await signedQuote(FAR, OTHER_SIGNER)) },
    ]);
    const { daemon } = await start();
    await hook.until((all) => all.length === 1);
    await daemon.close();
    away = false;
    await start();
    const events = await hook.until((all) => all.length === 2);
    expect(events[1]).toMatchObject({
      type: 'quote.signature_invalid',
      data: { sequence: 2, status: 'active', record: { status: 'active', signature: { part: 'signature' } } },
    });
  });

  test('expires by the clock, once, after a look that shows it unfunded, and can be known later', async () => {
    let status = unknown();
    const upstream = await started(
      new ScriptedUpstream(({ path }) => (path === '/v1/chains' ? chains(SIGNER.address) : status), {
        lists: true,
      }),
    );
    const expiresAt = now() + 3;
    const { hook, start } = await watching(upstream.url, [
      { file: await quoteFile(await signedQuote(expiresAt)) },
    ]);
    const { daemon } = await start();
    const [event] = await hook.until((all) => all.length === 1);
    expect(event).toMatchObject({
      type: 'quote.expired',
      data: { sequence: 1, status: 'unknown', changes: [], record: { id: ID, expiresAt } },
    });
    expect(Date.parse(event?.timestamp ?? '')).toBeGreaterThanOrEqual(expiresAt * 1_000);
    await daemon.close();
    status = shown('active');
    const again = await start();
    await hook.until((all) => all.length === 2);
    await again.daemon.close();
    status = shown('submitted');
    await start();
    expect(typesOf(await hook.until((all) => all.length === 3))).toEqual([
      'quote.expired',
      'quote.active',
      'quote.submitted',
    ]);
  });

  test('has a look due right after its end, however rarely it is polled by then', async () => {
    const old = { id: ID, type: 'quote', status: 'active', updatedAt: now() - 3 * 86_400 };
    const upstream = await started(
      new ScriptedUpstream(
        ({ path }) => (path === '/v1/chains' ? chains(SIGNER.address) : { records: [old] }),
        { lists: true },
      ),
    );
    const expiresAt = now() + 60;
    const { hook, config, start } = await watching(upstream.url, [
      { file: await quoteFile(await signedQuote(expiresAt)) },
    ]);
    await start();
    await hook.until((all) => all.length === 1);
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    const dueMs = await eventually('the plan of the next look', async () => {
      const planned = Number(await redis.zscore(`{${config.prefix}}:plan:status:alarms`, ID));
      return planned > 0 && planned;
    });
    expect(dueMs - expiresAt * 1_000).toBeGreaterThan(0);
    expect(dueMs - expiresAt * 1_000).toBeLessThan(10_000);
  });

  test('does not expire when the look after its end shows that it was funded', async () => {
    const expiresAt = now() + 2;
    const upstream = await started(
      new ScriptedUpstream(
        ({ path }) => {
          if (path === '/v1/chains') return chains(SIGNER.address);
          return Date.now() < expiresAt * 1_000 ? shown('active') : shown('submitted');
        },
        { lists: true },
      ),
    );
    const { hook, start } = await watching(upstream.url, [
      { file: await quoteFile(await signedQuote(expiresAt)) },
    ]);
    await start();
    await hook.until((all) => typesOf(all).includes('quote.submitted'));
    await upstream.asks(({ path }) => path === '/v1/intents/status');
    expect(typesOf(hook.events)).not.toContain('quote.expired');
  });
});

function step(intentHash: string): JsonObject {
  return { type: 'BRIDGE', intents: [{ intentHash, role: 'primary' }] };
}

describe('quotes of the sandbox', () => {
  const QUOTE = z.looseObject({ id: z.string(), source: z.looseObject({ chainId: z.number() }) });

  test('are told as they are: funded in time, expired, altered, signed by a signer of before', async () => {
    const sandbox = await started(new Sandbox({ timeScale: 60, transfersPerSecond: 0 }));
    const { url, controlUrl } = sandbox;
    const post = async (target: string, body: object): Promise<unknown> => {
      const headers = { 'content-type': 'application/json', 'x-api-key': 'sandbox-key' };
      const answer = await fetch(target, { method: 'POST', headers, body: JSON.stringify(body) });
      return answer.json();
    };
    const quote = async () =>
      QUOTE.parse(
        await post(`${url}/v1/quotes`, {
          type: 'exact-in',
          dappId: 'test',
          slippage: 0.005,
          source: { chainId: 8453, token: USDC_BASE, funder: OWNER, amount: '100000000' },
          destination: { chainId: 10, token: USDC_OPTIMISM, recipient: OWNER },
        }),
      );
    const old = await quote();
    await post(`${controlUrl}/rotate-signer`, {});
    const [funded, expired, altered] = [await quote(), await quote(), await quote()];
    const files = await Promise.all(
      [old, funded, expired, { ...altered, source: { ...altered.source, chainId: 10 } }].map(async (one) => ({
        file: await quoteFile(z.record(z.string(), z.json()).parse(one)),
      })),
    );
    await post(`${controlUrl}/fund`, { quoteId: funded.id });
    const { hook, start } = await watching(url, files);
    await start();
    const of = (events: readonly RenderedEvent[], id: string): string[] =>
      events.filter(({ data }) => data.subject.id === id).map(({ type }) => type);
    const events = await hook.until(
      (all) =>
        of(all, expired.id).includes('quote.expired') &&
        of(all, funded.id).length > 0 &&
        [old.id, altered.id].every((id) => of(all, id).length > 1),
    );
    expect(of(events, expired.id)).toEqual(['quote.active', 'quote.expired']);
    expect(of(events, funded.id)[0]).toBe('quote.submitted');
    expect(of(events, funded.id)).not.toContain('quote.expired');
    for (const id of [old.id, altered.id]) {
      expect(of(events, id)).toEqual(['quote.signature_invalid', 'quote.active']);
    }
    const parts = events.flatMap(
      ({ data }) =>
        z.object({ signature: z.object({ part: z.string() }) }).safeParse(data.record).data?.signature.part ??
        [],
    );
    expect(parts.sort()).toEqual(['signature', 'source.chainId']);
  });
});

const OWNER = '0x52908400098527886e0f7030069857d2e4169ee7';
const USDC_BASE = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const USDC_OPTIMISM = '0x0b2c639c533813f4aa9d7837caf62653d097ff85';

describe('before a quote expires', () => {
  const watched = async (status: Scripted, expiresAt: number, more: object = {}) => {
    const upstream = await started(
      new ScriptedUpstream(({ path }) => (path === '/v1/chains' ? chains(SIGNER.address) : status), {
        lists: true,
      }),
    );
    const file = await quoteFile(await signedQuote(expiresAt));
    const { hook, start } = await watching(upstream.url, [{ file }], more);
    await start();
    return hook;
  };

  test('that is told to who wants it, once, and then its end', async () => {
    const hook = await watched(shown('active'), now() + 12, { warnBefore: '8s' });
    const events = await hook.until((all) => all.length === 3);
    expect(typesOf(events)).toEqual(['quote.active', 'quote.expiring', 'quote.expired']);
    expect(events[1]?.data).toMatchObject({ status: 'active', changes: [], record: { id: ID } });
  });

  test('nothing is told where nobody wants it, and no warning of what is past', async () => {
    const wanted = [{}, { warnBefore: '1m' }];
    const hooks = [await watched(shown('active'), now() + 3, wanted[0])];
    hooks.push(await watched(shown('active'), now() - 10, wanted[1]));
    for (const hook of hooks) {
      const events = await hook.until((all) => all.length === 2);
      expect(typesOf(events)).toEqual(['quote.active', 'quote.expired']);
    }
  });
});

describe('a transfer whose quote was handed over', () => {
  const TOKENS = {
    source: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
    destination: '0x0b2c639c533813f4aa9d7837caf62653d097ff85',
  };
  const destinationTx = { chainId: 10, txHash: `0x${'d7'.repeat(32)}`, token: TOKENS.destination };
  const sourceTx = {
    chainId: CHAIN,
    txHash: `0x${'51'.repeat(32)}`,
    token: TOKENS.source,
    amount: '1000000',
  };
  const promising = async (): Promise<JsonObject> => ({
    ...(await signedQuote()),
    destination: {
      chainId: 10,
      token: TOKENS.destination,
      recipient: '0x52908400098527886e0f7030069857d2e4169ee7',
      amountOut: '999000',
      minAmountOut: '994000',
    },
    fees: [{ type: 'solver', token: TOKENS.source, amount: '1000' }],
  });

  /** What follows the funding: the intent as it was last shown, and a change after which nothing else can come. */
  async function followed(shownAs: readonly JsonObject[], quote: JsonObject) {
    let moment = 0;
    const upstream = await started(
      new ScriptedUpstream(
        ({ path, query }) => {
          if (path === '/v1/chains') return chains(SIGNER.address);
          if (query.intentHash !== HASH)
            return {
              records: [
                {
                  id: ID,
                  type: 'quote',
                  status: 'submitted',
                  updatedAt: TIMES.get('submitted') ?? null,
                  intentHashes: [HASH],
                },
              ],
            };
          const record = shownAs[Math.min(moment, shownAs.length - 1)] ?? {};
          moment += 1;
          return { records: [{ id: `intent:${HASH}`, type: 'intent', sourceTx, ...record }] };
        },
        { lists: true },
      ),
    );
    const { hook, start } = await watching(upstream.url, [{ file: await quoteFile(quote) }]);
    const running = await start();
    const settled = (all: readonly RenderedEvent[]) => all.some(({ type }) => type === 'intent.settled');
    const events = (await hook.until(settled)).filter(({ data }) => data.subject.kind === 'intent');
    return { events, running };
  }

  test('is told as short, once, when less was delivered than the minimum', async () => {
    const short = { ...destinationTx, amount: '900000' };
    const { events, running } = await followed(
      [
        { status: 'pending', updatedAt: now() - 9 },
        { status: 'filled', updatedAt: now() - 8, destinationTx: short },
        { status: 'filled', updatedAt: now() - 7, destinationTx: short, note: 'more' },
        { status: 'settled', updatedAt: now() - 6, destinationTx: short },
      ],
      await promising(),
    );
    expect(typesOf(events)).toEqual([
      'intent.pending',
      'intent.filled',
      'intent.short',
      'intent.updated',
      'intent.settled',
    ]);
    expect(events[0]?.data.transfer).toMatchObject({
      promised: { amount: '999000', units: '0.999', symbol: 'USDC' },
      fees: [{ kind: 'solver', amount: '1000' }],
      recipient: '0x52908400098527886e0f7030069857d2e4169ee7',
    });
    expect(events[2]?.data).toMatchObject({
      status: 'filled',
      changes: [],
      transfer: { shortfall: { amount: '94000', units: '0.094', share: 0.094567 } },
    });
    const metrics = await (await fetch(`${running.daemon.url}/metrics`)).text();
    expect(metrics).toContain('intentwatch_delivered_ratio_count{route="8453:10"} 1');
  });

  test.each([
    ['', 0],
    [', and the look-up after that fails', 1],
  ])('is told as short also where the quote is found valid only after the transfer has ended%s', async (_, failures) => {
    const ended = Promise.withResolvers<void>();
    const endedAt = now() - 6;
    let isEnded = false;
    let failed = 0;
    const upstream = await started(
      new ScriptedUpstream(
        async ({ path, query }) => {
          if (path === '/v1/chains') {
            await ended.promise;
            return chains(SIGNER.address);
          }
          if (query.intentHash !== HASH) return shown('submitted');
          if (isEnded && failed < failures) {
            failed += 1;
            return { status: 502, body: '{}' };
          }
          const record = { status: 'settled', updatedAt: endedAt, sourceTx };
          const delivered = { destinationTx: { ...destinationTx, amount: '900000' } };
          return { records: [{ id: `intent:${HASH}`, type: 'intent', ...record, ...delivered }] };
        },
        { lists: true },
      ),
    );
    const quotes = [{ file: await quoteFile(await promising()) }];
    const { hook, start } = await watching(upstream.url, quotes, { intents: [HASH] });
    await start();
    await hook.until((all) => all.some(({ type }) => type === 'intent.settled'));
    isEnded = true;
    ended.resolve();
    const events = await hook.until((all) => all.some(({ type }) => type === 'intent.short'));
    expect(typesOf(events.filter(({ data }) => data.subject.kind === 'intent'))).toEqual([
      'intent.settled',
      'intent.short',
    ]);
    expect(failed).toBe(failures);
  });

  test.each([
    ['at first sight', 0],
    ['after it was pending', 2],
  ])('is told as short once where the daemon is killed between the record and that, %s', async (_, pendingLooks) => {
    let looks = 0;
    const fundedAt = now() - 8;
    const upstream = await started(
      new ScriptedUpstream(
        ({ path, query }) => {
          if (path === '/v1/chains') return chains(SIGNER.address);
          if (query.intentHash !== HASH) return { ...shown('submitted') };
          looks += 1;
          if (looks <= pendingLooks) {
            return {
              records: [{ id: `intent:${HASH}`, type: 'intent', status: 'pending', updatedAt: fundedAt }],
            };
          }
          const record = { status: 'settled', updatedAt: now() - 6, sourceTx };
          const delivered = { destinationTx: { ...destinationTx, amount: '900000' } };
          return { records: [{ id: `intent:${HASH}`, type: 'intent', ...record, ...delivered }] };
        },
        { lists: true },
      ),
    );
    const file = await quoteFile(await promising());
    const hook = await started(new TestReceiver());
    const marker = `${file}.killed`;
    const killer = new URL('../support/killed-before-write.ts', import.meta.url);
    killer.search = String(new URLSearchParams({ text: 'intent.short', marker }));
    const daemon = child(
      {
        baseUrl: upstream.url,
        redisUrl: inject('redisUrl'),
        prefix: testPrefix(),
        receivers: { hook: { url: hook.url } },
        subscriptions: [{ name: 's', quotes: [{ file }], intents: [HASH], receivers: ['hook'] }],
      },
      ['--import', killer.href],
    );
    void daemon.start();
    await eventually('the daemon was killed', () => existsSync(marker));
    await daemon.kill();
    await daemon.start();
    await hook.until((all) =>
      ['intent.settled', 'intent.short'].every((wanted) => all.some(({ type }) => type === wanted)),
    );
    const events = new Map(hook.events.map((event) => [event.id, event]));
    const told = [...events.values()].filter(({ data }) => data.subject.kind === 'intent');
    const types = typesOf(told).filter((type) => type !== 'intent.pending' && type !== 'intent.updated');
    expect(types.toSorted()).toEqual(['intent.settled', 'intent.short']);
  });

  test.each<[string, JsonObject]>([
    ['the minimum', { amount: '994000' }],
    ['another token', { amount: '1', token: TOKENS.source }],
    ['on another chain', { amount: '1', chainId: 42161 }],
  ])('is not told as short when what was delivered is %s', async (_, delivered) => {
    const { events } = await followed(
      [
        { status: 'pending', updatedAt: now() - 9 },
        { status: 'settled', updatedAt: now() - 6, destinationTx: { ...destinationTx, ...delivered } },
      ],
      await promising(),
    );
    expect(typesOf(events)).toEqual(['intent.pending', 'intent.settled']);
  });
});
