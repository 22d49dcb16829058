import { describe, expect, test } from 'vitest';
import { redisTimeMs } from '../../src/store/commands.ts';
import { ADMIN_TOKEN } from '../support/api-stage.ts';
import { CLAIM_KEY, deliveryStage, HOUR_MS, hourOfEvents } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const DAY_MS = 24 * HOUR_MS;
const NEWER = ['v', '99', 'kind', 'event', 'event', '{"id":"evt_new"}', 'claimKeys', '[]'];

/** A margin before events expire, for the start of a daemon and its first attempts. */
const SOON_MS = 8_000;

const open = opening();

async function metric(url: string, name: string): Promise<number> {
  const page = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name}\\{receiver="hook"\\} (\\S+)$`, 'm').exec(page)?.[1] ?? '0');
}

describe('events that expire behind the cursor of a receiver', () => {
  test.each([
    ['behind an entry of a newer version, which counts by its place', '0-0', 5],
    ['from the beginning where its cursor is malformed', 'x', 4],
    ['from its cursor', '0-0', 4],
  ])('are counted, and named %s', async (_, cursor, expected) => {
    const hook = await open.started(new Hook());
    const operator = await open.started(new Hook());
    const receivers = {
      hook: { hook, more: { events: ['intent.*'] } },
      operator: { hook: operator, more: { events: ['receiver.*'] } },
    };
    const { redis, keys, start } = await deliveryStage(open, receivers, { retention: '5d' });
    const fromMs = (await redisTimeMs(redis)) - 7 * DAY_MS;
    await redis.hset(keys.receiver('hook'), { state: 'disabled', disabledAt: String(fromMs) });
    await redis.hset(keys.cursors, { hook: cursor });
    if (expected === 5) await redis.xadd(keys.events, `${fromMs - 1}-0`, ...NEWER);
    const made = hourOfEvents(4, { fromMs, transfers: 4 });
    await appendEvents(redis, keys, made);
    const { daemon } = await start();
    const [report] = await operator.until((came) => came.length > 0);
    const names = expected === 5 ? [`entry ${fromMs - 1}-0`] : [];
    expect(report?.event.data.record).toMatchObject({
      count: expected,
      deliveries: [...names, ...made.map(madeEventId)],
    });
    expect(await metric(daemon.url, 'intentwatch_events_dropped_total')).toBe(expected);
    await eventually(
      'they left the log',
      async () => (await redis.xrange(keys.events, '-', String(fromMs + DAY_MS))).length === 0,
    );
  });

  test('are not delivered afterwards, nor counted again', async () => {
    const hook = await open.started(new Hook(() => 500));
    const slow = await open.started(new Hook(() => null));
    const operator = await open.started(new Hook());
    const receivers = {
      hook: { hook, more: { events: ['intent.*'] } },
      // While it is sending them, they do not leave the log.
      slow: { hook: slow, more: { events: ['intent.*'], timeout: '60s' } },
      operator: { hook: operator, more: { events: ['receiver.events_dropped'] } },
    };
    const { redis, keys, states, start } = await deliveryStage(open, receivers, { retention: '5d' });
    const oldMs = (await redisTimeMs(redis)) - 5 * DAY_MS + SOON_MS;
    await redis.hset(keys.receiver('hook'), { state: 'disabled', disabledAt: String(oldMs) });
    await redis.hset(keys.cursors, { hook: '0-0', slow: '0-0' });
    const made = hourOfEvents(4, { fromMs: oldMs, transfers: 4 });
    const old = made.map((one, index) => ({ ...one, atMs: oldMs + index }));
    const [first] = await appendEvents(redis, keys, old);
    const { daemon } = await start();
    await slow.until((came) => came.length >= 4);
    await operator.until((came) => came.length > 0);
    expect(await redis.xrange(keys.events, first ?? '', first ?? '')).toHaveLength(1);
    await states.enable('hook');
    await appendEvents(redis, keys, [
      { subject: `intent:${hashOf(9)}`, sequence: 1, atMs: (await redisTimeMs(redis)) + 100, key: CLAIM_KEY },
    ]);
    const [came] = await hook.until((all) => all.length > 0);
    expect(came?.event.data.subject.id).toBe(`intent:${hashOf(9)}`);
    expect(await metric(daemon.url, 'intentwatch_events_dropped_total')).toBe(4);
  });
});

test('what waits behind an entry of a newer version is shown as waiting', async () => {
  const hook = await open.started(new Hook());
  const { redis, keys, start } = await deliveryStage(
    open,
    { hook: { hook, more: { events: ['intent.*'] } } },
    { server: { host: '127.0.0.1', port: 0, token: ADMIN_TOKEN } },
  );
  const fromMs = (await redisTimeMs(redis)) - 3 * HOUR_MS;
  await redis.hset(keys.cursors, { hook: '0-0' });
  await redis.xadd(keys.events, `${fromMs - 1}-0`, ...NEWER);
  await appendEvents(redis, keys, hourOfEvents(4, { fromMs, transfers: 4 }));
  const { daemon } = await start();
  const answer = await fetch(`${daemon.url}/api/v1/receivers`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect(await answer.json()).toMatchObject({
    receivers: [{ backlogIsMore: true, oldestUndeliveredAt: new Date(fromMs - 1).toISOString() }],
  });
  await eventually(
    'the metric has its age',
    async () => (await metric(daemon.url, 'intentwatch_oldest_undelivered_event_seconds')) > 10_000,
  );
});

test('one that expires behind an attempt under way waits for it, so that none overtakes that attempt', async () => {
  const answer = Promise.withResolvers<number>();
  const subject = `intent:${hashOf(1_000)}`;
  const hook = await open.started(
    new Hook(({ event }) => (event.data.subject.id === subject ? answer.promise : 204)),
  );
  const operator = await open.started(new Hook());
  const receivers = {
    hook: { hook, more: { events: ['intent.*'], timeout: '60s', ordering: 'subject' } },
    // Its losses show that a check came after they expired.
    away: { hook, more: { events: ['intent.*'] } },
    operator: { hook: operator, more: { events: ['receiver.events_dropped'] } },
  };
  const { redis, keys, start } = await deliveryStage(open, receivers, { retention: '5d' });
  const oldMs = (await redisTimeMs(redis)) - 5 * DAY_MS + SOON_MS;
  const made = [0, 1, HOUR_MS].map((afterMs, index) => ({
    subject,
    sequence: index + 1,
    atMs: oldMs + afterMs,
    key: CLAIM_KEY,
  }));
  await redis.hset(keys.receiver('away'), { state: 'disabled', disabledAt: String(oldMs) });
  await redis.hset(keys.cursors, { hook: '0-0', away: '0-0' });
  await appendEvents(redis, keys, made);
  await start();
  await hook.until((came) => came.length > 0);
  await operator.until((came) => came.length > 0);
  const other = `intent:${hashOf(2_000)}`;
  await appendEvents(redis, keys, [
    { subject: other, sequence: 1, atMs: (await redisTimeMs(redis)) + 100, key: CLAIM_KEY },
  ]);
  await hook.until((came) => came.some(({ event }) => event.data.subject.id === other));
  expect(hook.came.map(({ event }) => event.data.sequence)).toEqual([1, 1]);
  answer.resolve(204);
  await hook.until((came) => came.some(({ event }) => event.data.sequence === 3));
});
