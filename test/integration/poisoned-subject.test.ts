import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import { snapshotsSince } from '../../src/books/observations.ts';
import { intentId } from '../../src/domain/subjects/subject.ts';
import { Signals } from '../../src/signals.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { startDaemon, testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const open = opening();
const ADDRESS = '0x1111111111111111111111111111111111111111';
const BAD = intentId(hashOf(2));

/** A daemon whose wallet has three transfers of a status, with that time (Unix seconds); `poison` runs before it starts. */
async function stage(
  state: { status: string; updatedAt: number },
  poison?: (redis: RedisClient, keys: Keys) => Promise<unknown>,
) {
  const records = [1, 2, 3].map((number) => intentRecord(hashOf(number), state.status, state.updatedAt));
  const upstream = await open.started(new ScriptedUpstream(() => ({ records })));
  const hook = await open.started(new Hook());
  const prefix = testPrefix();
  const keys = new Keys(prefix);
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  open.later(() => disconnect(redis));
  await poison?.(redis, keys);
  const committed: string[] = [];
  const signals = new Signals();
  signals.on('event.committed', ({ event }) => committed.push(event.data.subject.id));
  const config = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: { backend: { url: hook.url } },
    subscriptions: [{ name: 's', wallets: [ADDRESS], history: 'emit', receivers: ['backend'] }],
  };
  const { daemon } = await startDaemon(config, undefined, signals);
  open.later(() => daemon.close());
  return { redis, keys, daemon, committed };
}

test.each<[string, (keys: Keys) => string]>([
  ['state', (keys) => keys.subject(BAD)],
  ['set of claims', (keys) => keys.claims(BAD)],
])('a transfer whose %s has another type holds up no other, is counted, and is stored once that has gone', async (_, keyOf) => {
  // What has changed lately is committed without a read.
  const updatedAt = Math.floor(Date.now() / 1_000) - 3_600;
  const { redis, keys, daemon, committed } = await stage({ status: 'filled', updatedAt }, (redis, keys) =>
    redis.set(keyOf(keys), 'x'),
  );
  await eventually('the others are stored', async () => committed.length >= 2);
  await eventually('the errors are counted', async () => {
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    return /^intentwatch_internal_errors_total\{part="record"\} [1-9]/m.test(metrics);
  });
  await redis.del(keyOf(keys));
  await eventually('it is stored', async () => committed.includes(BAD));
  expect(committed.sort()).toEqual([1, 2, 3].map((number) => intentId(hashOf(number))).sort());
});

const LIST = z.object({ subjects: z.array(z.object({ subject: z.string() })) });

test('a transfer that cannot be read any more is left out of lists alone, and the end of a day in the books waits for it', async () => {
  const updatedAt = Math.floor(Date.now() / 1_000);
  const { redis, keys, daemon, committed } = await stage({ status: 'pending', updatedAt });
  await eventually('all are stored', async () => committed.length >= 3);
  const claims = await redis.dumpBuffer(keys.claims(BAD));
  await redis.multi().del(keys.claims(BAD)).set(keys.claims(BAD), 'x').exec();
  const answer = await fetch(`${daemon.url}/api/v1/subjects?kind=intent`);
  const { subjects } = LIST.parse(await answer.json());
  expect(subjects.map(({ subject }) => subject).sort()).toEqual([hashOf(1), hashOf(3)].map(intentId));
  const store = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  const registry = new Registry(redis, keys, store);
  const sources = { subjects: store, registry, directory: { chain: () => null, token: () => null } };
  await expect(snapshotsSince(0, sources)).rejects.toThrow(`${BAD} cannot be read: `);
  await redis.restore(keys.claims(BAD), 0, claims ?? '', 'REPLACE');
  expect(await snapshotsSince(0, sources)).toHaveLength(3);
});
