import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { Books, openBooks } from '../books/books.ts';
import { DailyReportMailer } from '../books/daily-report-mailer.ts';
import { BooksReader } from '../books/reader.ts';
import { type ChainReader, createChainReaders } from '../chains/chain-readers.ts';
import type { EndpointCall } from '../chains/endpoint.ts';
import type { Config } from '../config/config.ts';
import { tokenRules } from '../domain/proof/statement.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import { createNotifier, type NotifierOptions } from '../notifiers/create-notifier.ts';
import type { EventUrl } from '../notifiers/notifier.ts';
import type { AddedReceiverDeps } from '../operations/added-receivers.ts';
import type { ConfigControl } from '../operations/config-state.ts';
import type { LogTail } from '../operations/log-tail.ts';
import { CheckFeed, PaymentChecks } from '../queues/checks/checks.ts';
import { FailureLog } from '../queues/checks/failure-log.ts';
import type { CheckedChains } from '../queues/checks/run-check.ts';
import { DeliveryWorker } from '../queues/deliveries/delivery-worker.ts';
import { Reconcile, reportSettled, type Upkeep } from '../queues/deliveries/reconcile.ts';
import { Relay } from '../queues/deliveries/relay.ts';
import { Sender } from '../queues/deliveries/sender.ts';
import { Heartbeat } from '../queues/heartbeat.ts';
import type { Learning } from '../queues/polls/learning.ts';
import type { ApiContext } from '../server/api/route.ts';
import type { Signals } from '../signals.ts';
import { BatchStore } from '../store/batches.ts';
import type { RedisClient } from '../store/commands.ts';
import { EndedSubjects } from '../store/ended-subjects.ts';
import type { Epoch } from '../store/epoch.ts';
import { EventLog } from '../store/event-log.ts';
import { HealthStore } from '../store/health.ts';
import { ImportedQuotes } from '../store/imported-quotes.ts';
import { Keys } from '../store/keys.ts';
import { LearnedStore } from '../store/learned.ts';
import { FencedLease } from '../store/lease.ts';
import { OwnEntries } from '../store/own-entries.ts';
import { SenderStore, WakeLog } from '../store/senders.ts';
import type { OnForeign } from '../store/stored.ts';
import { type Stores, storesOn } from '../store/stores.ts';
import { VERSION } from '../version.ts';
import { assemblePolling, type Client, type Polling } from './assemble-polling.ts';
import type { Clocks } from './clocks.ts';
import { assembleOperations, type DaemonStores } from './stores.ts';

/** The running components of a daemon. `clients` are those of the upstream. */
export type DaemonContext = {
  redis: RedisClient;
  keys: Keys;
  clients: readonly Client[];
  stores: DaemonStores;
  heartbeat: Heartbeat;
  polling: Polling;
  delivering: Delivering;
  verifying: Verifying;
  reconcile: Reconcile;
  /** Null without `books` in the config. */
  books: Books | null;
  api: ApiContext;
};

/**
 * The connections of a daemon. `openingRedis` and `deliveryRedis` carry many commands: on connections of their own they delay no
 * poll. `apiRedis` is for the API. `blocking` is for the relay, `waking` for the sender.
 */
type Connections = SharedConnections & Record<'blocking' | 'waking', RedisClient>;

/** The connections that generations share. */
export type SharedConnections = Record<'redis' | 'openingRedis' | 'deliveryRedis' | 'apiRedis', RedisClient>;

/** Input of `assemble`, without the upkeep of the generation. */
export type Assembly = {
  config: Config;
  connections: Connections;
  /** Followers of the log continue through a change of the config. */
  tail: LogTail;
  apiReceivers: AddedReceiverDeps;
  eventUrl: EventUrl | null;
  epoch: Epoch;
  clocks: Clocks;
  control: ConfigControl;
  signals: Signals;
  log: Logger;
};

/** Constructs every part, in the order of the flow: polls, commits, relay, deliveries. */
export function assemble(assembly: Assembly & { upkeep: Upkeep }): DaemonContext {
  const { config, connections, tail, apiReceivers, eventUrl, epoch, clocks, control, signals, log, upkeep } =
    assembly;
  const { redis, openingRedis, deliveryRedis, apiRedis } = connections;
  const { retentionMs } = config;
  const keys = new Keys(config.redis.prefix, config.upstream.statusSource);
  const onForeign: OnForeign = (found) => signals.emit('store.foreign', found);
  // Names this generation in all that it claims.
  const process = randomUUID();
  const own = new OwnEntries();
  const options = { keys, retentionMs, epoch, process, onForeign, own };
  const opens = storesOn(openingRedis, options);
  const delivers = storesOn(deliveryRedis, options);
  const polls = storesOn(redis, options);
  const { subjects, registry, tracked, plan, wallets } = polls;
  const stores: DaemonStores = {
    ...delivers,
    subjects,
    registry,
    importedQuotes: new ImportedQuotes(redis, keys, onForeign, config.upstream.quoteDomain),
    tracked,
    health: new HealthStore(redis, keys),
    plan,
    wallets,
    lease: opens.lease,
    events: opens.events,
    unmatched: opens.unmatched,
    quarantine: opens.quarantine,
  };
  const heartbeat = new Heartbeat({
    id: process,
    senders: new SenderStore(deliveryRedis, keys),
    ...stores,
    log,
  });
  const reported = { keys, process, signals, log };
  const { clients, polling } = assemblePolling({ ...reported, config, redis, stores, clocks, onForeign });
  const { learning } = polling;
  const { directory } = polling.discovery;
  const delivery = assembleDelivering(config, {
    ...reported,
    connections,
    heartbeat,
    stores,
    opens,
    own,
    opening: polls.deliveries,
    directory,
    eventUrl,
  });
  const reconcile = new Reconcile({
    redis,
    epoch,
    confirmed: clocks.confirmed,
    stores: {
      ...stores,
      ended: new EndedSubjects(redis, keys),
      learned: new LearnedStore(redis, keys, { onForeign }),
    },
    directory,
    process,
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
    redis: deliveryRedis,
    stores: checked,
    learning,
  });
  const operations = assembleOperations(config, {
    redis: apiRedis,
    keys,
    epoch,
    directory,
    process,
    onForeign,
  });
  const setup = { receivers: config.receivers, options: delivery.options };
  const book = assembleBooks(config, { ...reported, clocks, redis: openingRedis, stores, directory });
  const endSuspended: ApiContext['endSuspended'] = async (isMeant) => {
    const settled = await operations.stores.registry.suspensions.end(isMeant);
    for (const one of settled) await reportSettled(one, { stores: operations.stores, signals, log });
    return settled;
  };
  const api = {
    operations,
    tail,
    apiReceivers,
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
    heartbeat,
    polling,
    delivering: delivery,
    verifying,
    reconcile,
    books: book?.books ?? null,
    api,
  };
}

type BooksAssembly = {
  redis: RedisClient;
  keys: Keys;
  process: string;
  clocks: Clocks;
  stores: Stores;
  directory: Directory;
  signals: Signals;
  log: Logger;
};

function assembleBooks(
  { books: config, dataDir, smtp, checkedChains }: Config,
  { redis, keys, process, clocks, stores, directory, signals, log }: BooksAssembly,
): { books: Books; reader: BooksReader } | null {
  if (config === null) return null;
  const { timeZone: zone, closeAfterMs, retentionMs, report } = config;
  const database = openBooks(config, { dataDir });
  const checked = new Set(checkedChains.map(({ chainId }) => chainId));
  const reader = new BooksReader(database, { zone, closeAfterMs, retentionMs, directory, checked });
  const reportMailer =
    report === null || smtp === null
      ? null
      : new DailyReportMailer({ database, reader, smtp, report, zone, signals, log });
  const sources = { ...stores, directory };
  return {
    books: new Books({
      database,
      redis,
      keys,
      process,
      clocks: clocks.confirmed,
      config,
      checked,
      sources,
      reportMailer,
      signals,
      log,
    }),
    reader,
  };
}

/** Checks of payments on chains. `readers` are those of the config, none where it names no RPC endpoints. */
type Verifying = {
  readers: ReadonlyMap<string, ChainReader>;
  /** Time of the oldest event that was not yet read for payments (Redis time, ms); null where all were. */
  oldestUnreadMs(): Promise<number | null>;
  /** Makes later events checked. Call it before the first poll. */
  begin(): Promise<void>;
  start(): void;
  /** Settles checks on chains that were removed from the config. Call it repeatedly, where the config is the newest. */
  store(): Promise<void>;
  close(): Promise<void>;
};

/** `redis` is shared with the deliveries, so that no poll waits behind it. */
type VerifyingAssembly = CheckedChains & {
  redis: RedisClient;
  keys: Keys;
  process: string;
  stores: Stores;
  learning: Learning;
  signals: Signals;
  log: Logger;
};

function chainsOf(config: Config, signals: Signals): CheckedChains {
  const onCall = (call: EndpointCall): void => void signals.emit('rpc.called', call);
  return { readers: createChainReaders(config.checkedChains, { onCall }), tokens: tokenRules(config) };
}

/** Constructs the checks of payments. Without a configured chain it only ends and removes checks. */
function assembleVerifying(deps: VerifyingAssembly): Verifying {
  const { redis, keys, process, stores, readers, signals, log } = deps;
  const checks = new PaymentChecks({ ...deps, failures: new FailureLog(log) });
  const feed = new CheckFeed({
    stores: {
      checks: stores.checks,
      events: new EventLog(redis, keys),
      lease: new FencedLease(redis, { lease: keys.checksLease, fence: keys.checksFence }, process),
    },
    chains: new Set(readers.keys()),
    onFed: () => checks.wake(),
    signals,
    log,
  });
  const isOn = readers.size > 0;
  return {
    readers,
    oldestUnreadMs: () => feed.oldestUnreadMs(),
    begin: async () => {
      if (isOn) await feed.begin();
    },
    start: () => {
      if (isOn) feed.start();
      checks.start();
    },
    store: () => checks.settleRemovedChains(),
    close: async () => {
      await Promise.all([isOn ? feed.close() : undefined, checks.close()]);
      await Promise.all([...readers.values()].map((reader) => reader.close()));
    },
  };
}

type Delivering = {
  relay: Relay;
  sender: Sender;
  workers: readonly DeliveryWorker[];
};

/** `opens` are the stores on the relay's own connection; `own` has the entries that commits write, `opening` is on theirs. */
type DeliveringAssembly = {
  connections: { deliveryRedis: RedisClient; blocking: RedisClient; waking: RedisClient };
  keys: Keys;
  heartbeat: Heartbeat;
  stores: DaemonStores;
  opens: Stores;
  own: OwnEntries;
  opening: Stores['deliveries'];
  directory: Directory;
  eventUrl: EventUrl | null;
  signals: Signals;
  log: Logger;
};

function assembleDelivering(
  { receivers: configured, smtp }: Config,
  { connections, keys, heartbeat, stores, opens, own, opening, ...assembly }: DeliveringAssembly,
): Delivering & { options: NotifierOptions } {
  const { directory, eventUrl, signals, log } = assembly;
  const { deliveryRedis, waking } = connections;
  const { registry, receivers, events, deliveries, dropped } = stores;
  const sender = new Sender({ heartbeat, wakes: new WakeLog(waking, keys), log });
  const relay = new Relay(
    { stores: { ...opens, registry, receivers }, directory, sender, signals, log },
    { blocking: connections.blocking, own, opening },
  );
  const batches = new BatchStore(deliveryRedis, keys);
  const deps = { events, registry, deliveries, batches, dropped, directory, sender, signals, log };
  const options = { smtp, version: VERSION, eventUrl, directory };
  const workers = configured.map(
    (receiver) => new DeliveryWorker(receiver, createNotifier(receiver, options), deps),
  );
  return { relay, sender, workers, options };
}
