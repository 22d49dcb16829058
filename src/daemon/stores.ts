import type { Config } from '../config/config.ts';
import { arrivalRule, watchRules } from '../domain/cadence/watch-rules.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import type { OperationContext } from '../operations/operation.ts';
import { Backlog } from '../store/backlog.ts';
import { CheckStore } from '../store/checks.ts';
import type { RedisClient } from '../store/commands.ts';
import { DeliveryStore } from '../store/deliveries.ts';
import { DroppedStore } from '../store/dropped.ts';
import type { Epoch } from '../store/epoch.ts';
import { EventLog } from '../store/event-log.ts';
import type { HealthStore } from '../store/health.ts';
import type { ImportedQuotes } from '../store/imported-quotes.ts';
import type { Keys } from '../store/keys.ts';
import { LearnedStore } from '../store/learned.ts';
import { RelayLease } from '../store/lease.ts';
import type { OwnEntries } from '../store/own-entries.ts';
import { PlanStore } from '../store/plan.ts';
import { ReceiverStore } from '../store/receivers.ts';
import { Registry } from '../store/registry.ts';
import { ReplayStore } from '../store/replays.ts';
import { AnswerStore, ConsumerStore, EndedSessionStore } from '../store/server-state.ts';
import type { OnForeign } from '../store/stored.ts';
import { SubjectStore } from '../store/subjects.ts';
import { TrackedStore } from '../store/tracked.ts';
import { Quarantine, UnmatchedStore } from '../store/undelivered.ts';
import { WalletStore } from '../store/wallets.ts';

/** Stores of the running components, as far as several of these use them. */
export type DaemonStores = {
  subjects: SubjectStore;
  registry: Registry;
  importedQuotes: ImportedQuotes;
  tracked: TrackedStore;
  health: HealthStore;
  plan: PlanStore;
  events: EventLog;
  receivers: ReceiverStore;
  deliveries: DeliveryStore;
  backlog: Backlog;
  checks: CheckStore;
  wallets: WalletStore;
};

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

type OperationAssembly = {
  redis: RedisClient;
  keys: Keys;
  epoch: Epoch;
  directory: Directory;
  process: string;
  onForeign: OnForeign;
};

/** Constructs the dependencies of the API's operations, on a connection of their own. */
export function assembleOperations(
  { retentionMs, polling, removal }: Pick<Config, 'retentionMs' | 'polling' | 'removal'>,
  { redis, keys, epoch, directory, process, onForeign }: OperationAssembly,
): OperationContext {
  const learned = new LearnedStore(redis, keys, { onForeign });
  const model = { rules: watchRules(polling), arrivals: arrivalRule(polling) };
  return {
    redis,
    directory,
    knowledge: () => learned.knowledge(model),
    graceSpanMs: removal.graceSpanMs,
    statusSource: keys.statusSource,
    stores: {
      ...storesOn(redis, { keys, retentionMs, epoch, process, onForeign }),
      learned,
      answers: new AnswerStore(redis, keys),
      consumers: new ConsumerStore(redis, keys),
      sessions: new EndedSessionStore(redis, keys),
    },
  };
}
