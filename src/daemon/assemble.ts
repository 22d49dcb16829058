import type { Logger } from 'pino';
import type { Books } from '../books/books.ts';
import type { Config } from '../config/config.ts';
import type { EventUrl } from '../notifiers/notifier.ts';
import type { AddedReceiverParts } from '../operations/added-receivers.ts';
import type { ConfigControl } from '../operations/config-state.ts';
import type { LogTail } from '../operations/log-tail.ts';
import { Reconcile, type Upkeep } from '../queues/deliveries/reconcile.ts';
import { tellSettled } from '../queues/deliveries/settle-suspensions.ts';
import type { ApiParts } from '../server/api/route.ts';
import type { Signals } from '../signals.ts';
import type { RedisClient } from '../store/commands.ts';
import { EndedSubjects } from '../store/ended-subjects.ts';
import type { Epoch } from '../store/epoch.ts';
import { HealthStore } from '../store/health.ts';
import { ImportedQuotes } from '../store/imported-quotes.ts';
import { Keys } from '../store/keys.ts';
import { LearnedStore } from '../store/learned.ts';
import type { OnForeign } from '../store/stored.ts';
import { assembleBooks } from './assemble-books.ts';
import { assembleVerifying, chainsOf, type Verifying } from './assemble-checks.ts';
import { assembleDelivering, type Delivering } from './assemble-delivering.ts';
import { assembleOperations } from './assemble-operations.ts';
import { assemblePolling, type Client, type Polling } from './assemble-polling.ts';
import type { Clocks } from './clocks.ts';
import { type DaemonStores, storesOn } from './stores.ts';

/** The running parts of a daemon. `clients` is what speaks to the upstream. */
export type DaemonParts = {
  redis: RedisClient;
  keys: Keys;
  clients: readonly Client[];
  stores: DaemonStores;
  polling: Polling;
  delivering: Delivering;
  verifying: Verifying;
  reconcile: Reconcile;
  /** Null where none are stored. */
  books: Books | null;
  api: ApiParts;
};

/**
 * The connections of a daemon. What is opened and what is delivered may be very much: `opening` and `delivering` are
 * connections apart, so that no poll waits behind them; `asking` is that of the API; `blocking` is one of the relay's own,
 * `waking` of the sender's.
 */
export type Connections = {
  redis: RedisClient;
  opening: RedisClient;
  delivering: RedisClient;
  asking: RedisClient;
  blocking: RedisClient;
  waking: RedisClient;
};

/** What the parts are made from. */
export type Assembly = {
  config: Config;
  connections: Connections;
  /** Who follows the log goes on through a change of the config. */
  tail: LogTail;
  adding: AddedReceiverParts;
  eventUrl: EventUrl | null;
  epoch: Epoch;
  clocks: Clocks;
  control: ConfigControl;
  signals: Signals;
  log: Logger;
  upkeep: Upkeep;
};

/** Constructs every part. Reads as the flow: polls, commits, relay, deliveries. */
export function assemble(assembly: Assembly): DaemonParts {
  const { config, connections, tail, adding, eventUrl, epoch, clocks, control, signals, log, upkeep } =
    assembly;
  const { redis, opening, delivering, asking } = connections;
  const { retentionMs } = config;
  const keys = new Keys(config.redis.prefix);
  const onForeign: OnForeign = (found) => signals.emit('store.foreign', found);
  const options = { keys, retentionMs, epoch, onForeign };
  const opens = storesOn(opening, options);
  const delivers = storesOn(delivering, options);
  const { subjects, registry, tracked, plan, wallets } = storesOn(redis, options);
  const kept = {
    ended: new EndedSubjects(redis, keys),
    learned: new LearnedStore(redis, keys, { onForeign }),
  };
  const stores: DaemonStores = {
    subjects,
    registry,
    importedQuotes: new ImportedQuotes(redis, keys, onForeign),
    tracked,
    health: new HealthStore(redis, keys),
    plan,
    events: opens.events,
    receivers: delivers.receivers,
    deliveries: delivers.deliveries,
    backlog: delivers.backlog,
    checks: delivers.checks,
    wallets,
  };
  const reported = { keys, signals, log };
  const { clients, polling } = assemblePolling({ ...reported, config, redis, stores, clocks, onForeign });
  const { learning } = polling;
  const { directory } = polling.discovery;
  const delivery = assembleDelivering(config, {
    ...reported,
    connections,
    stores,
    opens,
    directory,
    eventUrl,
  });
  const reconcile = new Reconcile({
    redis,
    epoch,
    confirmed: clocks.confirmed,
    stores: {
      ...stores,
      ...kept,
      lease: opens.lease,
      dropped: delivers.dropped,
      replays: delivers.replays,
      unmatched: opens.unmatched,
    },
    directory,
    process: delivery.sender.id,
    retentionMs,
    graceSpanMs: config.removal.graceSpanMs,
    upkeep,
    signals,
    log,
  });
  const chains = chainsOf(config, signals);
  const checked = { ...stores, subjects: delivers.subjects };
  const verifying = assembleVerifying({
    ...reported,
    ...chains,
    redis: delivering,
    stores: checked,
    learning,
  });
  const operations = assembleOperations(config, { redis: asking, keys, epoch, directory, onForeign });
  const setup = { receivers: config.receivers, options: delivery.options };
  const book = assembleBooks(config, { ...reported, clocks, redis: opening, stores, directory });
  const endSuspended: ApiParts['endSuspended'] = async (isMeant) => {
    const settled = await operations.stores.registry.suspensions.end(isMeant);
    for (const one of settled) await tellSettled(one, { stores: operations.stores, signals, log });
    return settled;
  };
  const api = {
    operations,
    tail,
    adding,
    control,
    setup: () => setup,
    books: book?.reader ?? null,
    endSuspended,
  };
  return {
    redis,
    keys,
    clients,
    stores,
    polling,
    delivering: delivery,
    verifying,
    reconcile,
    books: book?.books ?? null,
    api,
  };
}
