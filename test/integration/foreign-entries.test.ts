import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { asSubjectId, quoteId } from '../../src/domain/subjects/subject.ts';
import { Backlog } from '../../src/store/backlog.ts';
import { BatchStore } from '../../src/store/batches.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { DeliveryStore } from '../../src/store/deliveries.ts';
import { DroppedStore } from '../../src/store/dropped.ts';
import { ImportedQuotes } from '../../src/store/imported-quotes.ts';
import { Keys } from '../../src/store/keys.ts';
import { LearnedStore } from '../../src/store/learned.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { type PollStart, startPolls } from '../../src/store/poll-start.ts';
import { ReceiverStore } from '../../src/store/receivers.ts';
import { Registry } from '../../src/store/registry.ts';
import { ReplayStore } from '../../src/store/replays.ts';
import type { ForeignEntry } from '../../src/store/stored.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import type { Desired } from '../../src/store/sync-config.ts';
import { WalletStore } from '../../src/store/wallets.ts';
import { testPrefix } from '../support/daemon.ts';
import { CLAIM_KEY, deliveryStage } from '../support/delivery-stage.ts';
import { firstEpoch } from '../support/epoch.ts';
import { holdTimers } from '../support/held-timers.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { syncConfig, syncFence } from '../support/sync-config.ts';

const open = opening();
const INTENT = asSubjectId(`intent:${hashOf(3)}`);
const OTHER = asSubjectId(`intent:${hashOf(4)}`);
const RETENTION_MS = 60_000;

let redis: RedisClient;
let keys: Keys;
let found: ForeignEntry[];

beforeEach(() => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
  keys = new Keys(testPrefix());
  found = [];
});

afterEach(() => redis.disconnect());

function options() {
  return { retentionMs: RETENTION_MS, onForeign: (entry: ForeignEntry) => void found.push(entry) };
}

const ROUTE = {
  name: 'usdc',
  source: { chainId: 1, token: '0x1' },
  destination: { chainId: 10, token: '0x2' },
  amount: '100',
  funder: '0x1',
  recipient: '0x2',
  movedBy: 0.01,
  service: 'open' as const,
  executions: ['SELF_PUBLISH'],
  everyMs: 60_000,
};

function subscription(name: string): Desired['subscriptions'][number] {
  const rest = {
    receivers: ['a', 'b'],
    metadata: {},
    history: 'skip' as const,
    overdueAfterMs: null,
    warnBeforeMs: null,
    recipients: [],
  };
  return { name, ...rest, subjects: [INTENT] };
}

function receiver(name: string): Desired['receivers'][number] {
  const filter = { wallets: null, chains: null, minAmount: null };
  return { name, type: 'webhook', events: ['*'], filter, ordering: 'none' };
}

const WANTED: Desired = {
  digest: 'x',
  graceSpanMs: 0,
  receivers: [receiver('a'), receiver('b')],
  routes: [ROUTE],
  subscriptions: [subscription('one'), subscription('two')],
};

async function registry(): Promise<{ registry: Registry; subjects: SubjectStore }> {
  const { onForeign } = options();
  const subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys), ...options() });
  const made = new Registry(redis, keys, subjects, onForeign);
  await syncConfig(made, WANTED, '0-0');
  return { registry: made, subjects };
}

async function take(deps: { registry: Registry; subjects: SubjectStore }): Promise<PollStart> {
  const plan = new PlanStore(redis, keys);
  await plan.setBudgets({ status: 100 });
  const { polls } = await plan.claim('status', { process: 'p', most: 5, aheadMs: 100, sent: [] });
  const poll = polls.find(({ member }) => member === INTENT);
  if (poll === undefined) throw new Error('the subject was not claimed');
  const importedQuotes = new ImportedQuotes(redis, keys);
  const wallets = new WalletStore(redis, keys);
  const [start = null] = await startPolls({ redis, keys, importedQuotes, wallets, ...deps }, [poll], 'p');
  if (start === null || start instanceof Error) throw new Error('the poll was not claimed');
  return start;
}

describe('in the registry, an entry of another shape', () => {
  test.each([
    'no JSON',
    '{"name":"one"}',
    '7',
  ])('(%s) is written anew by a process that knows it', async (text) => {
    const { registry: mine } = await registry();
    await redis.hset(keys.subscriptions, 'one', text);
    await redis.hset(keys.receivers, 'b', text);
    await redis.hset(keys.routes, 'usdc', text);
    expect([...(await mine.subscriptions(['one|x', 'two|x'])).keys()]).toEqual(['one', 'two']);
    expect((await mine.receivers()).map(({ name }) => name).sort()).toEqual(['a', 'b']);
    const stored = async (): Promise<string> => (await redis.hget(keys.routes, 'usdc')) ?? '';
    expect(await mine.readRoute('usdc', await stored())).toEqual(ROUTE);
    expect(found.map(({ what }) => what)).toEqual(['subscription', 'receiver', 'route']);
    found = [];
    await mine.subscriptions(['one|x']);
    await mine.receivers();
    await mine.readRoute('usdc', await stored());
    expect(found).toEqual([]);
  });

  test('that no process can read is skipped, and removed at the next sync', async () => {
    const { registry: mine } = await registry();
    await redis.hset(keys.subscriptions, 'strange', 'no JSON');
    await redis.hset(keys.receivers, 'strange', 'no JSON');
    await mine.prune(Number.MAX_SAFE_INTEGER);
    expect((await mine.receivers()).map(({ name }) => name).sort()).toEqual(['a', 'b']);
    await syncConfig(mine, WANTED, '0-0');
    expect((await redis.hkeys(keys.subscriptions)).sort()).toEqual(['one', 'two']);
  });
});

test.each([
  'junk',
  'AT:junk',
  'AT:5:9',
])('a claim of another shape (%s) is made anew where a config names its subject', async (text) => {
  const mine = await registry();
  const key = `one|${INTENT}`;
  const at = await redis.hget(keys.wanted, key);
  await redis.hset(keys.claims(INTENT), key, text.replace('AT', at ?? ''));
  const { claims } = await take(mine);
  expect(claims.map((claim) => claim.key).sort()).toEqual([key, `two|${INTENT}`]);
  expect(await redis.hget(keys.claims(INTENT), key)).toBe(`${at}::0`);
});

test('a claim of another shape on a page is passed over', async () => {
  const { subjects } = await registry();
  await redis.hset(keys.claims(OTHER), 'one|wallet:0x1', 'junk');
  const [entry] = await subjects.readEach([OTHER]);
  expect(entry?.claims).toEqual([]);
  expect(found.map(({ what }) => what)).toEqual(['claim']);
});

test('a state of a receiver that is none counts as ok, and its other fields are stored', async () => {
  const { onForeign } = options();
  const states = new ReceiverStore(redis, keys, { onForeign });
  await redis.hset(keys.receiver('a'), { state: 'moody', since: 'yesterday', lastError: 'HTTP 500' });
  expect(await states.condition('a')).toMatchObject({ state: 'ok', since: null, lastError: 'HTTP 500' });
  expect(await states.condition('a')).toMatchObject({ state: 'ok' });
  expect(found.map(({ what }) => what)).toEqual(['receiver-state']);
});

describe('a fact of a delivery', () => {
  test('retains its readable members', async () => {
    const deliveries = new DeliveryStore(redis, keys, options());
    await redis.hset(keys.delivery('a', 'd'), {
      outcome: 'pending',
      entry: '1-1',
      claimKeys: '[]',
      tries: 'x',
      attempts: '{',
    });
    expect(await deliveries.fact('a', 'd')).toMatchObject({ outcome: 'pending', tries: 0, attempts: [] });
    expect(await redis.hkeys(keys.delivery('a', 'd'))).toEqual(['outcome', 'entry', 'claimKeys']);
  });

  test('without event or receiver is deleted, and its delivery dropped and reported', async () => {
    const deliveries = new DeliveryStore(redis, keys, options());
    await redis.hset(keys.delivery('a', 'd'), { outcome: 'pending', entry: 'x', claimKeys: '[]' });
    await redis.zadd(keys.pending('a'), 1, 'd');
    expect(await deliveries.fact('a', 'd')).toBe(null);
    expect(await redis.exists(keys.delivery('a', 'd'))).toBe(0);
    const dropped = new DroppedStore(redis, keys);
    expect(await dropped.dropExpired('a', 0)).toBe(1);
    expect(await dropped.report('a', { isAway: false })).toEqual([
      { reason: 'lost', count: 1, deliveries: ['d'] },
    ]);
    expect(await new Backlog(redis, keys).counts('a')).toEqual({ pending: 0, dead: 0 });
  });
});

test('a batch of another shape is made anew', async () => {
  const batches = new BatchStore(redis, keys);
  await redis.hset(keys.delivery('a', 'd'), {
    outcome: 'pending',
    entry: '1-1',
    claimKeys: '[]',
    batch: 'b',
  });
  await redis.hset(keys.batch('a', 'b'), { leader: 'd', members: 'no JSON' });
  expect(await batches.join('a', 'd', { joins: true })).toMatchObject({ isWaiting: true, waiting: 1 });
});

test('a time of another shape since when something is wanted begins anew', async () => {
  await registry();
  await redis.hset(keys.wanted, `one|${INTENT}`, 'long ago');
  const { claims } = await take(await registry());
  expect(claims.every(({ atMs }) => atMs > 1_600_000_000_000)).toBe(true);
  expect(claims).toHaveLength(2);
});

test('a replay of another shape is no replay', async () => {
  const replays = new ReplayStore(redis, keys, options());
  await redis.hset(keys.replay('r'), { receiver: 'a', state: 'open', since: 'x' });
  expect(await replays.read('r')).toBe(null);
  expect(found.map(({ what }) => what)).toEqual(['replay']);
});

test('learned times are read except the entries of another shape, which are removed', async () => {
  const learned = new LearnedStore(redis, keys, options());
  await learned.add({
    route: '1:10',
    statistic: 'pending',
    increments: [{ bin: 0, ended: 1, watchedSeconds: 5 }],
  });
  await learned.add({
    route: '1:11',
    statistic: 'pending',
    increments: [{ bin: 0, ended: 1, watchedSeconds: 5 }],
  });
  await redis.hset(keys.learned('1:11:pending'), 'e0', 'many');
  await redis.hset(keys.learned('1:10:wisdom'), 'landmark', '1');
  await redis.sadd(keys.learnedNames, '1:10:wisdom');
  expect((await learned.all()).map(({ route }) => route)).toEqual(['1:10']);
  expect(await redis.smembers(keys.learnedNames)).toEqual(['1:10:pending']);
});

test('a quote of another shape is written anew by a process that imports it', async () => {
  const { onForeign } = options();
  const subject = quoteId('11111111-1111-4111-8111-111111111111');
  const raw = { id: subject, expiresAt: 5 };
  const quotes = new ImportedQuotes(redis, keys, onForeign);
  await quotes.sync([{ subject, raw }], await syncFence(redis, keys));
  await redis.hset(keys.importedQuotes, subject, 'no JSON');
  expect((await quotes.of(subject))?.quote).toEqual({ subject, raw });
  expect(await new ImportedQuotes(redis, keys).of(subject)).not.toBe(null);
});

test('a daemon delivers to every receiver beside any foreign entries', async () => {
  const [one, two] = [await open.started(new Hook()), await open.started(new Hook())];
  const stage = await deliveryStage(open, { one: { hook: one }, two: { hook: two } });
  await stage.start();
  const made = { subject: INTENT, sequence: 1, key: CLAIM_KEY, atMs: Date.now() + 60_000 };
  const id = madeEventId(made);
  await stage.redis.hset(stage.keys.receivers, { two: 'no JSON', three: 'no JSON' });
  await stage.redis.hset(stage.keys.subscriptions, { s: '{}', strange: '7' });
  await stage.redis.hset(stage.keys.receiver('two'), 'state', 'moody');
  const fact = { outcome: 'pending', entry: 'nowhere', claimKeys: 'no JSON' };
  await stage.redis.hset(stage.keys.delivery('one', id), fact);
  await stage.redis.hset(stage.keys.replay('r'), { receiver: 'one', state: 'open' });
  await stage.redis.zadd(stage.keys.replays, 1, 'r');
  await appendEvents(stage.redis, stage.keys, [made]);
  await one.until((came) => came.some(({ event }) => event.id === id));
  await two.until((came) => came.some(({ event }) => event.id === id));
});

test.each(['nan', 'inf', '1e400'])('a turn of %s blocks no delivery of its receiver', async (number) => {
  const deliveries = new DeliveryStore(redis, keys, options());
  const order = { most: 2, intervalMs: null, isTogether: false, held: [] };
  const claim = async () => {
    const { claimed, waitMs } = await deliveries.claim('hook', { process: 'p', order });
    expect(waitMs === null || Number.isFinite(waitMs)).toBe(true);
    return claimed.map(({ id }) => id);
  };
  const fact = { outcome: 'pending', entry: '1-0', claimKeys: '[]' };
  await redis.hset(keys.delivery('hook', 'a'), { ...fact, turn: number });
  await redis.hset(keys.delivery('hook', 'b'), { ...fact, turn: '2' });
  await redis.zadd(`${keys.queue('hook')}:due`, 1, 'a', 2, 'b');
  expect(await claim()).toEqual(['a', 'b']);
  // Nothing is held: both are queued again.
  expect((await claim()).toSorted()).toEqual(['a', 'b']);
  await deliveries.release('hook', { process: 'p', ids: ['a', 'b'], afterMs: null });
  await redis.hset(keys.receiver('hook'), { state: 'failing', probed: number });
  expect(await claim()).toHaveLength(1);
  await redis.zadd(`${keys.queue('hook')}:later`, '+inf', 'c');
  await redis.hset(keys.receiver('hook'), { state: 'ok' });
  expect(await claim()).toHaveLength(2);
  for (const id of ['a', 'b']) {
    await redis.hset(keys.delivery('hook', id), { outcome: 'dead' });
    await redis.zadd(keys.dead('hook'), 1, id);
  }
  expect(await deliveries.renew('', 'hook', ['a', 'b'])).toBe(2);
});

test('the others of a message that was accepted are recorded where the fact of the first is gone', async () => {
  const deliveries = new DeliveryStore(redis, keys, options());
  const queue = keys.queue('hook');
  for (const id of ['a', 'b']) {
    await redis.hset(keys.delivery('hook', id), {
      outcome: 'pending',
      entry: '1-0',
      claimKeys: '[]',
      turn: '1',
    });
    await redis.zadd(keys.pending('hook'), 1, id);
    await redis.hset(`${queue}:sending`, id, 'p:1');
  }
  await redis.del(keys.delivery('hook', 'a'));
  const result = { outcome: 'delivered', httpStatus: null, smtpCode: null, reason: '', answer: '' } as const;
  const ended = {
    ids: ['a', 'b'],
    nowMs: 2,
    attempt: { ...result, atMs: 1, durationMs: 1, nextAtMs: null },
    outcome: 'delivered',
    nextAtMs: null,
    counts: true,
    answer: '',
    restMs: null,
    disableAfterMs: 1_000,
    process: 'p',
  } as const;
  await deliveries.record('hook', [ended], { process: 'p', order: null });
  expect(await redis.hgetall(`${queue}:sending`)).toEqual({});
  expect((await deliveries.fact('hook', 'b'))?.outcome).toBe('delivered');
  expect(await redis.zcard(keys.pending('hook'))).toBe(0);
});

test('an invalid delivery blocks the place of no other', async () => {
  const hook = await open.started(new Hook());
  const stage = await deliveryStage(open, { hook: { hook, more: { concurrency: 1 } } });
  const made = { subject: INTENT, sequence: 1, key: CLAIM_KEY, atMs: Date.now() + 60_000 };
  // The receiver must not wait for the poll after 30 s without a notification.
  holdTimers(30_000);
  await stage.start();
  const queue = stage.keys.queue('hook');
  await Promise.all(
    ['a', 'b', 'c'].flatMap((id) => [
      stage.redis.hset(stage.keys.delivery('hook', id), {
        outcome: 'pending',
        entry: 'nowhere',
        claimKeys: '[]',
      }),
      stage.redis.zadd(`${queue}:due`, 1, id),
    ]),
  );
  await appendEvents(stage.redis, stage.keys, [made]);
  await hook.until((came) => came.length === 1);
});
