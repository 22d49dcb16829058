import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { arrivalRule, watchRules } from '../domain/cadence/watch-rules.ts';
import type { RouteDefinition } from '../domain/quotes/route.ts';
import { ENDPOINT_GROUPS, type EndpointGroup } from '../domain/subjects/kinds.ts';
import { routesOf } from '../domain/subjects/subscription.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import { type PartnerPricing, pollPartnerRoute } from '../pollers/partner-route.ts';
import { type Pricing, pollOpenStatus } from '../pollers/poll-subject.ts';
import { pollRoute, type QuotingService } from '../pollers/route.ts';
import { ChainDiscovery } from '../queues/chain-discovery.ts';
import { Dispatcher } from '../queues/polls/dispatcher.ts';
import { Learning } from '../queues/polls/learning.ts';
import { PollQueues } from '../queues/polls/poll-queues.ts';
import { QuoteVerification } from '../queues/polls/quote-verification.ts';
import { adaptersOf, PollWorker } from '../queues/polls/run-poll.ts';
import { SeenPages } from '../queues/polls/seen-pages.ts';
import { Sweeps } from '../queues/polls/sweeps.ts';
import type { Signals } from '../signals.ts';
import type { RedisClient } from '../store/commands.ts';
import { DirectoryStore, reportUnproven, storedDomain } from '../store/directory.ts';
import type { Keys } from '../store/keys.ts';
import { LearnedStore } from '../store/learned.ts';
import type { PlanStore } from '../store/plan.ts';
import type { OnForeign } from '../store/stored.ts';
import { UpstreamClient } from '../upstream/client/client.ts';
import { OPEN_QUOTES_TIMEOUT_MS, OpenQuotesClient } from '../upstream/client/open-quotes-client.ts';
import { QuoteSigners, type SharedSigners } from '../upstream/client/quote-signers.ts';
import type { Clocks } from './clocks.ts';
import type { DaemonStores } from './stores.ts';

/** All that polls the upstream. `routes`: priced routes of the config; `budgets`: requests per second. */
export type Polling = {
  pollers: readonly Poller[];
  queues: PollQueues;
  discovery: ChainDiscovery;
  learning: Learning;
  routes: readonly RouteDefinition[];
  budgets: Record<EndpointGroup, number>;
};

/** Polls one endpoint group: the dispatcher claims polls, the worker makes at most `capacity` of their requests at once. */
export type Poller = {
  endpointGroup: EndpointGroup;
  dispatcher: Dispatcher;
  worker: PollWorker;
  capacity: number;
};

/** `onForeign` is called with Redis entries of an unknown shape. */
type PollingAssembly = {
  config: Config;
  redis: RedisClient;
  keys: Keys;
  process: string;
  stores: DaemonStores;
  signals: Signals;
  log: Logger;
  clocks: Clocks;
  onForeign: OnForeign;
};

/** An HTTP client of the upstream. */
export type Client = { close(): Promise<void> };

/** Constructs all that polls the upstream, and starts nothing. */
export function assemblePolling({
  config,
  redis,
  keys,
  process,
  stores,
  signals,
  log,
  clocks,
  onForeign,
}: PollingAssembly): {
  clients: readonly Client[];
  polling: Polling;
} {
  const { retentionMs, upstream } = config;
  const { plan } = stores;
  const client = new UpstreamClient({
    ...upstream,
    onAnswer: (answer) => {
      clocks.dates.note(answer.dateMs);
      signals.emit('upstream.answered', answer);
    },
  });
  const queues = new PollQueues({ redis, keys });
  const directories = new DirectoryStore(redis, keys, { onForeign, process });
  const discovery = new ChainDiscovery({
    redis,
    client,
    store: directories,
    plan,
    configured: config,
    signals,
    log,
  });
  const quoting = quotingService(config, { directory: discovery.directory, signals });
  const openStatus = openStatusClient(config, signals);
  const routes = routesOf(config.subscriptions);
  const verifying = {
    domain: storedDomain({ redis, keys }, upstream),
    onUnproven: (reason: string) => reportUnproven({ redis, keys }, upstream, reason),
    shared: () => discovery.signers,
  };
  const partner = routes.some(({ service }) => service === 'v1')
    ? partnerPricing(config, { client, discovery, plan, verifying })
    : null;
  const learning = new Learning({
    learned: new LearnedStore(redis, keys, { onForeign }),
    rules: watchRules(config.polling),
    arrivals: arrivalRule(config.polling),
    log,
  });
  const sweeps = new Sweeps({ redis, keys, plan });
  const pollStores = { ...stores, sweeps };
  const { confirmAfterMs, finished, fullSweepEveryMs } = config.polling;
  const { requestsPerSecond, statusSource } = upstream;
  const rules = {
    confirmAfterMs,
    finished,
    fullSweepEveryMs,
    requestsPerSecond,
    retentionMs,
    statusSource,
  };
  const deps = {
    redis,
    keys,
    stores: pollStores,
    client,
    pages: new SeenPages(),
    rules,
    learning,
    clocks: clocks.confirmed,
    signals,
    log,
  };
  const signers = new QuoteSigners({ client: discovery, ...verifying });
  const adapters = adaptersOf(deps, {
    quotes: new QuoteVerification({ signers, stores: pollStores, learning, signals, log }),
    pricing: pricingOf({ quoting, partner }),
    openStatus:
      openStatus === null ? null : ({ subject }, signal) => pollOpenStatus(openStatus, subject, signal),
  });

  const budgets = {
    status: upstream.requestsPerSecond,
    gateway: upstream.gatewayRequestsPerSecond,
    quotes: upstream.quotesRequestsPerSecond,
    'partner-quotes': upstream.partnerQuotesRequestsPerSecond,
    'open-status': upstream.openStatusRequestsPerSecond,
  };
  const unpolled: Partial<Record<EndpointGroup, boolean>> = {
    quotes: quoting === null,
    'partner-quotes': partner === null,
    'open-status': openStatus === null,
  };
  const polled = ENDPOINT_GROUPS.filter((endpointGroup) => unpolled[endpointGroup] !== true);
  const pollers = polled.map((endpointGroup) => {
    const timeoutMs = endpointGroup === 'quotes' ? OPEN_QUOTES_TIMEOUT_MS : upstream.timeoutMs;
    const capacity = capacityOf(budgets[endpointGroup], timeoutMs);
    const dispatcher = new Dispatcher({ plan, queues, signals, log }, { endpointGroup, process, capacity });
    const worker = new PollWorker(endpointGroup, deps, { process, adapters, dispatcher });
    return { endpointGroup, dispatcher, worker, capacity };
  });
  return {
    clients: [client, quoting?.client, openStatus].filter((one) => one != null),
    polling: { pollers, queues, discovery, learning, routes, budgets },
  };
}

/** The client for statuses, apart from that for prices: its connections wait for no price. */
function openStatusClient(
  { upstream: { statusSource, quotesUrl, timeoutMs, proxy } }: Config,
  signals: Signals,
): OpenQuotesClient | null {
  if (statusSource === 'v1' || quotesUrl === null) return null;
  return new OpenQuotesClient({
    quotesUrl,
    timeoutMs,
    proxy,
    onAnswer: (answer) => signals.emit('upstream.answered', answer),
  });
}

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

/** Prices routes by `POST /v1/quotes`, with the key. Reads of the quote signers use the same budget. */
function partnerPricing(
  { upstream: { dAppId } }: Config,
  {
    client,
    discovery,
    plan,
    verifying,
  }: {
    client: UpstreamClient;
    discovery: ChainDiscovery;
    plan: PlanStore;
    verifying: SharedSigners;
  },
): PartnerPricing {
  const slot = async (signal?: AbortSignal): Promise<void> => {
    // Null while the endpoint group is down: this request belongs to its probe, which needs no slot.
    const inMs = await plan.spareSlot('partner-quotes');
    if (inMs !== null) await wait(inMs, undefined, signal === undefined ? {} : { signal });
  };
  const chains = async () => {
    await slot();
    return discovery.chains();
  };
  const signers = new QuoteSigners({ client: { chains }, ...verifying });
  return { client, signers, slot, dAppId, directory: discovery.directory };
}

function pricingOf({
  quoting,
  partner,
}: {
  quoting: QuotingService | null;
  partner: PartnerPricing | null;
}): Pricing {
  return {
    ...(quoting === null ? {} : { open: (request, signal) => pollRoute(quoting, request, signal) }),
    ...(partner === null ? {} : { v1: (request, signal) => pollPartnerRoute(partner, request, signal) }),
  };
}

const LEAST_CAPACITY = 20;
const MOST_CAPACITY = 2_000;

/** Number of polls under way at once, within bounds: as many as the budget starts during the longest request. */
function capacityOf(requestsPerSecond: number, timeoutMs: number): number {
  const needed = Math.ceil((requestsPerSecond * timeoutMs) / 1_000);
  return Math.min(MOST_CAPACITY, Math.max(LEAST_CAPACITY, needed));
}
