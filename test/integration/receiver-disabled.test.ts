import { describe, expect, test } from 'vitest';
import { redisTimeMs } from '../../src/store/commands.ts';
import {
  CLAIM_KEY,
  deliveryStage,
  HOUR_MS,
  happen,
  hourOfEvents,
  orderOf,
  recordOne,
} from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { ONE, wantedOf } from '../support/registry-stage.ts';
import { relayStage } from '../support/relay-stage.ts';
import { syncConfig } from '../support/sync-config.ts';

const open = opening();

/** The number of log entries that the relay takes for a receiver at once. */
const RELAY_BATCH = 200;

const QUICK = { retries: { delays: ['1ms', '1ms', '1ms', '1ms', '1ms'], jitter: 0 } };

describe('500 events of an hour in which a receiver is disabled', () => {
  test.each([
    { concurrency: 1, ordering: 'none' },
    { concurrency: 8, ordering: 'subject' },
  ])('are delivered when it is enabled, in order, once: %o', async (more) => {
    const hook = await open.started(new Hook());
    const other = await open.started(new Hook());
    const stage = await deliveryStage(open, { hook: { hook, more }, other: { hook: other } });
    await stage.start();
    expect(await stage.states.disable('hook')).toBe('ok');
    const made = await happen(stage, 500, 50);
    // The other one shows that the relay has passed all of them.
    await other.until((came) => came.length === made.length);
    expect(hook.came).toEqual([]);
    // Only the batch that the relay was taking is open; its deliveries wait as well.
    const { pending, dead } = await stage.backlog.counts('hook');
    expect(pending).toBeLessThanOrEqual(RELAY_BATCH);
    expect(dead).toBe(0);

    expect(await stage.states.enable('hook')).toBe('disabled');
    await hook.until((came) => came.length >= made.length);
    await stage.drained('hook');
    if (more.ordering === 'none') expect(hook.ids).toEqual(made.map(madeEventId));
    expect(hook.ids.toSorted()).toEqual(made.map(madeEventId).toSorted());
    const bySubject = Map.groupBy(hook.came, ({ event }) => event.data.subject.id);
    for (const came of bySubject.values()) {
      expect(came.map(({ event }) => event.data.sequence)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }
    expect((await stage.states.condition('hook')).state).toBe('ok');
  });
});

describe('a receiver whose deliveries fail', () => {
  test('is notified of, failing and recovered, to the others that name receiver.*, and to neither itself nor the rest', async () => {
    const bad = await open.started(new Hook(({ event }) => (event.type.startsWith('receiver.') ? 204 : 500)));
    const operator = await open.started(new Hook());
    const rest = await open.started(new Hook());
    const all = { events: ['*', 'receiver.*'] };
    const stage = await deliveryStage(open, {
      bad: { hook: bad, more: { ...QUICK, ...all } },
      operator: { hook: operator, more: { events: ['receiver.*'] } },
      rest: { hook: rest, more: { events: ['*'] } },
    });
    await stage.start();
    const [made] = await happen(stage, 1, 10);
    if (made === undefined) throw new Error('no event was made');
    const [failing] = await operator.until((came) => came.length === 1);
    expect(failing?.event).toMatchObject({
      type: 'receiver.failing',
      data: {
        subject: { kind: 'receiver', id: 'receiver:bad' },
        sequence: 1,
        status: 'failing',
        previousStatus: 'ok',
        record: { receiver: 'bad', reason: '500 Internal Server Error', by: 'failures' },
      },
    });
    await stage.drained('bad');
    expect(await stage.states.condition('bad')).toMatchObject({ state: 'failing' });
    expect(bad.ids).toEqual(Array(6).fill(madeEventId(made)));

    bad.answer = () => 204;
    const next = { ...made, sequence: 2, atMs: made.atMs + 5_000 };
    await appendEvents(stage.redis, stage.keys, [next]);
    const [, recovered] = await operator.until((came) => came.length === 2);
    expect(recovered?.event).toMatchObject({
      type: 'receiver.recovered',
      data: { sequence: 2, previousStatus: 'failing' },
    });
    for (const name of ['bad', 'operator', 'rest']) await stage.drained(name);
    expect(bad.came.filter(({ event }) => event.type.startsWith('receiver.'))).toEqual([]);
    expect(rest.ids).toEqual([madeEventId(made), madeEventId(next)]);
  });

  test('is notified of at the fourth failure in a row, also where each is the only attempt of its event', async () => {
    const bad = await open.started(new Hook(() => 500));
    const operator = await open.started(new Hook());
    const stage = await deliveryStage(open, {
      bad: { hook: bad, more: { retries: { delays: [] } } },
      operator: { hook: operator, more: { events: ['receiver.*'] } },
    });
    await stage.start();
    await happen(stage, 3, 10);
    await stage.drained('bad');
    expect(await stage.states.condition('bad')).toMatchObject({ state: 'ok' });
    await appendEvents(stage.redis, stage.keys, [
      { subject: CLAIM_KEY, sequence: 9, atMs: (await redisTimeMs(stage.redis)) + HOUR_MS, key: CLAIM_KEY },
    ]);
    const [failing] = await operator.until((came) => came.length === 1);
    expect(failing?.event.type).toBe('receiver.failing');
    expect(bad.came.length).toBe(4);
  });

  test('is disabled after its span of nothing but failures, and gets the dead letters of the span when it is enabled', async () => {
    const bad = await open.started(new Hook(() => 500));
    const operator = await open.started(new Hook());
    const stage = await deliveryStage(open, {
      bad: { hook: bad, more: { retries: { delays: [] }, concurrency: 1, disableAfter: '1h' } },
      operator: { hook: operator, more: { events: ['receiver.*'] } },
    });
    await stage.start();
    const early = await happen(stage, 4, 10);
    await stage.drained('bad');
    expect(await stage.backlog.counts('bad')).toEqual({ pending: 0, dead: 4 });
    // The failures began an hour ago; the next one ends the span.
    const since = (await redisTimeMs(stage.redis)) - HOUR_MS;
    await stage.redis.hset(stage.keys.receiver('bad'), { since: String(since) });
    const late = hourOfEvents(20, { fromMs: (early.at(-1)?.atMs ?? 0) + 1_000, transfers: 20 }).map(
      (event) => ({
        ...event,
        sequence: 9,
      }),
    );
    await appendEvents(stage.redis, stage.keys, late);
    await operator.until((came) => came.length === 2);
    expect(operator.came.map(({ event }) => event.type)).toEqual(['receiver.failing', 'receiver.disabled']);
    expect(operator.came[1]?.event.data).toMatchObject({
      previousStatus: 'failing',
      record: { by: 'failures', failingSince: Math.floor(since / 1_000) },
    });
    expect(await stage.states.condition('bad')).toMatchObject({ state: 'disabled', disabledBy: 'failures' });
    const before = bad.came.length;
    // Four that made it failing, and one that was tried alone.
    expect(before).toBe(5);

    bad.answer = () => 204;
    await stage.states.enable('bad');
    await stage.drained('bad');
    expect(bad.ids.slice(before)).toEqual([...early, ...late].map(madeEventId));
    expect(await stage.backlog.counts('bad')).toEqual({ pending: 0, dead: 0 });
    const reported = await operator.until((came) => came.length === 3);
    expect(reported[2]?.event).toMatchObject({
      type: 'receiver.recovered',
      data: { previousStatus: 'disabled' },
    });
  });

  test('is disabled at once by an answer of 410, and nothing of it becomes a dead letter', async () => {
    const gone = await open.started(new Hook(() => 410));
    const operator = await open.started(new Hook());
    const stage = await deliveryStage(open, {
      gone: { hook: gone, more: { concurrency: 1 } },
      operator: { hook: operator, more: { events: ['receiver.*'] } },
    });
    await stage.start();
    const made = await happen(stage, 30, 10);
    const [disabled] = await operator.until((came) => came.length === 1);
    expect(disabled?.event).toMatchObject({ type: 'receiver.disabled', data: { record: { by: 'gone' } } });
    expect((await stage.backlog.counts('gone')).dead).toBe(0);
    expect(gone.came.length).toBe(1);

    gone.answer = () => 204;
    await stage.states.enable('gone');
    await stage.drained('gone');
    expect(gone.ids.slice(1)).toEqual(made.map(madeEventId));
  });
});

test('a receiver that its operator enables stays off when it is disabled again before the relay has come round', async () => {
  const hook = await open.started(new Hook());
  const stage = await deliveryStage(open, { hook: { hook } });
  expect(await stage.states.disable('hook')).toBe('ok');
  expect(await stage.states.enable('hook')).toBe('disabled');
  expect(await stage.states.disable('hook')).toBe('enabling');
  expect(await stage.states.disable('hook')).toBe('disabled');
  expect(await stage.states.resume((await stage.lease.hold()) ?? '', 'hook', 1)).toBe('held');
  expect(await stage.states.condition('hook')).toMatchObject({ state: 'disabled', disabledBy: 'operator' });
});

test('a success of an attempt that was under way when failures disabled its receiver enables it', async () => {
  const stage = relayStage(open.later);
  const { redis, keys, registry, stores } = stage;
  await syncConfig(registry, wantedOf({ s: { subject: ONE, receivers: ['backend'] } }), '0-0');
  const atMs = await redisTimeMs(redis);
  const sequences = [1, 2, 3, 4, 5];
  await appendEvents(
    redis,
    keys,
    sequences.map((sequence) => ({ subject: ONE, sequence, atMs, key: `s|${ONE}` })),
  );
  await stage.advance(['backend']);
  const claim = async (process: string, most: number, held: string[] = []): Promise<string[]> => {
    const claims = await stores.deliveries.claim('backend', { process, order: orderOf({ most, held }) });
    return claims.claimed.map(({ id }) => id);
  };
  const record = async (process: string, id: string, isDelivered: boolean): Promise<void> => {
    const attempt = { smtpCode: null, durationMs: 1, answer: '', atMs, nextAtMs: null } as const;
    await recordOne(stores.deliveries, 'backend', {
      ids: [id],
      nowMs: atMs,
      attempt: isDelivered
        ? { ...attempt, outcome: 'delivered', httpStatus: 204, reason: '' }
        : { ...attempt, outcome: 'failed', httpStatus: 500, reason: 'HTTP 500' },
      outcome: isDelivered ? 'delivered' : 'dead',
      nextAtMs: null,
      counts: true,
      answer: '',
      restMs: null,
      disableAfterMs: 1,
      process,
    });
  };
  for (const id of await claim('other', 3)) await record('other', id, false);
  const [mine = ''] = await claim('own', 1);
  const [theirs = ''] = await claim('other', 1);
  await eventually('the span is over', async () => (await redisTimeMs(redis)) > atMs + 5);
  await record('other', theirs, false);
  expect((await stores.receivers.condition('backend')).state).toBe('disabled');
  await record('own', mine, true);
  expect((await stores.receivers.condition('backend')).state).toBe('enabling');
});
