import { expect, inject, onTestFinished, test, vi } from 'vitest';
import type { RouteDefinition } from '../../src/domain/quotes/route.ts';
import { asSubjectId, intentId, routeId } from '../../src/domain/subjects/subject.ts';
import { commitRecord } from '../../src/queues/polls/commit-record.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { eventOf } from '../../src/store/log-entry.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { addSubscriptionKeys } from '../../src/store/subscription-keys.ts';
import { commitDeps } from '../support/commit-deps.ts';
import { cutClient } from '../support/cut-client.ts';
import { testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { logEntries } from '../support/log-entries.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { syncConfig, syncFence } from '../support/sync-config.ts';

const WALLET = asSubjectId('wallet:0x52908400098527886e0f7030069857d2e4169ee7');
const INTENT = intentId(hashOf(1));
const HOUR_MS = 3_600_000;

async function connected(): Promise<RedisClient> {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  onTestFinished(() => disconnect(redis));
  return redis;
}

/** A registry of subscriptions to one wallet, whose pages show one transfer. */
function stageOn(redis: RedisClient) {
  const keys = new Keys(testPrefix());
  const subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  const deps = commitDeps(redis, keys, { subjects, plan: new PlanStore(redis, keys) });
  const registryOn = (client: RedisClient) =>
    new Registry(client, keys, new SubjectStore(client, keys, { epoch: firstEpoch(client, keys) }));
  const registry = registryOn(redis);
  const sync = async (names: readonly string[], on = registry, receivers = ['backend']): Promise<void> => {
    const subscriptions = names.map((name) => ({
      name,
      receivers,
      subjects: [WALLET],
      metadata: {},
      history: 'skip' as const,
      overdueAfterMs: null,
      warnBeforeMs: null,
      recipients: [],
    }));
    await syncConfig(
      on,
      { digest: names.join(), graceSpanMs: HOUR_MS, receivers: [], routes: [], subscriptions },
      '0-0',
    );
  };
  let updatedAt = 1_800_000_000;
  /** Ingests a state of the transfer from a page of the wallet, for all that want the wallet. */
  const show = async (status: string): Promise<void> => {
    updatedAt += 1;
    const raw = { id: INTENT, type: 'intent', status, updatedAt };
    const asOf = (await redis.get(keys.commit)) ?? '0';
    const [entry] = await subjects.readEach([INTENT]);
    const claimKeys = Object.entries(await redis.hgetall(keys.wanted));
    const claims = claimKeys.map(([key, at]) => ({ key, atMs: Number(at), historyBefore: 0, served: false }));
    if (entry === undefined) throw new Error('nothing was found');
    const record = { subject: INTENT, status, updatedAt, names: [], raw, unreadable: [] };
    await commitRecord(deps, record, entry, {
      asOf,
      nowMs: updatedAt * 1_000,
      price: 1,
      exact: false,
      claims,
    });
  };
  /** The log, with a short text for each entry. */
  const log = async (): Promise<string[]> => {
    const entries = await logEntries(redis, keys);
    const statuses = new Map(entries.map((entry) => [entry.id, eventOf(entry)?.data.status]));
    return entries.map((entry) => {
      if (entry.kind === 'event')
        return `${statuses.get(entry.id)} to ${namesOf(entry.claimKeys)} without ${namesOf(entry.withheld)}`;
      if (entry.kind === 'subscribers')
        return `${statuses.get(entry.entry)} late to ${namesOf(entry.claimKeys)}${entry.isSuspended ? ', waited' : ''}`;
      return entry.kind === 'operator'
        ? `${entry.event.type} ${entry.event.data.record.reason} ${entry.event.data.record.events}`
        : entry.kind;
    });
  };
  return { redis, keys, registry, registryOn, sync, show, log };
}

function namesOf(claimKeys: readonly string[]): string {
  return claimKeys.map((key) => key.slice(0, key.indexOf('|'))).join('+') || 'nobody';
}

/** Cuts off some work at each of its commands in turn, and repeats it. Returns the different results, each once. */
async function cutEverywhere(
  play: (
    work: (does: (registry: Registry) => Promise<unknown>) => Promise<void>,
    stage: ReturnType<typeof stageOn>,
  ) => Promise<string[]>,
): Promise<string[][]> {
  const redis = await connected();
  const outcomes = new Map<string, string[]>();
  let calls = Number.POSITIVE_INFINITY;
  for (let cutAt = 0; cutAt <= calls; cutAt += 1) {
    const stage = stageOn(redis);
    const outcome = await play(async (does) => {
      const { client, sent } = cutClient(redis, cutAt);
      await does(stage.registryOn(client)).catch(() => undefined);
      if (cutAt === 0) calls = sent();
      // Its process is gone, and with it its lease.
      await redis.del(stage.keys.configLease);
      await does(stage.registry);
    }, stage);
    outcomes.set(JSON.stringify(outcome), outcome);
  }
  expect(calls).toBeGreaterThan(5);
  return [...outcomes.values()];
}

test('a reload that is cut off while it removes a wallet suspends it all the same', async () => {
  const outcomes = await cutEverywhere(async (work, { sync, show, log }) => {
    await sync(['a']);
    await show('pending');
    await work((registry) => sync([], registry));
    await show('filled');
    return log();
  });
  expect(outcomes).toEqual([['pending to a without nobody', 'filled to nobody without a']]);
});

test('a return that is cut off releases each event once, in order, before the next events', async () => {
  const outcomes = await cutEverywhere(async (work, { sync, show, log, registry }) => {
    await sync(['a']);
    await show('pending');
    await sync([]);
    await show('filled');
    await show('settled');
    await work(async (registry) => {
      await sync(['a'], registry);
      await registry.suspensions.settle({ spanMs: HOUR_MS, confirmedMs: Date.now(), trimMs: 0 });
    });
    await show('refundable');
    expect(await registry.suspensions.counts()).toEqual({ claimKeys: 0, waiting: 0 });
    return log();
  });
  expect(outcomes).toEqual([
    [
      'pending to a without nobody',
      'filled to nobody without a',
      'settled to nobody without a',
      'filled late to a, waited',
      'settled late to a, waited',
      'refundable to a without nobody',
    ],
  ]);
});

test('a return under another name that is cut off releases all to that name', async () => {
  const outcomes = await cutEverywhere(async (work, { sync, show, log }) => {
    await sync(['a']);
    await show('pending');
    await sync([]);
    await show('filled');
    await work(async (registry) => {
      await sync(['b'], registry);
      await registry.suspensions.settle({ spanMs: HOUR_MS, confirmedMs: Date.now(), trimMs: 0 });
    });
    await show('settled');
    return log();
  });
  expect(outcomes).toEqual([
    [
      'pending to a without nobody',
      'filled to nobody without a',
      'filled late to b, waited',
      'settled to b without nobody',
    ],
  ]);
});

test('the end of a span that is cut off is reported once, with all that waited', async () => {
  const outcomes = await cutEverywhere(async (work, { sync, show, log, keys, redis, registry }) => {
    await sync(['a']);
    await show('pending');
    await sync([]);
    await show('filled');
    await show('settled');
    await work((registry) => registry.suspensions.settle({ spanMs: 0, confirmedMs: Date.now(), trimMs: 0 }));
    expect(await redis.hlen(keys.wanted)).toBe(0);
    expect(await registry.suspensions.counts()).toEqual({ claimKeys: 0, waiting: 0 });
    expect(await registry.suspensions.waiting.dropped({ before: null, count: 10 })).toHaveLength(2);
    return log();
  });
  expect(outcomes).toEqual([
    [
      'pending to a without nobody',
      'filled to nobody without a',
      'settled to nobody without a',
      'intentwatch.suspension_ended span-over 2',
    ],
  ]);
});

test('events of a wallet removed again before their release wait on, behind the released ones', async () => {
  const { sync, show, log, registry } = stageOn(await connected());
  await sync(['a']);
  await show('pending');
  await sync([]);
  await show('filled');
  await sync(['a']);
  // Nothing was released yet: it waits behind the events that do.
  await show('settled');
  await sync([]);
  await registry.suspensions.settle({ spanMs: HOUR_MS, confirmedMs: Date.now(), trimMs: 0 });
  await show('refundable');
  expect((await log()).slice(1)).toEqual([
    'filled to nobody without a',
    'settled to nobody without a',
    'refundable to nobody without a',
  ]);
  await sync(['a']);
  await registry.suspensions.settle({ spanMs: HOUR_MS, confirmedMs: Date.now(), trimMs: 0 });
  expect((await log()).slice(4)).toEqual([
    'filled late to a, waited',
    'settled late to a, waited',
    'refundable late to a, waited',
  ]);
});

test.each([
  ['', 0],
  [', also where the clock has jumped back since it was logged', 9_999_999_999_999],
])('an event that waits for one receiver is not released to others that join its subscription%s', async (_, logMs) => {
  const { redis, keys, sync, show, log, registry } = stageOn(await connected());
  await sync(['a'], registry, ['audit']);
  await show('pending');
  if (logMs > 0) await redis.call('XSETID', keys.events, `${logMs}-0`);
  await sync([]);
  await show('filled');
  await sync(['a'], registry, ['backend']);
  await registry.suspensions.settle({ spanMs: HOUR_MS, confirmedMs: Date.now(), trimMs: 0 });
  await show('settled');
  await sync([]);
  await show('refundable');
  await sync(['a'], registry, ['backend']);
  await registry.suspensions.settle({ spanMs: HOUR_MS, confirmedMs: Date.now(), trimMs: 0 });
  expect(await log()).toEqual([
    'pending to a without nobody',
    'filled to nobody without a',
    'filled late to a>, waited',
    'settled to a+a> without a>audit',
    'refundable to nobody without a>+a>audit+a',
    'refundable late to a>+a+a>, waited',
  ]);
});

test('an event that waits for one receiver is not released to others where their reload is cut off', async () => {
  const outcomes = await cutEverywhere(async (work, { sync, show, log, registry }) => {
    await sync(['a'], registry, ['audit']);
    await show('pending');
    await sync([]);
    await show('filled');
    await work(async (on) => {
      await sync(['a'], on, ['backend']);
      await on.suspensions.settle({ spanMs: HOUR_MS, confirmedMs: Date.now(), trimMs: 0 });
    });
    await show('settled');
    await work(async (on) => sync([], on));
    await show('refundable');
    await work(async (on) => {
      await sync(['a'], on, ['backend']);
      await on.suspensions.settle({ spanMs: HOUR_MS, confirmedMs: Date.now(), trimMs: 0 });
    });
    return log();
  });
  expect(outcomes).toEqual([
    [
      'pending to a without nobody',
      'filled to nobody without a',
      'filled late to a>, waited',
      'settled to a+a> without a>audit',
      'refundable to nobody without a>+a>audit+a',
      'refundable late to a>+a+a>, waited',
    ],
  ]);
});

test('an event that waits for one receiver is not released to others that join in the sync after a restore', async () => {
  const { sync, show, log, registry } = stageOn(await connected());
  await sync(['a'], registry, ['audit']);
  await show('pending');
  await sync([]);
  await show('filled');
  // Redis has lost what came after that.
  vi.spyOn(registry.subjects.epoch, 'startOf').mockReturnValue(Date.now() + 10);
  await sync(['a'], registry, ['backend']);
  await registry.suspensions.settle({ spanMs: HOUR_MS, confirmedMs: Date.now(), trimMs: 0 });
  expect(await log()).toEqual([
    'pending to a without nobody',
    'filled to nobody without a',
    'filled late to a>, waited',
  ]);
});

test('the place at which a subscription key began anew is removed with the key, and with its next start', async () => {
  const { redis, keys, sync, show, registry } = stageOn(await connected());
  const begin = async (): Promise<void> => {
    await sync(['a'], registry, ['audit']);
    await show('pending');
    await sync([]);
    await sync(['a'], registry, ['backend']);
    expect(await redis.hkeys(keys.begun)).toEqual([`a|${WALLET}`]);
  };
  await begin();
  await sync([]);
  await registry.suspensions.settle({ spanMs: 0, confirmedMs: Date.now() + HOUR_MS, trimMs: 0 });
  expect(await redis.hkeys(keys.wanted)).toEqual([]);
  expect(await redis.hkeys(keys.begun)).toEqual([]);
  await begin();
  // A removal that is cut off here leaves it.
  await redis.hdel(keys.wanted, `a|${WALLET}`);
  await addSubscriptionKeys({ registry, fence: await syncFence(redis, keys) }, [
    { key: `a|${WALLET}`, subject: WALLET, atMs: 1, from: [`b|${WALLET}`] },
  ]);
  expect(await redis.hkeys(keys.begun)).toEqual([]);
});

test('events that leave the log while they wait are named as dropped', async () => {
  const { sync, show, log, registry } = stageOn(await connected());
  await sync(['a']);
  await show('pending');
  await sync([]);
  await show('filled');
  const settled = await registry.suspensions.settle({
    spanMs: HOUR_MS,
    confirmedMs: Date.now(),
    trimMs: Date.now() + HOUR_MS,
  });
  expect(settled).toMatchObject([{ move: 'ended', reason: 'retention', events: 1 }]);
  expect((await log()).slice(2)).toEqual(['intentwatch.suspension_ended retention 1']);
  expect(await registry.suspensions.counts()).toEqual({ claimKeys: 1, waiting: 0 });
});

test('a route that is removed from the config retains its meaning until its suspension ends', async () => {
  const { redis, keys, registry } = stageOn(await connected());
  const end = { chainId: 1, token: WALLET };
  const route: RouteDefinition = {
    ...{ name: 'usdc', service: 'open', executions: [], source: end, destination: end, amount: '1' },
    ...{ funder: WALLET, recipient: WALLET, movedBy: 0.1, everyMs: 60_000 },
  };
  const definition = { receivers: [], metadata: {}, history: 'skip' as const, overdueAfterMs: null };
  const named = { name: 'a', ...definition, warnBeforeMs: null, recipients: [], subjects: [routeId(route)] };
  const wanted = { digest: 'one', graceSpanMs: HOUR_MS, receivers: [] };
  const none = { ...wanted, routes: [], subscriptions: [] };
  await syncConfig(registry, { ...wanted, routes: [route], subscriptions: [named] }, '0-0');
  await syncConfig(registry, none, '0-0');
  expect(await redis.hkeys(keys.routes)).toEqual(['usdc']);
  await registry.suspensions.settle({ spanMs: 0, confirmedMs: Date.now(), trimMs: 0 });
  await syncConfig(registry, none, '0-0');
  expect(await redis.hkeys(keys.routes)).toEqual([]);
});
