import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import { Relay } from '../../src/queues/deliveries/relay.ts';
import { RelayMemoryState } from '../../src/queues/deliveries/relay-memory.ts';
import { redisTimeMs } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import type { RelayMemory } from '../../src/store/deliveries.ts';
import { type ExpectedEntry, parseEntry, type StoredEntry } from '../../src/store/log-entry.ts';
import { OwnEntries } from '../../src/store/own-entries.ts';
import type { Desired } from '../../src/store/sync-config.ts';
import { eventually } from '../support/eventually.ts';
import { appendEvents, type MadeEvent, madeEntry, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { ONE, TWO, wantedOf } from '../support/registry-stage.ts';
import { relayStage } from '../support/relay-stage.ts';
import { syncConfig } from '../support/sync-config.ts';

const { later } = opening();

const RECEIVERS = ['backend', 'desk'];
const SUBJECTS = [ONE, TWO];

/** A config in which each of two subscriptions names a subject and some receivers, and receivers want some types. */
const CONFIG = fc.record({
  a: fc.subarray(RECEIVERS),
  b: fc.option(fc.subarray(RECEIVERS)),
  isSwapped: fc.boolean(),
  type: fc.constantFrom('intent.*', 'intent.filled', 'intent.refunded'),
  ordering: fc.constantFrom('none' as const, 'subject' as const),
});

type ConfigCase = typeof CONFIG extends fc.Arbitrary<infer T> ? T : never;

/**
 * Ways in which an entry comes into the log: by another process; by this one, which passes it on then; announced before, as it
 * comes, or otherwise, or as one that cannot be foretold; announced, and never written.
 */
const WRITTEN = [
  'other',
  'own',
  'expected',
  'expected',
  'expected',
  'otherwise',
  'unforeseen',
  'lost',
] as const;

const ACT = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      log: fc.array(
        fc.record({
          key: fc.nat(1),
          subject: fc.nat(1),
          type: fc.constantFrom('intent.filled', 'intent.refunded'),
        }),
        { minLength: 1, maxLength: 6 },
      ),
      // Those of a turn of the event loop are written in one way or two, alternately.
      how: fc.array(fc.constantFrom(...WRITTEN), { minLength: 1, maxLength: 2 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ config: CONFIG }) },
  {
    weight: 1,
    arbitrary: fc.record({
      state: fc.constantFrom('ok', 'disabled', 'paused'),
      receiver: fc.constantFrom(...RECEIVERS),
    }),
  },
);

type ActCase = typeof ACT extends fc.Arbitrary<infer T> ? T : never;

function desiredOf({ a, b, isSwapped, type, ordering }: ConfigCase): Desired {
  const [one, two] = isSwapped ? [TWO, ONE] : [ONE, TWO];
  const desired = wantedOf({
    a: { subject: one, receivers: a },
    ...(b === null ? {} : { b: { subject: two, receivers: b } }),
  });
  return {
    ...desired,
    receivers: desired.receivers.map((receiver) => ({ ...receiver, events: [type], ordering })),
  };
}

/** A relay on a Redis prefix of its own, and what it has opened. */
async function staged() {
  const stage = relayStage(later);
  const blocking = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(blocking));
  const id = String(await blocking.client('ID'));
  const { redis, keys, registry, events, deps } = stage;
  const own = new OwnEntries();
  const relay = new Relay(deps, { blocking, own, opening: deps.stores.deliveries });
  later(() => relay.close());
  const opened = async () => {
    const found: Record<string, unknown> = { unmatched: await redis.zcard(keys.unmatched) };
    for (const name of RECEIVERS) {
      const ids = await redis.zrange(`${keys.queue(name)}:due`, '0', '-1');
      const open = (await redis.zrange(keys.pending(name), '0', '-1')).toSorted();
      const factOf = async (id: string) => redis.hmget(keys.delivery(name, id), 'entry', 'claimKeys');
      found[name] = { due: ids, open, facts: await Promise.all(open.map(factOf)) };
    }
    return found;
  };
  /** Resolves when it waits for entries: what it read before its last round counts no more. */
  const waitsIn = async (database: number) =>
    eventually('it waits', async () => {
      const line = String(await redis.client('LIST', 'ID', id));
      return line.includes(' flags=b ') && line.includes(` db=${database} `);
    });
  return { ...stage, relay, blocking, waitsIn, own, opened, registry, events };
}

/** Resolves when every receiver that is not held has read the whole log, and all events are counted. */
async function settled({ redis, keys, registry, events, stores }: Awaited<ReturnType<typeof staged>>) {
  await eventually('all receivers have read the log', async () => {
    const newest = await events.newest();
    const names = (await registry.receivers()).filter(({ removed }) => !removed).map(({ name }) => name);
    const progress = await stores.lease.readReceivers(names);
    const behind = progress.filter(({ state, cursor }) => state === 'ok' && cursor !== newest);
    return behind.length === 0 && ((await redis.get(keys.unmatchedPlace)) ?? '0-0') === newest;
  });
}

const PLAIN = { type: 'intent.*', ordering: 'none' } as const;
const LOGGED: ActCase = { log: [{ key: 0, subject: 0, type: 'intent.filled' }], how: ['other'] };

/** A subject moved to the other name, where a receiver goes on with it that the old name has lost since. */
const MOVED: [ConfigCase, ActCase[]] = [
  { a: RECEIVERS, b: RECEIVERS, isSwapped: false, ...PLAIN },
  [
    LOGGED,
    { config: { a: RECEIVERS, b: RECEIVERS, isSwapped: true, ...PLAIN } },
    { config: { a: ['backend'], b: RECEIVERS, isSwapped: true, ...PLAIN } },
    LOGGED,
    LOGGED,
  ],
];

test('a relay that remembers its last round opens what one opens that reads everything each time', async () => {
  await fc.assert(
    fc.asyncProperty(CONFIG, fc.array(ACT, { minLength: 4, maxLength: 14 }), async (first, acts) => {
      const both = [await staged(), await staged()] as const;
      const [quick, plain] = both;
      for (const { registry, events } of both)
        await syncConfig(registry, desiredOf(first), await events.newest());
      quick.relay.start();
      let sequence = 0;
      const atMs = await redisTimeMs(quick.redis);
      for (const act of [...acts, ...acts]) {
        if ('log' in act) {
          const made = act.log.map(({ key, subject, type }, index) => {
            sequence += 1;
            return {
              how: act.how[index % act.how.length] ?? 'other',
              subject: SUBJECTS[subject] ?? ONE,
              sequence,
              type,
              atMs: atMs + sequence,
              key: `${['a', 'b'][key]}|${SUBJECTS[subject]}`,
            };
          });
          const stored = made.filter(({ how }) => how !== 'lost');
          await appendEvents(plain.redis, plain.keys, stored);
          await Promise.all(made.map(({ how, ...event }) => write(quick, event, how)));
          await settledBy(plain);
          await settled(quick);
        } else if ('config' in act) {
          for (const { registry, events } of both)
            await syncConfig(registry, desiredOf(act.config), await events.newest());
        } else {
          for (const { redis, keys } of both)
            await redis.hset(keys.receiver(act.receiver), 'state', act.state);
        }
        await quick.waitsIn(0);
      }
      expect(await quick.opened()).toEqual(await plain.opened());
      await quick.relay.close();
    }),
    { numRuns: 10, examples: [MOVED] },
  );
});

test('an entry that is passed on is opened behind those that nobody passed on', async () => {
  const { relay, blocking, waitsIn, own, redis, keys, registry, events, opened } = await staged();
  await syncConfig(registry, wantedOf({ a: { subject: ONE, receivers: ['backend'] } }), '0-0');
  relay.start();
  await waitsIn(0);
  const atMs = await redisTimeMs(redis);
  const all: string[] = [];
  for (const sequences of [[1], [2, 3], [4], [5, 6]]) {
    const made = sequences.map((sequence) => ({
      ...{ subject: ONE, sequence, key: `a|${ONE}` },
      atMs: atMs + sequence,
    }));
    const last = (await appendEvents(redis, keys, made)).at(-1) ?? '';
    for (const [, fields] of await redis.xrange(keys.events, last, last)) own.add(asWritten(last, fields));
    all.push(...made.map(madeEventId));
    await eventually('the receiver has read the log', async () => {
      return (await redis.hget(keys.cursors, 'backend')) === (await events.newest());
    });
    expect(await opened()).toMatchObject({ backend: { open: all.toSorted() } });
    // From now on it waits for entries in a database that gets none: it learns of them by rounds, and by what is passed on.
    await blocking.select(1);
    await waitsIn(1);
  }
});

test('entries that are announced are opened on the way of their commits, unless others come before them', async () => {
  const stage = await staged();
  const { relay, blocking, waitsIn, redis, keys, registry, opened } = stage;
  const wanted = { a: { subject: ONE, receivers: RECEIVERS }, b: { subject: TWO, receivers: ['desk'] } };
  await syncConfig(registry, wantedOf(wanted), '0-0');
  const atMs = await redisTimeMs(redis);
  const eventAt = (sequence: number) => ({ subject: ONE, sequence, atMs: atMs + sequence, key: `a|${ONE}` });
  const openTo = (last: number) =>
    Array.from({ length: last }, (_, index) => madeEventId(eventAt(index + 1))).toSorted();
  const idsOf = (found: unknown) => (found as { open: string[] }).open.filter((id) => id !== other);
  const otherAt = { subject: TWO, sequence: 1, atMs, key: `b|${TWO}` };
  const other = madeEventId(otherAt);
  relay.start();
  await waitsIn(0);
  // It reads a subscription for the first event that comes while it waits.
  await appendEvents(redis, keys, [otherAt, eventAt(1)]);
  await settled(stage);
  await waitsIn(0);
  // From now on it learns of entries by rounds, and by what is announced.
  await blocking.select(1);
  await waitsIn(1);
  let last = 1;
  /** Announces entries. True when they are open once that turn of the event loop is over. */
  const areOpenAtOnce = async (count: number) => {
    const written = Array.from({ length: count }, () => write(stage, eventAt(++last), 'expected'));
    await new Promise((resolve) => setImmediate(resolve));
    const { backend, desk } = await opened();
    await Promise.all(written);
    await settled(stage);
    return isDeepStrictEqual([backend, desk].map(idsOf), [openTo(last), openTo(last)]);
  };
  for (const count of [2, 1]) {
    // A round that is under way opens them otherwise.
    await eventually('they are open at once', async () => {
      await waitsIn(1);
      return areOpenAtOnce(count);
    });
  }
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await waitsIn(1);
    await write(stage, eventAt(++last), 'otherwise');
    await settled(stage);
    await waitsIn(1);
    await appendEvents(redis, keys, [eventAt(++last)]);
    await areOpenAtOnce(1);
  }
  const { backend, desk } = await opened();
  expect([backend, desk].map(idsOf)).toEqual([openTo(last), openTo(last)]);
});

test('events that are large, over all their receivers, are not announced', async () => {
  const { registry, events, deps } = await staged();
  const names = Array.from({ length: 20 }, (_, index) => `r${index}`);
  const wanted = wantedOf({ a: { subject: ONE, receivers: names } });
  const [one] = wanted.receivers;
  if (one === undefined) throw new Error('there is no receiver');
  const receivers = names.map((name) => ({ ...one, name }));
  await syncConfig(registry, { ...wanted, receivers }, await events.newest());
  const opened: number[] = [];
  const deliveries = {
    open: async (_token: string, _opening: unknown, { memory }: { memory: RelayMemory }) => {
      opened.push(memory.expected.length);
      return null;
    },
  };
  const memory = new RelayMemoryState(registry.definitions);
  const subscriptions = await registry.subscriptions([`a|${ONE}`]);
  memory.note({ token: '1', at: '1-0', receivers: await registry.receivers(), subscriptions });
  const entryOf = (size: number) => {
    const entry = madeEntry({ subject: ONE, sequence: 1, atMs: 1, key: `a|${ONE}` });
    return { ...entry, packed: entry.packed.padEnd(size) };
  };
  const announce = async (...entries: ExpectedEntry[]) => {
    opened.length = 0;
    const stores = { ...deps.stores, deliveries } as unknown as typeof deps.stores;
    await memory.openExpected({ entries, token: '1' }, { ...deps, stores });
    return opened;
  };
  expect(await announce(entryOf(1_000_000))).toEqual([]);
  expect(await announce(...Array.from({ length: 4 }, () => entryOf(1_000)))).toEqual([]);
  expect(await announce(...Array.from({ length: 3 }, () => entryOf(1_000)))).toEqual(names.map(() => 3));
});

/** Writes an entry as a commit does: announced, where it is, and answered once it is in the log. */
async function write(
  { redis, keys, own }: Awaited<ReturnType<typeof staged>>,
  event: MadeEvent,
  how: (typeof WRITTEN)[number],
): Promise<void> {
  const entry = madeEntry(event);
  const changed = { ...entry, claimKeys: [event.key.replace(/^./, (name) => (name === 'a' ? 'b' : 'a'))] };
  const expected = { expected: entry, lost: entry, otherwise: changed, unforeseen: null };
  const answered = how === 'other' || how === 'own' ? () => undefined : own.expect(expected[how]);
  const [id] = await (how === 'lost' ? redis.ping() : appendEvents(redis, keys, [event]));
  answered();
  if (id === undefined || how === 'lost' || how === 'other') return;
  const [stored] = await redis.xrange(keys.events, id, id);
  if (stored !== undefined) own.add(asWritten(id, stored[1]));
}

async function settledBy(plain: Awaited<ReturnType<typeof staged>>): Promise<void> {
  while ((await plain.relay.round()).more);
}

/** An entry as the process that wrote it has it in memory. */
function asWritten(id: string, fields: string[]): StoredEntry {
  return { id, fields, entry: parseEntry(id, fields) };
}
