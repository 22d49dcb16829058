import { Backlog } from './backlog.ts';
import { CheckStore } from './checks.ts';
import type { RedisClient } from './commands.ts';
import { DeliveryStore } from './deliveries.ts';
import { DroppedStore } from './dropped.ts';
import type { Epoch } from './epoch.ts';
import { EventLog } from './event-log.ts';
import type { Keys } from './keys.ts';
import { RelayLease } from './lease.ts';
import type { OwnEntries } from './own-entries.ts';
import { PlanStore } from './plan.ts';
import { ReceiverStore } from './receivers.ts';
import { Registry } from './registry.ts';
import { ReplayStore } from './replays.ts';
import type { OnForeign } from './stored.ts';
import { SubjectStore } from './subjects.ts';
import { TrackedStore } from './tracked.ts';
import { Quarantine, UnmatchedStore } from './undelivered.ts';
import { WalletStore } from './wallets.ts';

/**
 * `onForeign` is notified of each entry of another shape. `process`: as in FencedLease. `own` gets the entries of commits, for
 * the relay of the same process; without it the relay finds them in the log.
 */
type StoreOptions = {
  keys: Keys;
  retentionMs: number;
  epoch: Epoch;
  process: string;
  onForeign: OnForeign;
  own?: OwnEntries;
};

/** The stores on one connection. A part waits behind all commands of that connection. */
export type Stores = ReturnType<typeof storesOn>;

/** Constructs the stores of one connection. */
export function storesOn(
  redis: RedisClient,
  { keys, retentionMs, epoch, process, onForeign, ...more }: StoreOptions,
) {
  const options = { retentionMs, onForeign };
  const subjects = new SubjectStore(redis, keys, { ...options, ...more, epoch });
  return {
    lease: new RelayLease(redis, keys, { onForeign, process }),
    events: new EventLog(redis, keys),
    subjects,
    plan: new PlanStore(redis, keys),
    wallets: new WalletStore(redis, keys),
    registry: new Registry(redis, keys, subjects, onForeign, process),
    receivers: new ReceiverStore(redis, keys, options),
    deliveries: new DeliveryStore(redis, keys, options),
    backlog: new Backlog(redis, keys),
    dropped: new DroppedStore(redis, keys),
    replays: new ReplayStore(redis, keys, options),
    quarantine: new Quarantine(redis, keys),
    unmatched: new UnmatchedStore(redis, keys),
    tracked: new TrackedStore(redis, keys, options),
    checks: new CheckStore(redis, keys, options),
  };
}
