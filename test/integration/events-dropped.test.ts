import { describe, expect, test } from 'vitest';
import { redisTimeMs, SCHEMA_VERSION } from '../../src/store/commands.ts';
import { DROP_REASONS, DroppedStore } from '../../src/store/dropped.ts';
import { startDaemon } from '../support/daemon.ts';
import { deliveryStage, HOUR_MS, happen, hourOfEvents } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';

const open = opening();

/** A receiver of transfers, and one of an operator; events leave the log after 5 days. */
async function retentionStage() {
  const operator = await open.started(new Hook());
  const stage = await deliveryStage(
    open,
    {
      hook: { hook: await open.started(new Hook()), more: { events: ['intent.*'] } },
      operator: { hook: operator, more: { events: ['receiver.*'] } },
    },
    { retention: '5d' },
  );
  return { operator, stage };
}

test('the losses of a disabled receiver by the retention are named: open deliveries, and matched events', async () => {
  const { operator, stage } = await retentionStage();
  // Disabled for a week: an open delivery, and events behind the cursor, one of which it does not match.
  const { redis, keys } = stage;
  const fromMs = (await redisTimeMs(redis)) - 7 * 24 * HOUR_MS;
  await redis.hset(keys.receiver('hook'), { state: 'disabled', disabledAt: String(fromMs) });
  await redis.hset(keys.cursors, { hook: '0-0' });
  const waiting = `evt_${'0'.repeat(40)}`;
  await redis.zadd(keys.pending('hook'), fromMs, waiting);
  await redis.hset(keys.delivery('hook', waiting), {
    outcome: 'pending',
    entry: `${fromMs}-0`,
    claimKeys: '[]',
  });
  const made = hourOfEvents(4, { fromMs, transfers: 4 });
  await appendEvents(
    redis,
    keys,
    made.toSpliced(1, 1, ...made.slice(1, 2).map((event) => ({ ...event, key: 'other|intent:0x1' }))),
  );
  await stage.start();

  const [dropped] = await operator.until((came) => came.length === 1);
  expect(dropped?.event).toMatchObject({
    type: 'receiver.events_dropped',
    data: { subject: { id: 'receiver:hook' }, sequence: 1, record: { receiver: 'hook', count: 4 } },
  });
  expect(dropped?.event.data.record.deliveries).toHaveLength(4);
  expect(await stage.backlog.counts('hook')).toEqual({ pending: 0, dead: 0 });
  // Further drops within the hour are recorded, and reported together after it.
  await redis.hset(keys.receiver('hook'), { reportedDropsAt: String(fromMs) });
  const later = `evt_${'1'.repeat(40)}`;
  await redis.zadd(keys.pending('hook'), fromMs, later);
  await operator.until((came) => came.length === 2);
  expect(operator.came[1]?.event.data).toMatchObject({
    sequence: 2,
    record: { count: 1, deliveries: [later] },
  });
});

test('of more receivers than one check reads for, each has its losses counted before the log is trimmed', async () => {
  const hook = await open.started(new Hook());
  const names = Array.from({ length: 110 }, (_, index) => `hook-${index}`);
  const receivers = Object.fromEntries(
    names.map((name) => [name, { hook, more: { events: ['intent.*'] } }] as const),
  );
  const { redis, keys, start } = await deliveryStage(open, receivers, { retention: '5d' });
  const fromMs = (await redisTimeMs(redis)) - 7 * 24 * HOUR_MS;
  await redis.hset(keys.cursors, Object.fromEntries(names.map((name) => [name, '0-0'])));
  for (const name of names)
    await redis.hset(keys.receiver(name), { state: 'disabled', disabledAt: String(fromMs) });
  const made = hourOfEvents(2, { fromMs, transfers: 2 });
  const entries = await appendEvents(redis, keys, made);
  const { daemon } = await start();
  await eventually('the events have left the log', async () => {
    return (await redis.xrange(keys.events, '-', entries.at(-1) ?? '')).length === 0;
  });
  const page = await (await fetch(`${daemon.url}/metrics`)).text();
  const lost = [...page.matchAll(/^intentwatch_events_dropped_total\{receiver="(.*)"\} 2$/gm)];
  expect(new Set(lost.map(([, name]) => name))).toEqual(new Set(names));
  expect(hook.came).toEqual([]);
});

test('events that expire while a receiver is out of the config are named once it is back', async () => {
  const [hook, operator] = [await open.started(new Hook()), await open.started(new Hook())];
  const receivers = {
    hook: { hook, more: { events: ['intent.*'] } },
    operator: { hook: operator, more: { events: ['receiver.*'] } },
  };
  const stage = await deliveryStage(open, receivers, { retention: '5d' });
  const { redis, keys, config } = stage;
  const before = await stage.start();
  await before.daemon.close();
  const { hook: _, ...others } = config.receivers;
  const without = config.subscriptions.map((one) => ({ ...one, receivers: Object.keys(others) }));
  const away = await startDaemon({ ...config, receivers: others, subscriptions: without });
  open.later(() => away.daemon.close());
  const made = hourOfEvents(4, { fromMs: (await redisTimeMs(redis)) - 7 * 24 * HOUR_MS, transfers: 4 });
  await appendEvents(redis, keys, made);
  const lastMs = Math.max(...made.map(({ atMs }) => atMs));
  await eventually('its events have expired from the log', async () => {
    return (await redis.xrange(keys.events, '-', String(lastMs))).length === 0;
  });
  expect(await redis.llen(keys.dropped('hook'))).toBe(4);
  expect(operator.came).toEqual([]);
  await away.daemon.close();
  await stage.start();
  const [dropped] = await operator.until((came) => came.length === 1);
  expect(dropped?.event).toMatchObject({
    type: 'receiver.events_dropped',
    data: { subject: { id: 'receiver:hook' }, record: { count: 4, reason: DROP_REASONS.away } },
  });
  expect(dropped?.event.data.record.deliveries).toHaveLength(4);
  expect(hook.came).toEqual([]);
});

test('an event that another subscription leads to as well is named only where the receiver did not get it, and once', async () => {
  const { operator, stage } = await retentionStage();
  const { redis, keys } = stage;
  const fromMs = (await redisTimeMs(redis)) - 7 * 24 * HOUR_MS;
  // Its cursor is behind the first event, which it got before it was disabled.
  await redis.hset(keys.receiver('hook'), { state: 'disabled', disabledAt: String(fromMs) });
  const made = hourOfEvents(2, { fromMs, transfers: 2 });
  const [first = '', second = ''] = await appendEvents(redis, keys, made);
  const [got, lost] = made.map(madeEventId);
  if (got === undefined || lost === undefined) throw new Error('expected two events');
  await redis.hset(keys.cursors, { hook: first });
  await redis.hset(keys.delivery('hook', ''), got, `${first}|1|5|`);
  // Another subscription, with the same receiver, names both later.
  for (const [event, entry] of [
    [got, first],
    [lost, second],
  ] as const) {
    const { atMs, key } = made[1] ?? { atMs: 0, key: '' };
    const claimKeys = JSON.stringify([key]);
    await redis.xadd(
      keys.events,
      `${atMs + 1}-*`,
      ...['v', String(SCHEMA_VERSION), 'kind', 'subscribers', 'event', event, 'entry', entry],
      ...['claimKeys', claimKeys],
    );
  }
  await stage.start();
  const [dropped] = await operator.until((came) => came.length === 1);
  expect(dropped?.event.data.record).toMatchObject({ count: 1, deliveries: [lost] });
});

describe('a delivery that is open when its event expires', () => {
  /** Four deliveries; the first is being sent and is not answered until `release` is called. */
  async function waiting() {
    const operator = await open.started(new Hook());
    const held = Promise.withResolvers<void>();
    const hook = await open.started(
      new Hook(async () => {
        await held.promise;
        return 204;
      }),
    );
    const stage = await deliveryStage(open, {
      hook: { hook, more: { events: ['intent.*'], concurrency: 1 } },
      operator: { hook: operator, more: { events: ['receiver.*'] } },
    });
    const { daemon } = await stage.start();
    const made = await happen(stage, 4);
    await hook.until((came) => came.length === 1);
    await eventually('four deliveries are open', async () => {
      return (await stage.backlog.counts('hook')).pending === 4;
    });
    const [first = '', ...ids] = await stage.redis.zrange(stage.keys.pending('hook'), '0', '-1');
    expect(hook.ids).toEqual([first]);
    expect(made).toHaveLength(4);
    const lost = async (url = daemon.url): Promise<string> => {
      const page = await (await fetch(`${url}/metrics`)).text();
      return /^intentwatch_events_dropped_total\{receiver="hook"\} (\d+)$/m.exec(page)?.[1] ?? '';
    };
    return { ...stage, daemon, hook, operator, first, ids, lost, release: held.resolve };
  }

  test('is dropped by the check, counted and named, while another is being sent', async () => {
    const { redis, keys, operator, ids, lost, backlog } = await waiting();
    const [expired = '', old = '', waits] = ids;
    // The fact of one has expired with its event; that of the other exists.
    const [gone, past] = [expired, old].map((id) => keys.delivery('hook', id));
    await redis
      .multi()
      .del(gone ?? '')
      .hset(past ?? '', { entry: '1-0' })
      .exec();
    const [one, other] = await operator.until((came) => came.length === 2);
    const records = [one, other].map((came) => came?.event.data.record);
    expect(records).toEqual([
      expect.objectContaining({ receiver: 'hook', count: 1, deliveries: [expired] }),
      expect.objectContaining({ receiver: 'hook', count: 1, deliveries: [old] }),
    ]);
    expect(records[1]?.reason).toBe('the retention of events has ended before they were delivered');
    expect(await lost()).toBe('2');
    expect(await backlog.counts('hook')).toEqual({ pending: 2, dead: 0 });
    expect(waits).toBeDefined();
  });

  test('is dropped by its sender, counted and named, where its event has expired from the log', async () => {
    const { redis, keys, hook, operator, first, ids, lost, backlog, release, ...stage } = await waiting();
    const [gone = '', ...others] = ids;
    // The process that has just read the event would send it from its memory.
    await stage.daemon.close();
    const entry = await redis.hget(keys.delivery('hook', gone), 'entry');
    await redis.xdel(keys.events, entry ?? '');
    release();
    const { daemon } = await stage.start();
    const [came] = await operator.until((all) => all.length === 1);
    expect(came?.event).toMatchObject({
      type: 'receiver.events_dropped',
      data: { record: { count: 1, deliveries: [gone] } },
    });
    await hook.until((all) => all.length === 4);
    expect(hook.ids.slice(1)).toEqual([first, ...others]);
    expect(await lost(daemon.url)).toBe('1');
    expect((await backlog.counts('hook')).dead).toBe(0);
  });
});

test('more deliveries than one event names are named in several, and beyond 10,000 they are counted', async () => {
  const { redis, keys } = await deliveryStage(open, {});
  const dropped = new DroppedStore(redis, keys);
  const ids = Array.from({ length: 250 }, (_, index) => `evt_${String(index).padStart(40, '0')}`);
  await redis.zadd(keys.pending('hook'), ...ids.flatMap((id, index) => [index, id]));
  expect(await dropped.drop('hook', ids, 'retention')).toBe(250);
  expect(await dropped.drop('hook', ids, 'retention')).toBe(0);
  const reports = await dropped.report('hook', { isAway: false });
  expect(reports.map(({ count }) => count)).toEqual([100, 100, 50]);
  expect(reports.flatMap(({ deliveries }) => deliveries)).toEqual(ids);

  await redis.hdel(keys.receiver('hook'), 'reportedDropsAt');
  await redis.rpush(keys.dropped('hook'), ...Array.from({ length: 10_000 }, (_, index) => `lost|${index}`));
  await redis.zadd(keys.pending('hook'), 1, 'evt_1', 2, 'evt_2');
  await dropped.drop('hook', ['evt_1', 'evt_2'], 'lost');
  const more = await dropped.report('hook', { isAway: false });
  expect(more).toHaveLength(100);
  expect(more.reduce((sum, { count }) => sum + count, 0)).toBe(10_002);
});
