import { pino } from 'pino';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import { follow } from '../../src/queues/deliveries/follow.ts';
import type { RelayContext } from '../../src/queues/deliveries/relay-context.ts';
import { Sender } from '../../src/queues/deliveries/sender.ts';
import { Heartbeat } from '../../src/queues/heartbeat.ts';
import { Signals } from '../../src/signals.ts';
import { SenderStore, WakeLog } from '../../src/store/senders.ts';
import { type MadeEvent, madeEventId } from './log-entries.ts';
import { registryStage } from './registry-stage.ts';
import { storesOf } from './stores.ts';

/** A registry stage whose relay takes one step at a time, and sends nothing. */
export function relayStage(later: (close: () => Promise<unknown>) => void, url?: string) {
  const stage = registryStage(later, url);
  const { redis, keys, registry, events } = stage;
  const stores = { ...storesOf(redis, keys), events, registry };
  const log = pino({ level: 'silent' });
  const heartbeat = new Heartbeat({
    id: 'p1',
    senders: new SenderStore(redis, keys),
    registry,
    deliveries: stores.deliveries,
    plan: stores.plan,
    checks: stores.checks,
    log,
  });
  const sender = new Sender({ heartbeat, wakes: new WakeLog(redis, keys), log });
  const deps: RelayContext = { stores, directory: COMMON_NAMES, sender, signals: new Signals(), log };
  const failed: string[] = [];
  return {
    ...stage,
    deps,
    stores,
    /** Receivers that could not advance. */
    failed,
    token: async () => (await stores.lease.hold()) ?? '',
    /** Advances some receivers whose cursor is at a place of the log, by a batch. */
    advance: async (names: readonly string[], cursor = '0-0') => {
      const token = (await stores.lease.hold()) ?? '';
      const receivers = (await registry.receivers())
        .filter(({ name }) => names.includes(name))
        .map((receiver) => ({ receiver, open: 0 }));
      const lease = { token, isHeld: () => true, failed: (name: string) => void failed.push(name) };
      return follow({ cursor, ahead: null, receivers }, lease, deps);
    },
    cursors: async () => redis.hgetall(keys.cursors),
    outcome: async (receiver: string, id: string) =>
      (await stores.deliveries.fact(receiver, id))?.outcome ?? null,
    /** The events that are noted as lost by a receiver. */
    lostBy: async (receiver: string) => redis.lrange(keys.dropped(receiver), '0', '-1'),
    /** Makes a logged event wait for a subscription key. */
    wait: async (made: MadeEvent, entry: string, key: string) => {
      await redis.zadd(keys.withheld, '0', `${'1'.padStart(16, '0')} ${entry} ${madeEventId(made)} ${key}`);
    },
    /** The events that wait, in their order. */
    waiting: async () => redis.zrange(keys.withheld, '0', '-1'),
  };
}
