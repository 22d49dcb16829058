import type { Logger } from 'pino';
import type { Directory } from '../../domain/transfers/chains.ts';
import type { Signals } from '../../signals.ts';
import type { Backlog } from '../../store/backlog.ts';
import type { DeliveryStore } from '../../store/deliveries.ts';
import type { DroppedStore } from '../../store/dropped.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { RelayLease } from '../../store/lease.ts';
import type { ReceiverStore } from '../../store/receivers.ts';
import type { Registry } from '../../store/registry.ts';
import type { ReplayStore } from '../../store/replays.ts';
import type { Quarantine, UnmatchedStore } from '../../store/undelivered.ts';
import type { Sender } from './sender.ts';

/** Stores that the relay reads and writes. */
export type RelayStores = {
  lease: RelayLease;
  events: EventLog;
  registry: Registry;
  receivers: ReceiverStore;
  deliveries: DeliveryStore;
  backlog: Backlog;
  dropped: DroppedStore;
  replays: ReplayStore;
  quarantine: Quarantine;
  unmatched: UnmatchedStore;
};

/** Dependencies for opening deliveries. */
export type RelayContext = {
  stores: RelayStores;
  directory: Directory;
  sender: Sender;
  signals: Signals;
  log: Logger;
};
