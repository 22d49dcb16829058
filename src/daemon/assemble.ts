import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Books } from '../books/books.ts';
import type { Config } from '../config/config.ts';
import { arrivalRule, watchRules } from '../domain/cadence/watch-rules.ts';
import type { RouteDefinition } from '../domain/quotes/route.ts';
import { SURFACES, type Surface } from '../domain/subjects/kinds.ts';
import { routesOf } from '../domain/subjects/subscription.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import { createNotifier } from '../notifiers/create-notifier.ts';
import type { AddedReceiverParts } from '../operations/added-receivers.ts';
import type { ConfigControl } from '../operations/config-state.ts';
import type { LogTail } from '../operations/log-tail.ts';
import type { OperationParts } from '../operations/parts.ts';
import { type PartnerPricing, pollPartnerRoute } from '../pollers/partner-route.ts';
import type { Pricing } from '../pollers/poll-subject.ts';
import { pollRoute, type QuotingService } from '../pollers/route.ts';
import { DeliveryWorker } from '../queues/deliveries/delivery-worker.ts';
import { Reconcile, type Upkeep } from '../queues/deliveries/reconcile.ts';
import { Relay } from '../queues/deliveries/relay.ts';
import { Sender } from '../queues/deliveries/sender.ts';
import { Discovery } from '../queues/discovery.ts';
import { adaptersOf } from '../queues/polls/adapters.ts';
import { Dispatcher } from '../queues/polls/dispatcher.ts';
import { Learning } from '../queues/polls/learning.ts';
import { PollQueues } from '../queues/polls/poll-queues.ts';
import { PollWorker } from '../queues/polls/poll-worker.ts';
import { QuoteVerification } from '../queues/polls/quote-verification.ts';
import { Sweeps } from '../queues/polls/sweeps.ts';
import type { ApiParts } from '../server/api/route.ts';
import type { Signals } from '../signals.ts';
import { AnswerStore } from '../store/answers.ts';
import { BatchStore } from '../store/batches.ts';
import { CheckStore } from '../store/checks.ts';
import type { RedisClient } from '../store/commands.ts';
import { ConsumerStore } from '../store/consumers.ts';
import { DeliveryStore } from '../store/deliveries.ts';
import { DirectoryStore } from '../store/directory.ts';
import { EventLog } from '../store/event-log.ts';
import { HandedQuotes } from '../store/handed-quotes.ts';
import { HealthStore } from '../store/health.ts';
import { Keys } from '../store/keys.ts';
import { LearnedStore } from '../store/learned.ts';
import { PlanStore } from '../store/plan.ts';
import { ReceiverStore } from '../store/receivers.ts';
import { Registry } from '../store/registry.ts';
import { RelayLease } from '../store/relay-lease.ts';
import { ReplayStore } from '../store/replays.ts';
import { SenderStore, WakeLog } from '../store/senders.ts';
import { SessionStore } from '../store/sessions.ts';
import { SetAside } from '../store/set-aside.ts';
import type { OnForeign } from '../store/stored.ts';
import { SubjectStore } from '../store/subjects.ts';
import { TrackedStore } from '../store/tracked.ts';
import { WalletStore } from '../store/wallets.ts';
import { UpstreamClient } from '../upstream/client/client.ts';
import { OPEN_QUOTES_TIMEOUT_MS, OpenQuotesClient } from '../upstream/client/open-quotes-client.ts';
import { QuoteSigners } from '../upstream/client/quote-signers.ts';
import { VERSION } from '../version.ts';
import { eventUrlOf } from './api.ts';
import { assembleBooks } from './assemble-books.ts';
import { assembleVerifying, chainsOf, type Verifying } from './assemble-checks.ts';

/** What the running parts read and write, as far as others ask for it. */
export type DaemonStores = {
  subjects: SubjectStore;
  registry: Registry;
  handedQuotes: HandedQuotes;
  tracked: TrackedStore;
  health: HealthStore;
  plan: PlanStore;
  events: EventLog;
  receivers: ReceiverStore;
  deliveries: DeliveryStore;
  checks: CheckStore;
};

/** What polls. `routes` are the config's; `budgets` are in requests per second. */
export type Polling = {
  pollers: readonly Poller[];
  queues: PollQueues;
  discovery: Discovery;
  learning: Learning;
  routes: readonly RouteDefinition[];
  budgets: Record<Surface, number>;
};

/** What polls one surface: the dispatcher claims, the worker asks; at most `capacity` polls are under way at once. */
export type Poller = { surface: Surface; dispatcher: Dispatcher; worker: PollWorker; capacity: number };

/** What delivers. */
export type Delivering = {
  relay: Relay;
  sender: Sender;
  workers: readonly DeliveryWorker[];
};

/** The running parts of a daemon. `clients` is what speaks to the upstream. */
export type DaemonParts = {
  redis: RedisClient;
  keys: Keys;
  clients: readonly { close(): Promise<void> }[];
  stores: DaemonStores;
  polling: Polling;
  delivering: Delivering;
  verifying: Verifying;
  reconcile: Reconcile;
  /** Null where none are kept. */
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
  control: ConfigControl;
  signals: Signals;
  log: Logger;
  upkeep: Upkeep;
};

/** Constructs every part. Reads as the flow: polls, commits, relay, deliveries. */
export function assemble(assembly: Assembly): DaemonParts {
  const { config, connections, tail, adding, control, signals, log, upkeep } = assembly;
  const { redis, opening, delivering, waking } = connections;
  const { retentionMs } = config;
  const keys = new Keys(config.redis.prefix);
  const onForeign: OnForeign = (found) => signals.emit('store.foreign', found);
  const kept = { retentionMs, onForeign };
  const subjects = new SubjectStore(redis, keys, kept);
  const stores: DaemonStores = {
    subjects,
    registry: new Registry(redis, keys, subjects, onForeign),
    handedQuotes: new HandedQuotes(redis, keys, onForeign),
    tracked: new TrackedStore(redis, keys, kept),
    health: new HealthStore(redis, keys),
    plan: new PlanStore(redis, keys),
    events: new EventLog(opening, keys),
    receivers: new ReceiverStore(delivering, keys, onForeign),
    deliveries: new DeliveryStore(delivering, keys, kept),
    checks: new CheckStore(delivering, keys, kept),
  };
  const { registry, receivers, events, deliveries, tracked, handedQuotes } = stores;
  const { clients, polling } = assemblePolling({ config, redis, keys, stores, signals, log, onForeign });
  const { directory } = polling.discovery;

  const sender = new Sender({
    id: randomUUID(),
    senders: new SenderStore(delivering, keys),
    wakes: new WakeLog(waking, keys),
    registry,
    deliveries,
    log,
  });
  const lease = new RelayLease(opening, keys, onForeign);
  const reconcile = new Reconcile({
    redis,
    stores: { subjects, registry, receivers, events, deliveries, lease, tracked, handedQuotes },
    directory,
    process: sender.id,
    retentionMs,
    upkeep,
    signals,
    log,
  });
  const relayStores = {
    lease,
    events,
    registry,
    receivers,
    deliveries: new DeliveryStore(opening, keys, kept),
    replays: new ReplayStore(opening, keys, kept),
    setAside: new SetAside(opening, keys),
  };
  const relay = new Relay({ stores: relayStores, directory, sender, signals, log }, connections);
  const batches = new BatchStore(delivering, keys, { retentionMs });
  const deliveryParts = { events, registry, deliveries, batches, directory, sender, signals, log };
  const notifierOptions = {
    smtp: config.smtp,
    version: VERSION,
    eventUrl: eventUrlOf(config.server),
    directory,
  };
  const workers = config.receivers.map((receiver) => {
    const notifier = createNotifier(receiver, notifierOptions);
    return new DeliveryWorker(receiver, notifier, deliveryParts);
  });
  const verifying = assembleVerifying({
    redis: delivering,
    keys,
    stores: { ...stores, subjects: new SubjectStore(delivering, keys, kept) },
    ...chainsOf(config, signals),
    learning: polling.learning,
    signals,
    log,
  });
  const operations = assembleOperations(config, { redis: connections.asking, keys, directory, onForeign });
  const setup = { receivers: config.receivers, options: notifierOptions };
  const book = assembleBooks(config, { redis: opening, keys, stores, directory, signals, log });
  const api = { operations, tail, adding, control, setup: () => setup, books: book?.reader ?? null };
  const books = book?.books ?? null;
  return {
    redis,
    keys,
    clients,
    stores,
    polling,
    delivering: { relay, sender, workers },
    verifying,
    reconcile,
    books,
    api,
  };
}

/** Constructs what the API sees and acts with, on a connection of its own. */
export function assembleOperations(
  { retentionMs, polling }: Pick<Config, 'retentionMs' | 'polling'>,
  { redis, keys, directory, onForeign }: OperationAssembly,
): OperationParts {
  const kept = { retentionMs, onForeign };
  const subjects = new SubjectStore(redis, keys, kept);
  const learned = new LearnedStore(redis, keys, kept);
  const model = { rules: watchRules(polling), arrivals: arrivalRule(polling) };
  return {
    redis,
    directory,
    knowledge: () => learned.knowledge(model),
    stores: {
      lease: new RelayLease(redis, keys, onForeign),
      events: new EventLog(redis, keys),
      subjects,
      plan: new PlanStore(redis, keys),
      registry: new Registry(redis, keys, subjects, onForeign),
      receivers: new ReceiverStore(redis, keys, onForeign),
      deliveries: new DeliveryStore(redis, keys, kept),
      replays: new ReplayStore(redis, keys, kept),
      learned,
      setAside: new SetAside(redis, keys),
      answers: new AnswerStore(redis, keys),
      consumers: new ConsumerStore(redis, keys),
      sessions: new SessionStore(redis, keys),
      tracked: new TrackedStore(redis, keys, kept),
      checks: new CheckStore(redis, keys, kept),
    },
  };
}

/** What operations are made from. */
type OperationAssembly = { redis: RedisClient; keys: Keys; directory: Directory; onForeign: OnForeign };

/** What the parts that poll are made from. */
type PollingAssembly = {
  config: Config;
  redis: RedisClient;
  keys: Keys;
  stores: DaemonStores;
  signals: Signals;
  log: Logger;
  onForeign: OnForeign;
};

/** Constructs what polls. */
function assemblePolling({
  config,
  redis,
  keys,
  stores,
  signals,
  log,
  onForeign,
}: PollingAssembly): Pick<DaemonParts, 'clients' | 'polling'> {
  const { retentionMs, upstream } = config;
  const { subjects, registry, handedQuotes, health, plan } = stores;
  const client = new UpstreamClient({
    ...upstream,
    onAnswer: (answer) => signals.emit('upstream.answered', answer),
  });
  const queues = new PollQueues({ redis, keys });
  const directories = new DirectoryStore(redis, keys, onForeign);
  const discovery = new Discovery({ redis, client, store: directories, plan, named: config, log });
  const quoting = quotingService(config, { directory: discovery.directory, signals });
  const routes = routesOf(config.subscriptions);
  const partner = routes.some(({ service }) => service === 'v1')
    ? partnerPricing(config, { client, discovery, plan })
    : null;
  const learning = new Learning({
    learned: new LearnedStore(redis, keys, { retentionMs, onForeign }),
    rules: watchRules(config.polling),
    arrivals: arrivalRule(config.polling),
    log,
  });
  const wallets = new WalletStore(redis, keys, { retentionMs });
  const sweeps = new Sweeps({ redis, keys, plan });
  const pollStores = { plan, subjects, registry, handedQuotes, wallets, sweeps, health };
  const { confirmAfterMs, finished, fullSweepEveryMs } = config.polling;
  const rules = { confirmAfterMs, finished, fullSweepEveryMs, retentionMs };
  const parts = { redis, keys, stores: pollStores, client, rules, learning, signals, log };
  const signers = new QuoteSigners({ client: discovery, shared: () => discovery.signers });
  const adapters = adaptersOf(parts, {
    quotes: new QuoteVerification({ signers, stores: pollStores, learning, signals, log }),
    pricing: pricingOf({ quoting, partner }),
  });

  const budgets = {
    status: upstream.requestsPerSecond,
    gateway: upstream.gatewayRequestsPerSecond,
    quotes: upstream.quotesRequestsPerSecond,
    'partner-quotes': upstream.partnerQuotesRequestsPerSecond,
  };
  const unasked: Partial<Record<Surface, boolean>> = {
    quotes: quoting === null,
    'partner-quotes': partner === null,
  };
  const process = randomUUID();
  const polled = SURFACES.filter((surface) => unasked[surface] !== true);
  const pollers = polled.map((surface) => {
    const timeoutMs = surface === 'quotes' ? OPEN_QUOTES_TIMEOUT_MS : upstream.timeoutMs;
    const capacity = capacityOf(budgets[surface], timeoutMs);
    const dispatcher = new Dispatcher({ plan, queues, signals, log }, { surface, process, capacity });
    const worker = new PollWorker(surface, parts, { process, adapters, dispatcher });
    return { surface, dispatcher, worker, capacity };
  });
  return {
    clients: quoting === null ? [client] : [client, quoting.client],
    polling: { pollers, queues, discovery, learning, routes, budgets },
  };
}

/** The open quoting service, where the config names one. */
function quotingService(
  { upstream: { quotesUrl, dAppId, proxy } }: Config,
  { directory, signals }: { directory: Directory; signals: Signals },
): (QuotingService & { client: OpenQuotesClient }) | null {
  if (quotesUrl === null) return null;
  const client = new OpenQuotesClient({
    quotesUrl,
    timeoutMs: OPEN_QUOTES_TIMEOUT_MS,
    proxy,
    onAnswer: (answer) => signals.emit('upstream.answered', answer),
  });
  return { client, dAppId, directory };
}

/** Prices with the key. Of their budget are also the chains that are read for the signers, where nobody else read them. */
function partnerPricing(
  { upstream: { dAppId } }: Config,
  { client, discovery, plan }: { client: UpstreamClient; discovery: Discovery; plan: PlanStore },
): PartnerPricing {
  const slot = async (signal?: AbortSignal): Promise<void> => {
    // Null: the surface is not asked as usual, so this poll is a single one that finds out whether it answers.
    const inMs = await plan.spareSlot('partner-quotes');
    if (inMs !== null) await wait(inMs, undefined, signal === undefined ? {} : { signal });
  };
  const chains = async () => {
    await slot();
    return discovery.chains();
  };
  const signers = new QuoteSigners({ client: { chains }, shared: () => discovery.signers });
  return { client, signers, slot, dAppId, directory: discovery.directory };
}

/** Who is asked for prices. */
function pricingOf({
  quoting,
  partner,
}: {
  quoting: QuotingService | null;
  partner: PartnerPricing | null;
}): Pricing {
  return {
    ...(quoting === null ? {} : { open: (asked, signal) => pollRoute(quoting, asked, signal) }),
    ...(partner === null ? {} : { v1: (asked, signal) => pollPartnerRoute(partner, asked, signal) }),
  };
}

const LEAST_CAPACITY = 20;
const MOST_CAPACITY = 2_000;

/** How many polls may be under way at once: as many as the budget starts while the slowest takes its time. */
function capacityOf(requestsPerSecond: number, timeoutMs: number): number {
  const needed = Math.ceil((requestsPerSecond * timeoutMs) / 1_000);
  return Math.min(MOST_CAPACITY, Math.max(LEAST_CAPACITY, needed));
}
