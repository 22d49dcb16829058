import { expect, inject, test } from 'vitest';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { ImportedQuotes } from '../../src/store/imported-quotes.ts';
import { Keys } from '../../src/store/keys.ts';
import { LeaseLostError } from '../../src/store/lease.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { type Desired, syncConfig as syncUnder } from '../../src/store/sync-config.ts';
import { cutClient } from '../support/cut-client.ts';
import { testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { opening } from '../support/opening.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { syncConfig, syncFence } from '../support/sync-config.ts';

const { later } = opening();

function wantedOf(receivers: string[]): Desired {
  return {
    digest: receivers.join(),
    graceSpanMs: 0,
    receivers: receivers.map((name) => ({
      name,
      type: 'webhook',
      events: [],
      filter: { wallets: null, chains: null, minAmount: null },
      ordering: 'none',
    })),
    routes: [],
    subscriptions: [
      {
        name: 'orders',
        receivers,
        subjects: [asSubjectId(`intent:${hashOf(1)}`)],
        metadata: {},
        history: 'skip',
        overdueAfterMs: null,
        warnBeforeMs: null,
        recipients: [],
      },
    ],
  };
}

test('a receiver that comes back is never there before the subscriptions that name it', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const seen = new Set<string>();
  let calls = Number.POSITIVE_INFINITY;
  for (let cutAt = 0; cutAt <= calls; cutAt += 1) {
    const keys = new Keys(testPrefix());
    const { client, sent } = cutClient(redis, cutAt);
    const registryOn = (one: typeof redis) =>
      new Registry(one, keys, new SubjectStore(one, keys, { epoch: firstEpoch(one, keys) }));
    const registry = registryOn(redis);
    await syncConfig(registry, wantedOf(['backend']), '0-0');
    await syncConfig(registry, wantedOf([]), '0-0');
    await syncConfig(registryOn(client), wantedOf(['backend']), '9-0').catch(() => undefined);
    if (cutAt === 0) calls = sent();
    const [receiver] = await registry.receivers();
    const named = (await registry.subscriptions(['orders|'])).get('orders')?.receivers.length === 1;
    seen.add(`${receiver?.removed ? 'away' : 'back'}, ${named ? 'named' : 'not named'}`);
    expect(await redis.hget(keys.cursors, 'backend')).toBe('0-0');
  }
  expect([...seen].sort()).toEqual(['away, named', 'away, not named', 'back, named']);
});

/** Makes a client of Redis that waits before one of its commands (from 1; 0: none) for `meanwhile`, and counts its commands. */
function heldClient(redis: RedisClient, at: number, meanwhile: () => Promise<unknown>) {
  let sent = 0;
  const client = new Proxy(redis, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function' || name === 'defineCommand' || name === 'multi') return member;
      return async (...given: unknown[]): Promise<unknown> => {
        sent += 1;
        if (sent === at) await meanwhile();
        return Reflect.apply(member, target, given);
      };
    },
  });
  return { client, sent: () => sent };
}

/** Reads all that is stored under a prefix. */
async function storedUnder(redis: RedisClient, { prefix }: Keys): Promise<Map<string, string>> {
  const names = (await redis.keys(`${prefix}:*`)).sort();
  const dumps = await Promise.all(names.map((name) => redis.dumpBuffer(name)));
  return new Map(names.map((name, index) => [name, dumps[index]?.toString('base64') ?? '']));
}

test('a sync that is stopped at any of its commands writes nothing over a newer config', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const [base] = wantedOf(['backend', 'desk']).subscriptions;
  if (base === undefined) throw new Error('expected a subscription');
  const configOf = (digest: string, receivers: string[], named: [string, string[], number[]][]): Desired => ({
    ...wantedOf(receivers),
    digest,
    graceSpanMs: 60_000,
    routes: [],
    subscriptions: named.map(([name, some, hashes]) => ({
      ...base,
      name,
      receivers: some,
      subjects: hashes.map((hash) => asSubjectId(`intent:${hashOf(hash)}`)),
    })),
  });
  const stored = configOf('stored', ['backend', 'desk'], [['orders', ['backend', 'desk'], [1, 2, 3]]]);
  // Each makes its own subscription, receiver and route, and removes what the other one names.
  const older = configOf(
    'older',
    ['backend', 'old'],
    [
      ['orders', ['backend'], [1, 4]],
      ['older', ['old'], [2, 5]],
    ],
  );
  const newer = configOf(
    'newer',
    ['desk', 'new'],
    [
      ['orders', ['desk'], [2, 5]],
      ['newer', ['new'], [1, 6]],
    ],
  );
  const results = new Map<string, number>();
  // The first round is not stopped, and counts the commands.
  for (let at = 0, calls = 0; at <= calls; at += 1) {
    const keys = new Keys(testPrefix());
    const registryOn = (one: RedisClient) =>
      new Registry(one, keys, new SubjectStore(one, keys, { epoch: firstEpoch(one, keys) }));
    const quotesOf = (name: string) => [
      { subject: asSubjectId(`quote:${name}`), raw: { id: name, intentHash: hashOf(name.length) } },
    ];
    const sync = async (client: RedisClient, wanted: Desired): Promise<void> => {
      const fence = await syncFence(redis, keys);
      await new ImportedQuotes(client, keys).sync(quotesOf(wanted.digest), fence);
      await syncUnder(registryOn(client), wanted, { newestEntry: '0-0', fence });
    };
    await sync(redis, stored);
    let before = new Map<string, string>();
    const { client, sent } = heldClient(redis, at, async () => {
      await sync(redis, newer);
      before = await storedUnder(redis, keys);
    });
    const result = await sync(client, older).then(
      () => 'whole',
      (error: unknown) => (error instanceof LeaseLostError ? 'refused' : String(error)),
    );
    results.set(result, (results.get(result) ?? 0) + 1);
    if (at === 0) calls = sent();
    const after = await storedUnder(redis, keys);
    const changed = [...after].filter(([name, dump]) => before.get(name) !== dump).map(([name]) => name);
    if (at > 0) expect([...changed, after.size], `stopped at command ${at}`).toEqual([before.size]);
  }
  // One that is stopped behind its last write is whole.
  expect([...results.keys()].sort()).toEqual(['refused', 'whole']);
  expect(results.get('refused')).toBeGreaterThan(20);
});
