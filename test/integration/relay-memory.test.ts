import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import { Relay } from '../../src/queues/deliveries/relay.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { OwnEntries } from '../../src/store/event-log.ts';
import { parseEntry, type StoredEntry } from '../../src/store/log-entry.ts';
import { redisTimeMs } from '../../src/store/redis-time.ts';
import { type Desired, syncConfig } from '../../src/store/sync-config.ts';
import { eventually } from '../support/eventually.ts';
import { appendEvents, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { ONE, TWO, wantedOf } from '../support/registry-stage.ts';
import { relayStage } from '../support/relay-stage.ts';

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

const ACT = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      log: fc.array(
        fc.record({
          key: fc.nat(1),
          subject: fc.nat(1),
          type: fc.constantFrom('intent.filled', 'intent.refunded'),
          isOwn: fc.boolean(),
        }),
        { minLength: 1, maxLength: 6 },
      ),
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
  const relay = new Relay(deps, { blocking, own });
  later(() => relay.close());
  const opened = async () => {
    const found: Record<string, unknown> = { unmatched: await redis.zcard(keys.unmatched) };
    for (const name of RECEIVERS) {
      const ids = await redis.zrange(`${keys.queue(name)}:due`, '0', '-1');
      const open = (await redis.zrange(keys.pending(name), '0', '-1')).toSorted();
      found[name] = { due: ids, open };
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
    return behind.length === 0 && (await redis.get(keys.unmatchedPlace)) === newest;
  });
}

const PLAIN = { type: 'intent.*', ordering: 'none' } as const;
const LOGGED: ActCase = { log: [{ key: 0, subject: 0, type: 'intent.filled', isOwn: false }] };

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
          const made = act.log.map(({ key, subject, type, isOwn }) => {
            sequence += 1;
            return {
              isOwn,
              subject: SUBJECTS[subject] ?? ONE,
              sequence,
              type,
              atMs: atMs + sequence,
              key: `${['a', 'b'][key]}|${SUBJECTS[subject]}`,
            };
          });
          await appendEvents(plain.redis, plain.keys, made);
          for (const { isOwn, ...event } of made) {
            const [id = ''] = await appendEvents(quick.redis, quick.keys, [event]);
            const [stored] = isOwn ? await quick.redis.xrange(quick.keys.events, id, id) : [];
            if (stored !== undefined) quick.own.add(asWritten(id, stored[1]));
          }
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

async function settledBy(plain: Awaited<ReturnType<typeof staged>>): Promise<void> {
  while ((await plain.relay.round()).more);
}

/** An entry as the process that wrote it has it in memory. */
function asWritten(id: string, fields: string[]): StoredEntry {
  return { id, fields, entry: parseEntry(id, fields) };
}
