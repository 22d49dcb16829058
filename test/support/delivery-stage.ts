import { inject } from 'vitest';
import type { Daemon } from '../../src/daemon/daemon.ts';
import type { Signals } from '../../src/signals.ts';
import { Backlog } from '../../src/store/backlog.ts';
import { type RedisClient, redisTimeMs } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import {
  type ClaimOrder,
  DeliveryStore,
  type EndedAttempt,
  type Recorded,
} from '../../src/store/deliveries.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { RelayLease } from '../../src/store/lease.ts';
import { ReceiverStore } from '../../src/store/receivers.ts';
import { ReplayStore } from '../../src/store/replays.ts';
import { startDaemon, type TestConfig, testPrefix } from './daemon.ts';
import { eventually } from './eventually.ts';
import type { Hook } from './hook.ts';
import { appendEvents, type MadeEvent } from './log-entries.ts';
import type { opening } from './opening.ts';
import { hashOf, ScriptedUpstream } from './scripted-upstream.ts';

const NAMED = hashOf(77);

/** The claim that leads to all receivers of a delivery stage. */
export const CLAIM_KEY = `s|intent:${NAMED}`;

export const HOUR_MS = 3_600_000;

/** A Redis prefix with a config on it, and stores to read it. No daemon runs on it yet. */
export type DeliveryStage = {
  config: TestConfig;
  redis: RedisClient;
  keys: Keys;
  states: ReceiverStore;
  deliveries: DeliveryStore;
  backlog: Backlog;
  replays: ReplayStore;
  events: EventLog;
  lease: RelayLease;
  start: () => Promise<{ daemon: Daemon; signals: Signals }>;
  /** Resolves when a receiver has read the whole log and no delivery of it is pending. */
  drained: (receiver: string) => Promise<void>;
};

/** Sets a stage for deliveries alone: the upstream knows nothing, and the tests write events into the log as a commit does. */
export async function deliveryStage(
  { later, started }: ReturnType<typeof opening>,
  receivers: Record<string, { hook: Pick<Hook, 'url'>; more?: object }>,
  more: object = {},
): Promise<DeliveryStage> {
  const upstream = await started(new ScriptedUpstream(() => ({ records: [] })));
  const prefix = testPrefix();
  const config = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: Object.fromEntries(
      Object.entries(receivers).map(([name, { hook, more }]) => [name, { url: hook.url, more: more ?? {} }]),
    ),
    subscriptions: [{ name: 's', intents: [NAMED], receivers: Object.keys(receivers) }],
    more,
  };
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(prefix);
  const backlog = new Backlog(redis, keys);
  const events = new EventLog(redis, keys);
  const lease = new RelayLease(redis, keys);
  return {
    config,
    redis,
    keys,
    states: new ReceiverStore(redis, keys),
    deliveries: new DeliveryStore(redis, keys),
    backlog,
    replays: new ReplayStore(redis, keys),
    events,
    lease,
    start: async () => {
      const running = await startDaemon(config);
      later(() => running.daemon.close());
      return running;
    },
    drained: async (receiver) => {
      await eventually(`nothing waits for ${receiver}`, async () => {
        const [cursor, newest] = [await lease.cursor(receiver), await events.newest()];
        return cursor === newest && (await backlog.counts(receiver)).pending === 0;
      });
    },
  };
}

/** The order of a process that holds no delivery and has no rate limit, except for `more`. */
export function orderOf(more: Partial<ClaimOrder> & { most: number }): ClaimOrder {
  return { intervalMs: null, isTogether: false, held: [], ...more };
}

/** Records one attempt, and claims nothing. */
export async function recordOne(
  deliveries: DeliveryStore,
  receiver: string,
  ended: EndedAttempt,
): Promise<Recorded> {
  const { recorded } = await deliveries.record(receiver, [ended], { process: 'p', order: null });
  if (recorded[0] === undefined) throw new Error('no attempt was recorded');
  return recorded[0];
}

/** Makes `count` events of several transfers, one of each in turn, spread over an hour. */
export function hourOfEvents(
  count: number,
  { fromMs, transfers }: { fromMs: number; transfers: number },
): MadeEvent[] {
  return Array.from({ length: count }, (_, index) => ({
    subject: `intent:${hashOf(1_000 + (index % transfers))}`,
    sequence: Math.floor(index / transfers) + 1,
    atMs: fromMs + Math.floor((index * HOUR_MS) / count),
    key: CLAIM_KEY,
  }));
}

/** Appends events of several transfers, from now on over an hour. */
export async function happen(
  { redis, keys }: Pick<DeliveryStage, 'redis' | 'keys'>,
  count: number,
  transfers = count,
): Promise<MadeEvent[]> {
  const made = hourOfEvents(count, { fromMs: (await redisTimeMs(redis)) + 1_000, transfers });
  await appendEvents(redis, keys, made);
  return made;
}

/** Appends events of several transfers in turn; each call makes the next ones, at the present time. */
export function happening({ redis, keys }: Pick<DeliveryStage, 'redis' | 'keys'>, transfers: number) {
  let count = 0;
  return async (more: number): Promise<MadeEvent[]> => {
    const fromMs = await redisTimeMs(redis);
    const made = Array.from({ length: more }, (_, index): MadeEvent => {
      const number = count + index;
      const subject = `intent:${hashOf(1_000 + (number % transfers))}`;
      return { subject, sequence: Math.floor(number / transfers) + 1, atMs: fromMs, key: CLAIM_KEY };
    });
    count += more;
    // A daemon may have added an event of its own meanwhile.
    await appendEvents(redis, keys, made, () => '*');
    return made;
  };
}
