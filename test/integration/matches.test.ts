import { expect, test } from 'vitest';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import { goneFor, matchesOf, matchFacts, readBatch, unledBy } from '../../src/queues/deliveries/matches.ts';
import { redisTimeMs } from '../../src/store/commands.ts';
import type { Desired } from '../../src/store/sync-config.ts';
import { eventually } from '../support/eventually.ts';
import { appendEvents, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { ONE, registryStage, TWO, wantedOf } from '../support/registry-stage.ts';
import { syncConfig } from '../support/sync-config.ts';

const { later } = opening();

/** Sequences of the logged events that a receiver gets. */
async function sequencesFor(
  name: string,
  { registry, events }: Pick<ReturnType<typeof registryStage>, 'registry' | 'events'>,
): Promise<number[]> {
  const { facts } = await readBatch((await events.after('0-0', 10)).entries, events);
  const receiver = (await registry.receivers()).find((one) => one.name === name);
  const matched =
    receiver === undefined ? [] : await matchesOf(receiver, facts, { registry, directory: COMMON_NAMES });
  return matched.map(({ event }) => event.data.sequence);
}

test('events logged before a reload that moves their subject are for the receivers that go on with it', async () => {
  const { redis, keys, events, registry } = registryStage(later);
  await syncConfig(registry, wantedOf({ a: { subject: ONE, receivers: ['backend'] } }), '0-0');
  await appendEvents(redis, keys, [
    { subject: ONE, sequence: 1, atMs: await redisTimeMs(redis), key: `a|${ONE}` },
  ]);
  const matchedBy = async () => {
    const { facts } = await readBatch((await events.after('0-0', 10)).entries, events);
    const receivers = (await registry.receivers()).toSorted((one, other) => (one.name < other.name ? -1 : 1));
    const found: Record<string, string[]> = {};
    for (const receiver of receivers) {
      const matched = await matchesOf(receiver, facts, { registry, directory: COMMON_NAMES });
      found[receiver.name] = matched.flatMap(({ claimKeys }) => claimKeys);
    }
    return found;
  };
  expect(await matchedBy()).toEqual({ backend: [`a|${ONE}`], desk: [] });
  // The name is now that of another subscription.
  await syncConfig(
    registry,
    wantedOf({
      a: { subject: TWO, receivers: [] },
      b: { subject: ONE, receivers: ['backend', 'desk'] },
    }),
    '0-0',
  );
  expect(await matchedBy()).toEqual({ backend: [`b>backend|${ONE}`], desk: [] });
  // Its continuation is suspended: it has the waiting events, and no others.
  const suspended = wantedOf({
    a: { subject: TWO, receivers: [] },
    b: { subject: TWO, receivers: ['backend'] },
  });
  await syncConfig(registry, { ...suspended, graceSpanMs: 60_000 }, '0-0');
  expect(await matchedBy()).toEqual({ backend: [], desk: [] });
  // No subscription continues it.
  await syncConfig(registry, wantedOf({ a: { subject: TWO, receivers: [] } }), '0-0');
  expect(await matchedBy()).toEqual({ backend: [], desk: [] });
});

test('a receiver that joins a subscription gets no event from before, under the old name or the new one', async () => {
  const { redis, keys, events, registry } = registryStage(later);
  const log = async (sequence: number, key: string): Promise<void> => {
    await appendEvents(redis, keys, [{ subject: ONE, sequence, atMs: await redisTimeMs(redis), key }]);
  };
  const sync = async (subscriptions: Parameters<typeof wantedOf>[0]): Promise<void> =>
    syncConfig(registry, wantedOf(subscriptions), await events.newest());
  const sequencesOf = (name: string): Promise<number[]> => sequencesFor(name, { registry, events });
  await sync({ a: { subject: ONE, receivers: ['backend'] } });
  await log(1, `a|${ONE}`);
  // The subject moves with its receiver; its old name stays, for another receiver.
  await sync({ a: { subject: TWO, receivers: ['desk'] }, b: { subject: ONE, receivers: ['backend'] } });
  expect([await sequencesOf('backend'), await sequencesOf('desk')]).toEqual([[1], []]);
  await log(2, `b|${ONE}`);
  // A repeated sync retains the place at which a receiver joined.
  const joined = {
    a: { subject: TWO, receivers: ['desk'] },
    b: { subject: ONE, receivers: ['backend', 'desk'] },
  };
  await sync(joined);
  await log(3, `b|${ONE}`);
  await sync(joined);
  expect([await sequencesOf('backend'), await sequencesOf('desk')]).toEqual([[1, 2, 3], [3]]);
  // It leaves the subscription, and joins it anew.
  await sync({ a: { subject: TWO, receivers: ['desk'] }, b: { subject: ONE, receivers: ['backend'] } });
  await log(4, `b|${ONE}`);
  await sync(joined);
  await log(5, `b|${ONE}`);
  expect([await sequencesOf('backend'), await sequencesOf('desk')]).toEqual([[1, 2, 3, 4, 5], [5]]);
});

test('a receiver that leaves a subscription and is back within the grace span has its earlier place', async () => {
  const { redis, keys, events, registry } = registryStage(later);
  let sequence = 0;
  const log = async (): Promise<void> => {
    sequence += 1;
    await appendEvents(redis, keys, [
      { subject: ONE, sequence, atMs: await redisTimeMs(redis), key: `a|${ONE}` },
    ]);
  };
  const sync = async (receivers: string[], graceSpanMs = 60_000): Promise<void> => {
    const wanted = wantedOf({ a: { subject: ONE, receivers }, b: { subject: TWO, receivers: ['desk'] } });
    await syncConfig(registry, { ...wanted, graceSpanMs }, await events.newest());
  };
  const sequencesOf = (name: string): Promise<number[]> => sequencesFor(name, { registry, events });
  await sync(['backend']);
  await log();
  await sync(['desk', 'backend']);
  await log();
  await sync(['backend']);
  await log();
  expect(await sequencesOf('desk')).toEqual([]);
  // A sync between, such as that of another process, changes nothing.
  await sync(['backend']);
  await sync(['desk', 'backend']);
  await log();
  expect(await sequencesOf('desk')).toEqual([2, 3, 4]);
  await sync(['backend']);
  const leftMs = await redisTimeMs(redis);
  await eventually('the span is over', async () => (await redisTimeMs(redis)) > leftMs + 5);
  await sync(['desk', 'backend'], 5);
  await log();
  expect(await sequencesOf('desk')).toEqual([5]);
});

test('a receiver that moves to another subscription of a subject gets what it had under the old one', async () => {
  const { redis, keys, events, registry } = registryStage(later);
  const sync = async (subscriptions: Parameters<typeof wantedOf>[0]): Promise<void> =>
    syncConfig(registry, wantedOf(subscriptions), await events.newest());
  const matched = async (name: string): Promise<number> => {
    const { facts } = await readBatch((await events.after('0-0', 10)).entries, events);
    const receiver = (await registry.receivers()).find((one) => one.name === name);
    return receiver === undefined
      ? 0
      : (await matchesOf(receiver, facts, { registry, directory: COMMON_NAMES })).length;
  };
  const log = async (...names: string[]): Promise<void> => {
    for (const [index, name] of names.entries())
      await appendEvents(redis, keys, [
        { subject: ONE, sequence: index + 1, atMs: await redisTimeMs(redis), key: `${name}|${ONE}` },
      ]);
  };
  // Both subscriptions name the subject, and stay. Each event here has the key of one of them.
  await sync({ a: { subject: ONE, receivers: ['desk'] }, b: { subject: ONE, receivers: ['backend'] } });
  await log('a', 'b');
  await sync({ a: { subject: ONE, receivers: ['backend'] }, b: { subject: ONE, receivers: ['desk'] } });
  expect([await matched('desk'), await matched('backend')]).toEqual([1, 1]);
});

test('an event is for the receiver of its subject also after two moves before its match', async () => {
  const { redis, keys, events, registry } = registryStage(later);
  const sync = async (subscriptions: Parameters<typeof wantedOf>[0]): Promise<void> =>
    syncConfig(registry, wantedOf(subscriptions), await events.newest());
  await sync({ a: { subject: ONE, receivers: ['backend'] }, c: { subject: TWO, receivers: ['desk'] } });
  await appendEvents(redis, keys, [
    { subject: ONE, sequence: 1, atMs: await redisTimeMs(redis), key: `a|${ONE}` },
  ]);
  await sync({ b: { subject: ONE, receivers: ['backend'] }, c: { subject: TWO, receivers: ['desk'] } });
  const before = await redisTimeMs(redis);
  await eventually('time has passed', async () => (await redisTimeMs(redis)) > before);
  await sync({ c: { subject: ONE, receivers: ['backend'] } });
  const { facts } = await readBatch((await events.after('0-0', 10)).entries, events);
  const matched = [];
  for (const receiver of await registry.receivers()) {
    const found = await matchesOf(receiver, facts, { registry, directory: COMMON_NAMES });
    if (found.length > 0) matched.push(receiver.name);
  }
  expect(matched).toEqual(['backend']);
});

test('a receiver that is back in the config goes on from its place, also where a restore lost its subscriptions', async () => {
  const { redis, keys, events, registry } = registryStage(later);
  const whole = wantedOf({ a: { subject: ONE, receivers: ['backend', 'desk'] } });
  const without = wantedOf({ a: { subject: ONE, receivers: ['backend'] } });
  await syncConfig(registry, whole, '0-0');
  await syncConfig(registry, { ...without, receivers: without.receivers.slice(0, 1) }, '0-0');
  const stored = JSON.parse((await redis.hget(keys.subscriptions, 'a')) ?? '');
  await redis.hset(keys.subscriptions, 'a', JSON.stringify({ ...stored, awayReceivers: [] }));
  await appendEvents(redis, keys, [
    { subject: ONE, sequence: 1, atMs: await redisTimeMs(redis), key: `a|${ONE}` },
  ]);
  await syncConfig(registry, whole, await events.newest());
  const { facts } = await readBatch((await events.after('0-0', 10)).entries, events);
  const desk = (await registry.receivers()).find(({ name }) => name === 'desk');
  const matched =
    desk === undefined ? [] : await matchesOf(desk, facts, { registry, directory: COMMON_NAMES });
  expect(matched).toHaveLength(1);
});

test('an event that is suspended again after its release, before its match, waits again', async () => {
  const { redis, keys, events, registry } = registryStage(later);
  const graceSpanMs = 60_000;
  const all = { ...wantedOf({ a: { subject: ONE, receivers: ['backend', 'desk'] } }), graceSpanMs };
  const without = {
    ...wantedOf({
      a: { subject: TWO, receivers: ['backend'] },
      b: { subject: ONE, receivers: ['backend'] },
    }),
    graceSpanMs,
  };
  await syncConfig(registry, all, '0-0');
  await syncConfig(registry, without, '0-0');
  const part = `a>desk|${ONE}`;
  expect([...(await registry.suspensions.states()).keys()]).toEqual([part]);
  const made = { subject: ONE, sequence: 1, atMs: await redisTimeMs(redis), key: `b|${ONE}` };
  await appendEvents(redis, keys, [made]);
  const [event] = (await events.after('0-0', 1)).entries;
  const entry = event?.id ?? '';
  await redis.zadd(keys.withheld, 0, `${'1'.padStart(16, '0')} ${entry} ${madeEventId(made)} ${part}`);

  /** The relay's matches for released events, and whether those still wait. */
  const released = async (by: Desired, then?: Desired) => {
    const from = (await events.newest()) ?? '0-0';
    await syncConfig(registry, by, '0-0');
    await registry.suspensions.settle({ spanMs: null, confirmedMs: 0, trimMs: 0 });
    if (then !== undefined) await syncConfig(registry, then, '0-0');
    const { facts } = await readBatch((await events.after(from, 10)).entries, events);
    const receivers = await registry.receivers();
    const matchesFor = await matchFacts(facts, { registry, directory: COMMON_NAMES });
    const unled = unledBy(facts, receivers, matchesFor);
    const waits = unled.length > 0 && (await registry.suspensions.waitAgain(unled)) === 0;
    const desk = receivers.find(({ name }) => name === 'desk');
    const claimKeys = desk === undefined ? [] : matchesFor(desk).flatMap((match) => match.claimKeys);
    return { facts: facts.length, claimKeys, waits };
  };
  expect(await released(all, without)).toEqual({ facts: 1, claimKeys: [], waits: true });
  // As for receivers at two places of the log.
  await registry.suspensions.waitAgain([{ entry, eventId: madeEventId(made), key: part }]);
  expect(await redis.zcard(keys.withheld)).toBe(1);
  expect(await released(all, without)).toEqual({ facts: 1, claimKeys: [], waits: true });
  expect(await released(all)).toEqual({ facts: 1, claimKeys: [part], waits: false });
  expect(await redis.zcard(keys.withheld)).toBe(0);
});

/** A subscription whose subject was removed from the config, and is back for another receiver. */
async function backForAnother(
  { registry }: Pick<ReturnType<typeof registryStage>, 'registry'>,
  wait: () => Promise<string>,
) {
  const graceSpanMs = 60_000;
  await syncConfig(
    registry,
    { ...wantedOf({ a: { subject: ONE, receivers: ['backend'] } }), graceSpanMs },
    '0-0',
  );
  await syncConfig(
    registry,
    { ...wantedOf({ a: { subject: TWO, receivers: ['backend'] } }), graceSpanMs },
    '0-0',
  );
  const from = await wait();
  await syncConfig(
    registry,
    { ...wantedOf({ a: { subject: ONE, receivers: ['desk'] } }), graceSpanMs },
    '0-0',
  );
  await syncConfig(
    registry,
    { ...wantedOf({ a: { subject: ONE, receivers: ['backend', 'desk'] } }), graceSpanMs },
    '0-0',
  );
  await registry.suspensions.settle({ spanMs: null, confirmedMs: 0, trimMs: 0 });
  return from;
}

test('an event that waited for a receiver is released to no receiver that its subscription got meanwhile', async () => {
  const { redis, keys, events, registry } = registryStage(later);
  const made = { subject: ONE, sequence: 1, atMs: await redisTimeMs(redis), key: `other|${ONE}` };
  const from = await backForAnother({ registry }, async () => {
    await appendEvents(redis, keys, [made]);
    const entry = await events.newest();
    await redis.zadd(keys.withheld, 0, `${'1'.padStart(16, '0')} ${entry} ${madeEventId(made)} a|${ONE}`);
    // The subject is back later than the event.
    await eventually('time has passed', async () => (await redisTimeMs(redis)) > made.atMs);
    return entry;
  });
  const { facts } = await readBatch((await events.after(from, 10)).entries, events);
  expect(facts.map(({ claimKeys }) => claimKeys)).toEqual([[`a>|${ONE}`], [`a>backend|${ONE}`]]);
});

test('an event released after it expired from the log is lost by the receivers of its claims alone', async () => {
  const { redis, keys, events, registry } = registryStage(later);
  const from = await backForAnother({ registry }, async () => {
    await redis.xadd(keys.events, '1-0', 'event', 'evt_gone');
    await redis.xdel(keys.events, '1-0');
    await redis.zadd(keys.withheld, 0, `${'1'.padStart(16, '0')} 1-0 evt_gone a|${ONE}`);
    return '0-0';
  });
  const { facts, gone } = await readBatch((await events.after(from, 10)).entries, events);
  expect(facts).toEqual([]);
  const lostBy = await goneFor(gone, registry);
  const lost = (await registry.receivers()).map((one) => [
    one.name,
    lostBy(one).map(({ eventId }) => eventId),
  ]);
  expect(Object.fromEntries(lost)).toEqual({ backend: ['evt_gone'], desk: [] });
});
