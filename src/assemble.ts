import type { Logger } from 'pino';
import type { Config } from './config/config.ts';
import { extendDirectory } from './domain/chains.ts';
import { routesOf } from './domain/subscription.ts';
import { eventUrlOf } from './event-lookup.ts';
import { createNotifier } from './notifiers/notifier.ts';
import type { QuotingService } from './pollers/route.ts';
import { DeliveryQueues } from './queues/delivery-queues.ts';
import { DeliveryWorker } from './queues/delivery-worker.ts';
import { Learning } from './queues/learning.ts';
import { PollQueues } from './queues/poll-queues.ts';
import { PollWorker } from './queues/poll-worker.ts';
import { Pricing } from './queues/pricing.ts';
import { QuoteVerification } from './queues/quote-verification.ts';
import { Reconcile } from './queues/reconcile.ts';
import { Relay } from './queues/relay.ts';
import { Walks } from './queues/walks.ts';
import type { Signals } from './signals.ts';
import { BatchStore } from './store/batches.ts';
import type { RedisClient } from './store/commands.ts';
import { DeliveryStore } from './store/deliveries.ts';
import { EventLog } from './store/event-log.ts';
import { HandedQuotes } from './store/handed-quotes.ts';
import { HealthStore } from './store/health.ts';
import { Keys } from './store/keys.ts';
import { LearnedStore } from './store/learned.ts';
import { PriceStore } from './store/prices.ts';
import { ReceiverStore } from './store/receivers.ts';
import { Registry } from './store/registry.ts';
import { RelayLease } from './store/relay-lease.ts';
import { ReplayStore } from './store/replays.ts';
import { SetAside } from './store/set-aside.ts';
import type { OnForeign } from './store/stored.ts';
import { SubjectStore } from './store/subjects.ts';
import { SURFACES, type Surface } from './store/surface.ts';
import { WalletStore } from './store/wallets.ts';
import { UpstreamClient } from './upstream/client.ts';
import { OPEN_QUOTES_TIMEOUT_MS, OpenQuotesClient } from './upstream/open-quotes-client.ts';
import { QuoteSigners } from './upstream/quote-signers.ts';
import { VERSION } from './version.ts';

/** The running parts of a daemon, in the order in which data flows. */
export type DaemonParts = {
  redis: RedisClient;
  /** What speaks to the upstream. */
  clients: readonly { close(): Promise<void> }[];
  subjects: SubjectStore;
  /** Names of the config's routes. */
  routes: readonly string[];
  registry: Registry;
  handedQuotes: HandedQuotes;
  health: HealthStore;
  polls: PollQueues;
  pollWorkers: readonly PollWorker[];
  pricing: Pricing;
  learning: Learning;
  reconcile: Reconcile;
  relay: Relay;
  events: EventLog;
  receivers: ReceiverStore;
  deliveries: DeliveryStore;
  deliveryQueues: DeliveryQueues;
  deliveryWorkers: readonly DeliveryWorker[];
  budgets: Record<Surface, number>;
};

/** What the parts are made from. `blocking` is a connection of the relay's own; `resync` refills a Redis that was emptied. */
type Assembly = {
  config: Config;
  redis: RedisClient;
  blocking: RedisClient;
  signals: Signals;
  log: Logger;
  resync: () => Promise<void>;
};

/** Constructs every part. Reads as the flow: polls, commits, relay, deliveries. */
export function assemble({ config, redis, blocking, signals, log, resync }: Assembly): DaemonParts {
  const { retentionMs, polling } = config;
  const keys = new Keys(config.redis.prefix);
  const budgets = {
    status: config.upstream.requestsPerSecond,
    gateway: config.upstream.gatewayRequestsPerSecond,
    quotes: config.upstream.quotesRequestsPerSecond,
  };

  const onForeign: OnForeign = (found) => signals.emit('store.foreign', found);
  const kept = { retentionMs, onForeign };
  const subjects = new SubjectStore(redis, keys, kept);
  const registry = new Registry(redis, keys, subjects, onForeign);
  const handedQuotes = new HandedQuotes(redis, keys, onForeign);
  const health = new HealthStore(redis, keys);
  const events = new EventLog(redis, keys);
  const deliveries = new DeliveryStore(redis, keys, kept);
  const receivers = new ReceiverStore(redis, keys, onForeign);
  const replays = new ReplayStore(redis, keys, kept);
  const lease = new RelayLease(redis, keys, onForeign);

  const client = new UpstreamClient({
    ...config.upstream,
    onAnswer: (answer) => signals.emit('upstream.answered', answer),
  });
  const quoting = quotingService(config, signals);
  const polls = new PollQueues({ redis, keys, subjects, health });
  const walks = new Walks({ redis, keys, queues: polls });
  const signers = new QuoteSigners({ client });
  const quotes = new QuoteVerification({ signers, handedQuotes, subjects, signals, log });
  const deliveryQueues = new DeliveryQueues(redis, keys);
  const prices = new PriceStore(redis, keys);
  const pricing = new Pricing({ prices, budgets, log });
  const learning = new Learning({
    redis,
    learned: new LearnedStore(redis, keys, kept),
    rules: polling.watch,
    arrivals: polling.newTransfers,
    log,
  });
  const reconcile = new Reconcile({
    redis,
    registry,
    receivers,
    events,
    deliveries,
    prices,
    lease,
    polls,
    deliveryQueues,
    signals,
    log,
    retentionMs,
    digest: config.digest,
    resync,
  });
  const pollParts = {
    redis,
    keys,
    client,
    quoting,
    subjects,
    registry,
    health,
    queues: polls,
    wallets: new WalletStore(redis, keys, { retentionMs }),
    walks,
    fullSweepEveryMs: polling.fullSweepEveryMs,
    quotes,
    signals,
    log,
    confirmAfterMs: polling.confirmAfterMs,
    finished: polling.finished,
    pricing,
    learning,
  };
  const polled = SURFACES.filter((surface) => surface !== 'quotes' || quoting !== null);
  const pollWorkers = polled.map((surface) => new PollWorker(surface, pollParts));

  const relay = new Relay({
    blocking,
    keys,
    lease,
    events,
    registry,
    receivers,
    deliveries,
    replays,
    setAside: new SetAside(redis, keys),
    queues: deliveryQueues,
    signals,
    log,
  });
  const deliveryParts = {
    redis,
    keys,
    events,
    registry,
    receivers,
    deliveries,
    batches: new BatchStore(redis, keys, { retentionMs }),
    queues: deliveryQueues,
    signals,
    log,
  };
  const directory = extendDirectory(config);
  const deliveryWorkers = config.receivers.map((receiver) => {
    const notifier = createNotifier(receiver, {
      smtp: config.smtp,
      version: VERSION,
      eventUrl: eventUrlOf(config.server),
      directory,
    });
    return new DeliveryWorker(receiver, notifier, deliveryParts);
  });
  return {
    redis,
    clients: quoting === null ? [client] : [client, quoting.client],
    subjects,
    routes: routesOf(config.subscriptions).map(({ name }) => name),
    registry,
    handedQuotes,
    health,
    polls,
    pollWorkers,
    pricing,
    learning,
    reconcile,
    relay,
    events,
    receivers,
    deliveries,
    deliveryQueues,
    deliveryWorkers,
    budgets,
  };
}

/** The open quoting service, where the config names one. */
function quotingService(
  { upstream: { quotesUrl, dAppId } }: Config,
  signals: Signals,
): (QuotingService & { client: OpenQuotesClient }) | null {
  if (quotesUrl === null) return null;
  const client = new OpenQuotesClient({
    quotesUrl,
    timeoutMs: OPEN_QUOTES_TIMEOUT_MS,
    onAnswer: (answer) => signals.emit('upstream.answered', answer),
  });
  return { client, dAppId };
}
