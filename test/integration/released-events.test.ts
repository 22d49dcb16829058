import { describe, expect, test } from 'vitest';
import { walletId } from '../../src/domain/subjects/subject.ts';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import { matchFacts, readBatch } from '../../src/queues/deliveries/matches.ts';
import { commitRecord } from '../../src/queues/polls/commit-record.ts';
import { redisTimeMs } from '../../src/store/commands.ts';
import { ConfirmedTime } from '../../src/store/confirmed-time.ts';
import { EndedSubjects } from '../../src/store/ended-subjects.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { Registry } from '../../src/store/registry.ts';
import { commitDeps } from '../support/commit-deps.ts';
import { CLAIM_KEY, deliveryStage, HOUR_MS, hourOfEvents, recordOne } from '../support/delivery-stage.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, appendLost, logEntries, type MadeEvent, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { ONE, registryStage, TWO, wantedOf } from '../support/registry-stage.ts';
import { relayStage } from '../support/relay-stage.ts';
import { ShiftedClock } from '../support/shifted-clock.ts';
import { syncConfig } from '../support/sync-config.ts';

const GCC = needs(PARTS.gcc);
const DAY_MS = 24 * HOUR_MS;
const GRACE_MS = 60_000;
const LOST = 'evt_lost';

const open = opening();
const { later, started } = open;

type RelayStage = ReturnType<typeof relayStage>;

const BOTH = wantedOf({ a: { subject: ONE, receivers: ['backend', 'desk'] } }, GRACE_MS);

/** `a` has moved to another subject, and `b` goes on with its first one for `backend` alone: the part of `desk` is suspended. */
const MOVED = wantedOf(
  { a: { subject: TWO, receivers: ['backend'] }, b: { subject: ONE, receivers: ['backend'] } },
  GRACE_MS,
);
const PART = `a>desk|${ONE}`;

/** An event of the first subject, `afterMs` from now. */
async function eventOf({ redis }: RelayStage, key: string, afterMs = 0): Promise<MadeEvent> {
  return { subject: ONE, sequence: 1, atMs: (await redisTimeMs(redis)) + afterMs, key };
}

/** Releases the events that wait for subscription keys that are back. */
async function release({ registry }: RelayStage): Promise<void> {
  await registry.suspensions.settle({ spanMs: null, confirmedMs: 0, trimMs: 0 });
}

/** Ends all suspensions, and returns the reports of it. */
async function end({ redis, keys, registry }: Pick<RelayStage, 'redis' | 'keys' | 'registry'>) {
  const confirmedMs = (await redisTimeMs(redis)) + GRACE_MS;
  await registry.suspensions.settle({ spanMs: 0, confirmedMs, trimMs: 0 });
  const entries = await logEntries(redis, keys);
  return entries.flatMap((entry) => (entry.kind === 'operator' ? [entry.event.data.record] : []));
}

describe('the place of a lost event in the log', () => {
  test.each([
    ['missing', null],
    ['malformed', 'garbage'],
  ])('a receiver whose cursor is %s delays no other', async (_, cursor) => {
    const stage = relayStage(later);
    const { redis, keys, registry, advance, cursors, outcome, lostBy } = stage;
    await syncConfig(registry, BOTH, '0-0');
    await appendLost(stage, { id: LOST, key: `a|${ONE}` });
    const made = await eventOf(stage, `a|${ONE}`, 5);
    const [entry = ''] = await appendEvents(redis, keys, [made]);
    if (cursor === null) await redis.hdel(keys.cursors, 'backend');
    else await redis.hset(keys.cursors, { backend: cursor });
    const [backend] = await stage.stores.lease.readReceivers(['backend']);
    await advance(['backend', 'desk'], backend?.cursor);
    expect(await cursors()).toEqual({ backend: entry, desk: entry });
    for (const receiver of ['backend', 'desk']) {
      expect(await outcome(receiver, madeEventId(made))).toBe('pending');
      expect(await lostBy(receiver)).toEqual([`retention|${LOST}`]);
    }
  });

  test('an error of Redis at the note of one receiver holds up no other', async () => {
    const stage = relayStage(later);
    const { redis, keys, registry, advance, cursors, failed } = stage;
    await syncConfig(registry, BOTH, '0-0');
    const entry = await appendLost(stage, { id: LOST, key: `a|${ONE}` });
    await redis.set(keys.dropped('backend'), 'not a list');
    expect(await advance(['backend', 'desk'])).toEqual({ reached: entry, more: true });
    expect(failed).toEqual(['backend']);
    expect(await cursors()).toEqual({ backend: '0-0', desk: entry });
  });

  test('its note does not cover the matches behind it', async () => {
    const stage = relayStage(later);
    const { redis, keys, registry, advance, cursors, failed } = stage;
    await syncConfig(registry, BOTH, '0-0');
    const lost = await appendLost(stage, { id: LOST, key: `a|${ONE}` });
    await appendEvents(redis, keys, [await eventOf(stage, `a|${ONE}`, 5)]);
    // Nothing can be opened.
    await redis.set(keys.pending('backend'), 'not a set');
    await advance(['backend']);
    expect(failed).toEqual(['backend']);
    expect(await cursors()).toMatchObject({ backend: lost });
  });

  test('it is noted once the matches before it are open', async () => {
    const stage = relayStage(later);
    const { redis, keys, registry, advance, cursors, lostBy, outcome } = stage;
    await syncConfig(registry, BOTH, '0-0');
    const made = await eventOf(stage, `a|${ONE}`);
    const [entry = ''] = await appendEvents(redis, keys, [made]);
    const lost = await appendLost(stage, { id: LOST, key: `a|${ONE}`, at: `${made.atMs + 1}-0` });
    expect(await advance(['backend'])).toMatchObject({ more: true });
    expect(await cursors()).toMatchObject({ backend: entry });
    expect(await outcome('backend', madeEventId(made))).toBe('pending');
    expect(await lostBy('backend')).toEqual([]);
    await advance(['backend'], entry);
    expect(await cursors()).toMatchObject({ backend: lost });
    expect(await lostBy('backend')).toEqual([`retention|${LOST}`]);
  });

  test('it is noted for the receivers that go on with its subject after a reload', async () => {
    const stage = relayStage(later);
    const { registry, advance, lostBy } = stage;
    await syncConfig(registry, wantedOf({ a: { subject: ONE, receivers: ['backend'] } }), '0-0');
    await appendLost(stage, { id: LOST, key: `a|${ONE}` });
    const b = { subject: ONE, receivers: ['backend'] };
    await syncConfig(registry, wantedOf({ a: { subject: TWO, receivers: [] }, b }), '0-0');
    await advance(['backend', 'desk']);
    expect([await lostBy('backend'), await lostBy('desk')]).toEqual([[`retention|${LOST}`], []]);
  });

  test('the check names it too for a receiver that stays behind until the retention has ended', async () => {
    const operator = await started(new Hook());
    const { redis, keys, start } = await deliveryStage(
      open,
      {
        hook: { hook: await started(new Hook()), more: { events: ['intent.*'] } },
        operator: { hook: operator, more: { events: ['receiver.*'] } },
      },
      { retention: '5d' },
    );
    const nowMs = await redisTimeMs(redis);
    const fromMs = nowMs - 7 * DAY_MS;
    await redis.hset(keys.receiver('hook'), { state: 'disabled', disabledAt: String(fromMs) });
    await redis.hset(keys.cursors, { hook: '0-0' });
    const made = hourOfEvents(2, { fromMs, transfers: 2 });
    await appendEvents(redis, keys, made.slice(0, 1));
    await appendLost({ redis, keys }, { id: LOST, key: CLAIM_KEY, at: `${fromMs + 1_000}-0` });
    await appendEvents(redis, keys, made.slice(1));
    // A log that goes on to now confirms the clock at once.
    await appendEvents(redis, keys, [{ subject: ONE, sequence: 1, atMs: nowMs, key: CLAIM_KEY }]);
    await start();
    const [dropped] = await operator.until((came) => came.length === 1);
    expect(dropped?.event.data.record).toMatchObject({ receiver: 'hook', count: 3 });
  });
});

test('a delivered event does not wait again for a receiver that was never its own', async () => {
  const stage = relayStage(later);
  const { redis, keys, registry, advance, outcome, waiting } = stage;
  const desk = { subject: TWO, receivers: ['desk'] };
  const all = wantedOf({ a: { subject: ONE, receivers: ['backend'] }, b: desk }, GRACE_MS);
  const without = wantedOf({ b: desk }, GRACE_MS);
  await syncConfig(registry, all, '0-0');
  await syncConfig(registry, without, '0-0');
  const made = await eventOf(stage, `other|${ONE}`);
  const [entry = ''] = await appendEvents(redis, keys, [made]);
  await stage.wait(made, entry, `a|${ONE}`);
  await syncConfig(registry, all, '0-0');
  await release(stage);
  await advance(['backend']);
  expect(await outcome('backend', madeEventId(made))).toBe('pending');
  // The subject leaves the config again before the other receiver comes to the release.
  await syncConfig(registry, without, '0-0');
  await advance(['desk']);
  expect(await waiting()).toEqual([]);
  expect(await end(stage)).toMatchObject([{ events: 0 }]);
});

test('events that wait again are released in the order of the log', async () => {
  const stage = relayStage(later);
  const { redis, keys, registry } = stage;
  await syncConfig(registry, BOTH, '0-0');
  await syncConfig(registry, MOVED, '0-0');
  const ms = await redisTimeMs(redis);
  const places = [`${ms - 1}-0`, `${ms}-9`, `${ms}-10`];
  const again = places.map((entry, index) => ({ entry, eventId: `evt_${index}`, key: PART }));
  await registry.suspensions.waitAgain(again.toReversed());
  await syncConfig(registry, BOTH, '0-0');
  await release(stage);
  const released = await logEntries(redis, keys);
  expect(released.flatMap((one) => (one.kind === 'subscribers' ? [one.entry] : []))).toEqual(places);
});

test('a reload between the wait of an event and the next match loses nothing', async () => {
  const stage = relayStage(later);
  const { redis, keys, registry, advance, outcome, waiting } = stage;
  await syncConfig(registry, BOTH, '0-0');
  await syncConfig(registry, MOVED, '0-0');
  const made = await eventOf(stage, `other|${ONE}`);
  const [entry = ''] = await appendEvents(redis, keys, [made]);
  await stage.wait(made, entry, PART);
  await syncConfig(registry, BOTH, '0-0');
  await release(stage);
  // No receiver wants its type: it leads to no receiver though its key is in the config, so that the batch is matched again.
  const unwanted = { ...(await eventOf(stage, PART, 2)), sequence: 2, type: 'quote.expired' };
  await appendEvents(redis, keys, [unwanted]);
  const { suspensions } = registry;
  const waitAgain = suspensions.waitAgain.bind(suspensions);
  let reloads = 0;
  suspensions.waitAgain = async (events) => {
    const current = await waitAgain(events);
    if (reloads++ === 0) await syncConfig(registry, MOVED, '0-0');
    return current;
  };
  await advance(['backend', 'desk']);
  expect(reloads).toBeGreaterThan(0);
  expect(await outcome('desk', madeEventId(made))).toBe(null);
  expect(await waiting()).toEqual([expect.stringContaining(`${entry} ${madeEventId(made)} ${PART}`)]);
});

test('an event that joins those of a suspension while it ends is named', async () => {
  const { redis, keys, registry, subjects } = registryStage(later);
  await syncConfig(registry, BOTH, '0-0');
  await syncConfig(registry, MOVED, '0-0');
  let isEnding = false;
  const ending = new Proxy(redis, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return async (...args: unknown[]): Promise<unknown> => {
        if (!isEnding && JSON.stringify(args).includes('suspension_ended')) {
          isEnding = true;
          await registry.suspensions.waitAgain([{ entry: '5-0', eventId: 'evt_late', key: PART }]);
        }
        return Reflect.apply(member, target, args);
      };
    },
  });
  const reports = await end({ redis, keys, registry: new Registry(ending, keys, subjects) });
  expect(reports).toMatchObject([{ events: 0 }, { events: 1, eventIds: ['evt_late'] }]);
  expect(await redis.zcard(keys.withheld)).toBe(0);
});

test('events read before a reload are matched by the claims that go on', async () => {
  const stage = relayStage(later);
  const { redis, keys, registry, events } = stage;
  await syncConfig(registry, wantedOf({ a: { subject: ONE, receivers: ['backend'] } }), '0-0');
  await appendEvents(redis, keys, [await eventOf(stage, `a|${ONE}`)]);
  await syncConfig(
    registry,
    wantedOf({ a: { subject: TWO, receivers: [] }, b: { subject: ONE, receivers: ['backend'] } }),
    '0-0',
  );
  const claimKeys = [`a|${ONE}`];
  const definitions = {
    subscriptions: await registry.subscriptions(claimKeys),
    continuing: await registry.continuing(claimKeys),
  };
  const { facts } = await readBatch((await events.after('0-0', 10)).entries, events);
  const matchesFor = await matchFacts(facts, { registry, directory: COMMON_NAMES }, definitions);
  const matched = (await registry.receivers()).flatMap((receiver) => matchesFor(receiver));
  expect(matched.map(({ claimKeys }) => claimKeys)).toEqual([[`b|${ONE}`]]);
});

test.skipIf(GCC.skip)(
  `waiting events are released also to a claim that began while the clock was ahead${GCC.note}`,
  async () => {
    const clock = new ShiftedClock();
    later(async () => clock.close());
    const server = await RedisProcess.create({ durable: false, env: clock.env });
    later(() => server.close());
    const stage = relayStage(later, server.url);
    const { redis, keys, registry, advance, outcome } = stage;
    const name = (subject: typeof ONE, ...receivers: string[]) =>
      syncConfig(registry, wantedOf({ a: { subject, receivers } }, GRACE_MS), '0-0');
    await name(ONE, 'backend');
    await name(TWO, 'backend');
    clock.shift(31 * DAY_MS);
    await name(ONE, 'desk');
    await name(ONE, 'backend', 'desk');
    clock.shift(0);
    await release(stage);
    await name(TWO, 'backend', 'desk');
    const made = await eventOf(stage, `other|${ONE}`, 5);
    const [entry = ''] = await appendEvents(redis, keys, [made]);
    for (const [key, { state }] of await registry.suspensions.states())
      if (state === 'out') await stage.wait(made, entry, key);
    await name(ONE, 'backend', 'desk');
    await release(stage);
    await advance(['backend', 'desk']);
    for (const receiver of ['backend', 'desk'])
      expect(await outcome(receiver, madeEventId(made))).toBe('pending');
  },
);

describe('the failures of a receiver', () => {
  /** Opens a delivery of `backend`; the returned function lets an attempt fail, and returns what is reported. */
  async function failing({ registry, stores, token }: RelayStage) {
    await syncConfig(registry, wantedOf({ a: { subject: ONE, receivers: ['backend'] } }), '0-0');
    const delivery = { id: 'evt_1', entry: '1-0', claimKeys: [CLAIM_KEY], subject: null };
    const order = { receiver: 'backend', deliveries: [delivery], replay: null, cursor: null, process: 'p1' };
    await stores.deliveries.open(await token(), order);
    return async () => {
      const { moved } = await recordOne(stores.deliveries, 'backend', {
        nextAtMs: null,
        counts: false,
        answer: '',
        restMs: null,
        process: null,
        nowMs: 2,
        attempt: {
          atMs: 1,
          outcome: 'failed',
          httpStatus: 503,
          smtpCode: null,
          durationMs: 1,
          reason: '503',
          answer: '',
          nextAtMs: null,
        },
        disableAfterMs: 5 * DAY_MS,
        ids: ['evt_1'],
        outcome: 'pending',
      });
      return moved;
    };
  }

  test('are reported also where the last success is ahead of the clock', async () => {
    const stage = relayStage(later);
    const fail = await failing(stage);
    const lastSuccessAt = String((await redisTimeMs(stage.redis)) + 31 * DAY_MS);
    await stage.redis.hset(stage.keys.receiver('backend'), { lastSuccessAt });
    const moves = [await fail(), await fail(), await fail(), await fail()];
    expect(moves).toEqual([null, null, null, 'failing']);
  });

  test.skipIf(GCC.skip)(
    `do not disable it where the clock of Redis is behind for a while${GCC.note}`,
    async () => {
      const clock = new ShiftedClock();
      later(async () => clock.close());
      const server = await RedisProcess.create({ durable: false, env: clock.env });
      later(() => server.close());
      const stage = relayStage(later, server.url);
      const confirmed = new ConfirmedTime({
        redis: stage.redis,
        keys: stage.keys,
        process: 'p1',
        upstreamAhead: () => [],
        onCompared: () => undefined,
        onError: (error) => expect.unreachable(String(error)),
      });
      await confirmed.compare();
      const fail = await failing(stage);
      const moves = [await fail(), await fail()];
      clock.shift(-31 * DAY_MS);
      await confirmed.compare();
      moves.push(await fail());
      clock.shift(0);
      await confirmed.compare();
      moves.push(await fail(), await fail());
      expect(moves).toEqual([null, null, null, 'failing', null]);
    },
  );
});

test('a state that is reported once more under another id has another sequence', async () => {
  const { redis, keys, subjects, registry, events } = registryStage(later);
  const deps = commitDeps(redis, keys, { subjects, plan: new PlanStore(redis, keys) });
  const wallet = walletId(`0x${'11'.repeat(20)}`);
  const rest = { metadata: {}, history: 'emit' as const, overdueAfterMs: null, warnBeforeMs: null };
  const sync = async (...named: { name: string; subjects: (typeof ONE)[]; receivers: string[] }[]) => {
    const subscriptions = named.map((one) => ({ ...rest, ...one, recipients: [] }));
    await syncConfig(
      registry,
      { digest: '', graceSpanMs: 0, receivers: [], routes: [], subscriptions },
      '0-0',
    );
  };
  const show = async (key: typeof ONE, more: string) => {
    const asOf = (await redis.get(keys.commit)) ?? '0';
    const [shown, entry] = await subjects.readEach([key, ONE]);
    if (shown === undefined || entry === undefined) throw new Error('nothing was found');
    const raw = { id: ONE, type: 'intent', status: 'settled', updatedAt: 101, more };
    const record = { subject: ONE, status: 'settled', updatedAt: 101, names: [], raw, unreadable: [] };
    const claims = shown.claims.map((claim) => ({ ...claim, served: false }));
    await commitRecord(deps, record, entry, { asOf, nowMs: Date.now(), price: 1, exact: false, claims });
  };
  const treasury = { name: 'treasury', subjects: [wallet], receivers: ['r'] };
  await sync(treasury);
  await show(wallet, 'x'.repeat(1_000));
  const ended = new EndedSubjects(redis, keys);
  await ended.compact({
    confirmedMs: Date.now() + 31 * DAY_MS,
    retentionMs: 30 * DAY_MS,
    loggedFromMs: Number.POSITIVE_INFINITY,
  });
  await sync(treasury, { name: 'more', subjects: [ONE], receivers: ['r', 'late'] });
  await show(ONE, 'y'.repeat(1_000));
  const { entries } = await events.after('0-0', 10);
  const made = entries.flatMap((entry) => (entry.kind === 'event' ? [entry.event] : []));
  expect(new Set(made.map(({ id }) => id)).size).toBe(2);
  expect(made.map(({ data }) => data.sequence)).toEqual([1, 2]);
});
