import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import type { Daemon } from '../../src/daemon/daemon.ts';
import type { Signals } from '../../src/signals.ts';
import { signalled, startDaemon, type TestConfig, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const WALLET_A = '0x1111111111111111111111111111111111111111';
const WALLET_B = '0x2222222222222222222222222222222222222222';
const HASH = hashOf(1);

const { later, started } = opening();

async function upstream(answer: ScriptedUpstream['answer']): Promise<ScriptedUpstream> {
  return started(new ScriptedUpstream(answer));
}

async function receiver(): Promise<TestReceiver> {
  return started(new TestReceiver());
}

async function daemon(config: TestConfig): Promise<{ daemon: Daemon; signals: Signals }> {
  const started = await startDaemon(config);
  later(() => started.daemon.close());
  return started;
}

describe('two processes that hold answers about one subject', () => {
  test('a slow old answer is dropped when a newer one was committed while it was on its way', async () => {
    const release = Promise.withResolvers<void>();
    let filled = false;
    let pages = 0;
    const now = Math.floor(Date.now() / 1_000) + 60;
    const server = await upstream(async ({ query }) => {
      if (query.intentHash) {
        return { records: [intentRecord(HASH, filled ? 'filled' : 'pending', now + (filled ? 5 : 0))] };
      }
      pages += 1;
      if (pages > 1) return { records: [] };
      // The page was made while the transfer was expired at a yet newer time: it would be believed, were it not late.
      await release.promise;
      return { records: [intentRecord(HASH, 'expired', now + 9)] };
    });
    const hook = await receiver();
    const config = {
      baseUrl: server.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', wallets: [WALLET_A], intents: [HASH], receivers: ['hook'] }],
      // The page is awaited however long the rest takes.
      more: { upstream: { baseUrl: server.url, apiKey: 'key', timeout: '5m' } },
    };
    const pageRequest = server.awaitRequest(({ query }) => query.wallet !== undefined);
    const first = await daemon(config);
    const second = await daemon(config);
    await pageRequest;
    await hook.until((events) => events.length === 1);
    filled = true;
    await hook.until((events) => events.some((event) => event.type === 'intent.filled'));

    const dropped = Promise.race(
      [first, second].map(({ signals }) =>
        signalled(
          (take: (value: { outcome: string }) => void) => signals.on('record.decided', take),
          ({ outcome }) => outcome === 'superseded',
        ),
      ),
    );
    release.resolve();
    await dropped;

    expect(hook.events.map(({ type, data }) => [type, data.sequence])).toEqual([
      ['intent.pending', 1],
      ['intent.filled', 2],
    ]);
  });

  test('a transfer first seen under one wallet is reported once to the receiver of another that shows it later', async () => {
    const now = Math.floor(Date.now() / 1_000) + 60;
    let shownUnderA = false;
    const server = await upstream(({ query }) => {
      if (query.intentHash) return { records: [intentRecord(HASH, 'pending', now)] };
      const shown = query.wallet === WALLET_B || shownUnderA;
      return { records: shown ? [intentRecord(HASH, 'pending', now)] : [] };
    });
    const [hookA, hookB] = [await receiver(), await receiver()];
    await daemon({
      baseUrl: server.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { a: { url: hookA.url }, b: { url: hookB.url } },
      subscriptions: [
        { name: 'desk-a', wallets: [WALLET_A], receivers: ['a'], metadata: { desk: 'a' } },
        { name: 'desk-b', wallets: [WALLET_B], receivers: ['b'], metadata: { desk: 'b' } },
      ],
    });
    const [eventB] = await hookB.until((events) => events.length === 1);
    expect(hookA.events).toEqual([]);
    shownUnderA = true;
    const [eventA] = await hookA.until((events) => events.length === 1);

    expect(eventA?.id).toBe(eventB?.id);
    expect(eventA?.data).toMatchObject({
      wallets: [WALLET_A],
      subscriptions: ['desk-a'],
      metadata: { desk: 'a' },
    });
    expect(eventB?.data).toMatchObject({
      wallets: [WALLET_B],
      subscriptions: ['desk-b'],
      metadata: { desk: 'b' },
    });
    expect([hookA.events.length, hookB.events.length]).toEqual([1, 1]);
  });
});

describe('a process that is cut off at the worst time', () => {
  test('a commit whose reply was cut is sent again, recognised, and makes one event', async () => {
    const target = new URL(inject('redisUrl'));
    const proxy = await started(new TcpProxy({ host: target.hostname, port: Number(target.port) }));
    const prefix = testPrefix();
    const direct = new Redis(inject('redisUrl'));
    later(async () => void (await direct.quit()));
    // The commit script is the only one whose arguments hold what is counted; its first reply never comes through.
    let cuts = 0;
    let sent = 0;
    proxy.onRequest = (bytes) => {
      if (bytes.includes('intent|pending')) sent += 1;
      return 'pass';
    };
    proxy.onReply = (bytes) => {
      if (sent === 0 || cuts > 0 || !bytes.includes('committed')) return 'pass';
      cuts += 1;
      return 'cut';
    };
    const listening = Promise.withResolvers<void>();
    const server = await upstream(async ({ query }) => {
      await listening.promise;
      return { records: query.intentHash ? [intentRecord(HASH, 'pending', 1_700_000_000)] : [] };
    });
    const hook = await receiver();
    const outcomes: string[] = [];
    const { signals } = await daemon({
      baseUrl: server.url,
      redisUrl: proxy.url,
      prefix,
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', intents: [HASH], receivers: ['hook'] }],
    });
    const committed: string[] = [];
    signals.on('record.decided', ({ outcome }) => outcomes.push(outcome));
    signals.on('event.committed', ({ event }) => committed.push(event.type));
    listening.resolve();
    await hook.until((events) => events.length > 0);
    await signalled((take: (value: object) => void) => signals.on('poll.ended', take));

    expect(outcomes.length).toBeGreaterThan(0);
    expect(outcomes).not.toContain('superseded');
    expect(committed).toEqual(['intent.pending']);
    expect(cuts).toBe(1);
    expect(sent).toBeGreaterThan(1);
    expect(await direct.xlen(`{${prefix}}:events`)).toBe(1);
    expect(hook.events.map((event) => event.data.sequence)).toEqual([1]);
  });

  test.each([
    ['between enqueue and cursor', 'swallow' as const],
    ['just after the cursor moved', 'swallow-after' as const],
  ])('a relay that dies %s has a successor, and every event comes exactly once', async (_, verdict) => {
    const target = new URL(inject('redisUrl'));
    const proxy = await started(new TcpProxy({ host: target.hostname, port: Number(target.port) }));
    const prefix = testPrefix();
    const server = await upstream(({ query }) =>
      query.intentHash
        ? { records: [intentRecord(query.intentHash, 'pending', 1_700_000_000)] }
        : { records: [] },
    );
    const hook = await receiver();
    const config = {
      baseUrl: server.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', intents: [hashOf(1), hashOf(2), hashOf(3)], receivers: ['hook'] }],
    };
    const direct = new Redis(inject('redisUrl'));
    later(async () => void (await direct.quit()));
    const cursor = (): Promise<string | null> => direct.hget(`{${prefix}}:cursors`, 'hook');
    // From the first move of a cursor on, this process neither sends nor receives anything, as if it were dead.
    let moved = false;
    proxy.onRequest = (bytes) => {
      if (
        !bytes.includes(`{${prefix}}:cursors`) ||
        !/\bhook\b[\s\S]*\d{13}-\d/.test(bytes.toString('latin1'))
      )
        return 'pass';
      if (!bytes.includes(`{${prefix}}:relay:lease`)) return 'pass';
      moved = true;
      return verdict;
    };
    const dying = await startDaemon({ ...config, redisUrl: proxy.url });
    later(() => dying.daemon.close());
    await eventually('the cursor moves', () => moved);
    await daemon(config);
    await hook.until((events) => new Set(events.map((event) => event.id)).size === 3);
    const newest = async (): Promise<string | undefined> =>
      (await direct.xrevrange(`{${prefix}}:events`, '+', '-', 'COUNT', 1))[0]?.[0];
    await eventually('the relay is at the end', async () => (await cursor()) === (await newest()));

    expect(hook.events.map((event) => event.data.subject.id).sort()).toEqual(
      [1, 2, 3].map((number) => `intent:${hashOf(number)}`),
    );
  });
});
