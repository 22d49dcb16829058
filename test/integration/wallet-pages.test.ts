import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import {
  hashOf,
  intentRecord,
  type ScriptedRequest,
  ScriptedUpstream,
} from '../support/scripted-upstream.ts';

const { later, started } = opening();

const WALLET = '0x1111111111111111111111111111111111111111';
const HASH = hashOf(4);

async function watching(
  upstream: ScriptedUpstream,
  options: { subscription?: object; more?: object },
  onEnd: (close: () => Promise<unknown>) => void = later,
): Promise<TestReceiver> {
  const hook = new TestReceiver();
  await hook.start();
  onEnd(() => hook.close());
  const { daemon } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url, more: { ordering: 'subject' } } },
    subscriptions: [{ name: 's', wallets: [WALLET], receivers: ['hook'], ...options.subscription }],
    more: options.more ?? {},
  });
  onEnd(() => daemon.close());
  return hook;
}

describe('a transfer that every page of its wallet shows', () => {
  test('is reported as overdue', async () => {
    // A change older than the watch is history: the watch begins when the first page is requested.
    let updatedAt: number | null = null;
    const upstream = await started(
      new ScriptedUpstream(() => {
        updatedAt ??= Math.floor(Date.now() / 1_000) + 2;
        return { records: [intentRecord(HASH, 'pending', updatedAt)] };
      }),
    );
    const hook = await watching(upstream, { subscription: { overdueAfter: '8s' } });
    const events = await hook.until((all) => all.length === 2);
    expect(events.map(({ type }) => type)).toEqual(['intent.pending', 'intent.overdue']);
  });

  test('is polled where a page shows it in an older state than its last', async () => {
    const updatedAt = Math.floor(Date.now() / 1_000) + 60;
    let status = 'settled';
    const upstream = await started(
      new ScriptedUpstream(() => ({ records: [intentRecord(HASH, status, updatedAt)] })),
    );
    const hook = await watching(upstream, {
      more: {
        // So few requests that the poll waits for its turn.
        upstream: { baseUrl: upstream.url, apiKey: 'sandbox-key', requestsPerSecond: 2 },
      },
    });
    await hook.until((events) => events.length === 1);
    status = 'filled';
    await upstream.awaitRequest(({ query }) => query.intentHash === HASH);
    expect(upstream.requests.filter(({ query }) => query.intentHash === HASH)).toHaveLength(1);
  });
});

describe('a listing that cannot be read', () => {
  const isPending = ({ query }: { query: Record<string, string> }): boolean => query.status === 'pending';
  const isHead = ({ query }: { query: Record<string, string> }): boolean =>
    query.status === undefined && query.cursor === undefined;

  // A page that fails slowly is due again before the others are. Without a wait it would be the only probe of the endpoint
  // group.
  test.concurrent.for([
    { name: 'pending', fails: isPending, works: isHead, ms: 0 },
    { name: 'pending', fails: isPending, works: isHead, ms: 4_000 },
    { name: 'head', fails: isHead, works: isPending, ms: 0 },
    { name: 'head', fails: isHead, works: isPending, ms: 4_000 },
  ])('blocks no request of another: $name, which fails after $ms ms', async ({ fails, works, ms }, {
    onTestFinished,
  }) => {
    const upstream = new ScriptedUpstream(async (request) => {
      if (fails(request)) {
        await sleep(ms);
        return { status: 503, body: '{}' };
      }
      return { records: [], nextCursor: isHead(request) ? 'behind' : null };
    });
    await upstream.start();
    onTestFinished(() => upstream.close());
    await watching(upstream, {}, (close) => onTestFinished(async () => void (await close())));
    await upstream.awaitRequest(fails);
    for (let times = 0; times < 3; times += 1) await upstream.awaitRequest(works);
  });
});

describe('the listing of one status', () => {
  test('is requested further where it shows for a short time a transfer that has moved on', async () => {
    const updatedAt = Math.floor(Date.now() / 1_000) + 60;
    // Enough of them that a page costs less than single polls, even when one has moved on.
    const hashes = [HASH, hashOf(5), hashOf(6), hashOf(7), hashOf(8)];
    const pending = hashes.map((hash) => intentRecord(hash, 'pending', updatedAt));
    let heads = 0;
    let isBehind = false;
    const upstream = await started(
      new ScriptedUpstream(({ query }) => {
        if (query.intentHash === HASH) return { records: [intentRecord(HASH, 'settled', updatedAt + 1)] };
        if (query.intentHash) return { records: pending.filter((_, at) => hashes[at] === query.intentHash) };
        if (query.status === 'pending') return { records: isBehind ? pending : pending.slice(1) };
        if (query.status) return { records: [] };
        heads += 1;
        return { records: heads === 1 ? pending : [] };
      }),
    );
    const hook = await watching(upstream, {});
    await hook.until((events) => events.some(({ type }) => type === 'intent.settled'));
    isBehind = true;
    const isListing = ({ query }: { query: Record<string, string> }): boolean => query.status === 'pending';
    for (let times = 0; times < 3; times += 1) await upstream.awaitRequest(isListing);
  });
});

describe('more transfers under way than a page shows', () => {
  /** Has some of 120 pending transfers fill at once; `isNextRead`: the pages of filled ones can be read. */
  async function fillAtOnce(count: number, isNextRead: boolean): Promise<ScriptedUpstream> {
    const updatedAt = Math.floor(Date.now() / 1_000) + 60;
    const hashes = Array.from({ length: 120 }, (_, index) => hashOf(100 + index));
    let filled = 0;
    const upstream = await started(
      new ScriptedUpstream(({ query }) => {
        const all = hashes.map((hash, index) => {
          const isFilled = index >= 120 - filled;
          return intentRecord(hash, isFilled ? 'filled' : 'pending', updatedAt + (isFilled ? 1 : 0));
        });
        if (query.intentHash) return { records: all.filter(({ id }) => id === `intent:${query.intentHash}`) };
        if (query.status === 'filled' && !isNextRead) return { status: 500, body: '' };
        const listed = all.filter(({ status }) => (query.status ?? status) === status);
        const from = Number(query.cursor ?? 0);
        const more = from + 50 < listed.length ? { nextCursor: String(from + 50) } : {};
        return { records: listed.slice(from, from + 50), ...more };
      }),
    );
    const hook = await watching(upstream, {});
    await hook.until((events) => events.length === 120);
    await upstream.awaitRequest(({ query }) => query.status === 'pending' && query.cursor !== undefined);
    filled = count;
    const events = await hook.until((come) => come.length === 120 + count);
    expect(events.filter(({ type }) => type === 'intent.filled')).toHaveLength(count);
    return upstream;
  }

  const isSingle = ({ query }: ScriptedRequest): boolean => query.intentHash !== undefined;

  test('are polled by the pages of their status, and those that move on together by the pages of the next one', async () => {
    const upstream = await fillAtOnce(40, true);
    expect(upstream.requests.some(({ query }) => query.status === 'filled')).toBe(true);
    expect(upstream.requests.filter(isSingle).length).toBeLessThan(5);
  });

  test('are polled one by one where the pages of the next status cannot be read', async () => {
    const upstream = await fillAtOnce(40, false);
    expect(upstream.requests.filter(isSingle).length).toBeGreaterThanOrEqual(40);
  });
});

describe('a transfer behind the first page of a wallet, long before the next sweep of all pages is due,', () => {
  const SELDOM = { polling: { fullSweepEvery: '1d' } };
  const hash = hashOf(9);

  test('is read for a subscription that has just come', async () => {
    const upstream = await started(
      new ScriptedUpstream(({ query }) =>
        query.cursor === 'behind'
          ? { records: [intentRecord(hash, 'settled', 1_700_000_000)] }
          : { records: [intentRecord(HASH, 'settled', 1_700_000_001)], nextCursor: 'behind' },
      ),
    );
    const [first, second] = [await started(new TestReceiver()), await started(new TestReceiver())];
    const subscription = (name: string): object => ({
      name,
      wallets: [WALLET],
      receivers: [name],
      history: 'emit',
    });
    const config = {
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { first: { url: first.url }, second: { url: second.url } },
      more: SELDOM,
    };
    const before = await startDaemon({ ...config, subscriptions: [subscription('first')] });
    await first.until((events) => events.length === 2);
    await before.daemon.close();
    const after = await startDaemon({
      ...config,
      subscriptions: [subscription('first'), subscription('second')],
    });
    later(() => after.daemon.close());
    const events = await second.until((all) => all.length === 2);
    expect(events.map(({ data }) => data.subject.id).sort()).toEqual([`intent:${HASH}`, `intent:${hash}`]);
  });

  test('is read where the sweep over new transfers was cut short', async () => {
    const updatedAt = Math.floor(Date.now() / 1_000) + 60;
    const head = Array.from({ length: 20 }, (_, index) =>
      intentRecord(hashOf(100 + index), 'settled', updatedAt + 100 - index),
    );
    let hasBurst = false;
    let refused = 0;
    const upstream = await started(
      new ScriptedUpstream(({ query }) => {
        if (query.status !== undefined) return { records: [] };
        if (query.cursor === undefined) {
          return hasBurst ? { records: head, nextCursor: 'behind' } : { records: head.slice(10) };
        }
        refused += 1;
        if (refused === 1) return { status: 400, body: '{}' };
        return { records: [intentRecord(hash, 'settled', updatedAt)] };
      }),
    );
    const hook = await watching(upstream, { more: SELDOM });
    await hook.until((events) => events.length === 10);
    // Only now the first poll is complete: it showed all pages, with the newest first.
    await upstream.awaitRequest(({ query }) => query.wallet !== undefined);
    head.splice(
      0,
      20,
      ...Array.from({ length: 20 }, (_, index) =>
        intentRecord(hashOf(200 + index), 'settled', updatedAt + 200 - index),
      ),
    );
    hasBurst = true;
    await hook.until((events) => events.some(({ data }) => data.subject.id === `intent:${hash}`));
    expect(refused).toBe(2);
  });

  test('is read where all items of a head have moved, though much of it was known', async () => {
    const updatedAt = Math.floor(Date.now() / 1_000) + 60;
    const seen = (status: string, at: number): JsonObject[] =>
      Array.from({ length: 5 }, (_, index) => intentRecord(hashOf(100 + index), status, at - index));
    const old = Array.from({ length: 15 }, (_, index) =>
      intentRecord(hashOf(200 + index), 'settled', updatedAt - 10 - index),
    );
    const fresh = Array.from({ length: 5 }, (_, index) =>
      intentRecord(hashOf(300 + index), 'settled', updatedAt + 100 - index),
    );
    let hasBurst = false;
    const upstream = await started(
      new ScriptedUpstream(({ query }) => {
        if (query.status !== undefined) return { records: [] };
        if (!hasBurst) return { records: [...seen('pending', updatedAt), ...old] };
        return query.cursor === undefined
          ? { records: [...fresh, ...seen('settled', updatedAt + 50)], nextCursor: 'behind' }
          : { records: [intentRecord(hash, 'settled', updatedAt + 10), ...old] };
      }),
    );
    const hook = await watching(upstream, { more: SELDOM });
    await hook.until((events) => events.length === 20);
    await upstream.awaitRequest(({ query }) => query.wallet !== undefined);
    hasBurst = true;
    await hook.until((events) => events.some(({ data }) => data.subject.id === `intent:${hash}`));
  });
});
