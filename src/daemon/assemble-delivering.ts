import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import { createNotifier, type NotifierOptions } from '../notifiers/create-notifier.ts';
import type { EventUrl } from '../notifiers/notifier.ts';
import { DeliveryWorker } from '../queues/deliveries/delivery-worker.ts';
import { Relay } from '../queues/deliveries/relay.ts';
import { Sender } from '../queues/deliveries/sender.ts';
import type { Signals } from '../signals.ts';
import { BatchStore } from '../store/batches.ts';
import type { RedisClient } from '../store/commands.ts';
import { DroppedStore } from '../store/dropped.ts';
import type { Keys } from '../store/keys.ts';
import { SenderStore, WakeLog } from '../store/senders.ts';
import { VERSION } from '../version.ts';
import type { DaemonStores, Stores } from './stores.ts';

/** What delivers. */
export type Delivering = {
  relay: Relay;
  sender: Sender;
  workers: readonly DeliveryWorker[];
};

/** What it is made from: `opens` are the stores of the relay's own connection. */
type DeliveringAssembly = {
  connections: { delivering: RedisClient; blocking: RedisClient; waking: RedisClient };
  keys: Keys;
  stores: DaemonStores;
  opens: Stores;
  directory: Directory;
  eventUrl: EventUrl | null;
  signals: Signals;
  log: Logger;
};

/** Constructs what delivers, and says what receivers are notified with. */
export function assembleDelivering(
  { receivers: configured, smtp }: Config,
  { connections, keys, stores, opens, directory, eventUrl, signals, log }: DeliveringAssembly,
): Delivering & { options: NotifierOptions } {
  const { delivering, waking } = connections;
  const { registry, receivers, events, deliveries } = stores;
  const sender = new Sender({
    id: randomUUID(),
    senders: new SenderStore(delivering, keys),
    wakes: new WakeLog(waking, keys),
    registry,
    deliveries,
    log,
  });
  const relay = new Relay(
    { stores: { ...opens, registry, receivers }, directory, sender, signals, log },
    connections,
  );
  const batches = new BatchStore(delivering, keys);
  const dropped = new DroppedStore(delivering, keys);
  const parts = { events, registry, deliveries, batches, dropped, directory, sender, signals, log };
  const options = { smtp, version: VERSION, eventUrl, directory };
  const workers = configured.map(
    (receiver) => new DeliveryWorker(receiver, createNotifier(receiver, options), parts),
  );
  return { relay, sender, workers, options };
}
