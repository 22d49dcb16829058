import type { OverdueAfter } from '../domain/cadence/timed.ts';
import type { PollingLimits } from '../domain/cadence/watch-rules.ts';
import type { BatchingRules } from '../domain/events/batching.ts';
import type { EventFilter } from '../domain/events/filter.ts';
import type { Fulfilments } from '../domain/proof/moves.ts';
import type { ImportedQuote } from '../domain/quotes/promised.ts';
import type { RouteDefinition } from '../domain/quotes/route.ts';
import type { AddedChain, AddedToken } from '../domain/transfers/chains.ts';
import type { Secret } from '../secret.ts';
import type { WebhookFormat } from './fields/receiver.ts';
import type { ConfigProblem } from './file/errors.ts';
import type { LogConfig, ReloadConfig, RemovalConfig } from './sections/process.ts';

/** The kinds of subject whose records carry a status that can end tracking. */
export type FinishingKind = 'intent' | 'quote' | 'gasless' | 'vault' | 'deposit-address';

/** The place where and how the transfer service is asked. */
export type UpstreamConfig = {
  /** Without a trailing slash. */
  baseUrl: string;
  /** The open quoting service, without a trailing slash; needed by route subjects only. */
  quotesUrl: string | null;
  apiKey: Secret;
  /** Budget of the keyed v1 API over all processes. */
  requestsPerSecond: number;
  /** Budget of the deposit-vault endpoints over all processes. */
  gatewayRequestsPerSecond: number;
  /** Budget of the open quoting service over all processes. */
  quotesRequestsPerSecond: number;
  /** Budget of prices that are requested with the key, over all processes. */
  partnerQuotesRequestsPerSecond: number;
  /** What is said of who requests a price. */
  dAppId: string;
  timeoutMs: number;
  /** The http or https proxy through which both services are asked, with its user and password; `null`: asked directly. */
  proxy: Secret | null;
  /** Starts with `/` and contains `{vaultAddress}`. */
  vaultPath: string;
  /** Name of the query parameter that carries a vault's source chain id. */
  vaultChainParam: string;
  /** Starts with `/` and contains `{id}`. */
  gaslessJobPath: string;
};

/** Which Redis keeps the state. */
export type RedisConfig = {
  /** `null` starts the embedded server. */
  url: Secret | null;
  prefix: string;
};

/** What receivers made through the API may be, and where they may connect to. */
export type ApiReceiverLimits = {
  types: readonly Receiver['type'][];
  /** The networks (CIDR) whose addresses are permitted although they are not public. */
  allowNetworks: readonly string[];
  /** True when plain http and Postgres without TLS are permitted. */
  allowInsecure: boolean;
  /** The origins of the proxies that they may name. */
  proxies: readonly string[];
};

/** The place where metrics, health and the API are served. */
export type ServerConfig = {
  host: string;
  /** 0 lets the system choose. */
  port: number;
  /** Who may use the API: one token to read, one to consume the log as well, several to do all. */
  tokens: { read: Secret | null; consume: Secret | null; admin: readonly Secret[] };
  /** Seals the receivers that are made through the API; `null`: none can be. */
  secretsKey: Secret | null;
  apiReceivers: ApiReceiverLimits;
  /** True when the console is served where the API is. */
  console: boolean;
  /** How receivers reach the server, without a trailing slash; the base of links in events. */
  publicUrl: string | null;
  /** The networks of proxies whose `X-Forwarded-For` counts, in CIDR notation. */
  trustProxy: readonly string[];
};

/** How mail leaves. */
export type SmtpConfig = {
  /** `smtp://` or `smtps://`, with user and password inside when the server requests them. */
  url: Secret;
  /** A mail address, with or without a display name. */
  from: string;
};

/** The rules of polling that are not the upstream's. */
export type PollingConfig = PollingLimits & {
  /** The time that exact polls must confirm a stale answer before it is accepted. */
  confirmAfterMs: number;
  /** The interval of full sweeps of a wallet's pages. */
  fullSweepEveryMs: number;
  /** Statuses that end tracking, per kind; a kind left out uses the built-in ones. */
  finished: Partial<Record<FinishingKind, string[]>>;
};

/** The waits between the attempts of a delivery. */
export type Retries = {
  /** One wait per retry; an empty list means a single attempt. */
  delaysMs: number[];
  /** Share of each wait that is random, 0 to 1. */
  jitter: number;
};

/** What the files of a receiver's `tls` hold, in PEM. */
export type ReceiverTls = {
  /** CA certificates that vouch in the place of the usual ones; `null`: the usual ones. */
  ca: string | null;
  /** The client certificate with its chain, and its key. */
  identity: { cert: string; key: Secret } | null;
};

/** What every receiver says of itself: which events it gets, and how they are delivered. */
type Receiving = {
  name: string;
  /** Globs over event types, `!` negates. */
  events: string[];
  filter: EventFilter;
  /** Deliveries per second over all processes: requests, mails or inserts; `null`: no limit. */
  rateLimit: number | null;
  timeoutMs: number;
  retries: Retries;
  concurrency: number;
  /** The span of nothing but failures that disables the receiver. */
  disableAfterMs: number;
};

/**
 * Of a receiver made through the API: the networks (CIDR) beside public addresses to which it may connect, whatever its
 * own members allow. `null`: a receiver of the config, which has no such limit.
 */
type ApiNetworks = readonly string[] | null;

/** A URL that is called with signed events. */
export type WebhookReceiver = Receiving & {
  type: 'webhook';
  format: WebhookFormat;
  /** A secret, because such URLs carry tokens. */
  url: Secret;
  /** At least one for `standard`; several while rotating. Each `whsec_` or `whsk_` and base64; an `ExpiringSecret` signs until its end. */
  secrets: Secret[];
  /** The user's own headers; none that is reserved. */
  headers: Record<string, Secret>;
  /** `null`: the usual CAs, no client certificate. */
  tls: ReceiverTls | null;
  /** `subject`: the events of one subject come one after another, by `sequence`. */
  ordering: 'none' | 'subject';
  /** The http or https proxy through which the receiver is called, with its user and password; `null`: called directly. */
  proxy: Secret | null;
  /** All private, loopback and reserved addresses; then `allowNetworks` is empty. */
  allowPrivateNetwork: boolean;
  /** The networks (CIDR) whose addresses are allowed although they are private, loopback or reserved. */
  allowNetworks: readonly string[];
  allowInsecure: boolean;
  apiNetworks: ApiNetworks;
};

/** A list of mail addresses. */
export type EmailReceiver = Receiving & {
  type: 'email';
  to: string[];
  /** `subject`: the events of one subject come one after another, by `sequence`. */
  ordering: 'none' | 'subject';
  batching: BatchingRules;
};

/** A table of the user's own Postgres. */
export type PostgresReceiver = Receiving & {
  type: 'postgres';
  /** `postgres://user:password@host:port/database`. */
  url: Secret;
  /** Its name, with a schema or without. */
  table: string;
  /** `null`: the usual CAs, no client certificate. */
  tls: ReceiverTls | null;
  /** The events of one subject come one after another, by `sequence`. */
  ordering: 'subject';
  /** True when it is reached without TLS. */
  allowInsecure: boolean;
  apiNetworks: ApiNetworks;
};

/** The place where notices go. */
export type Receiver = WebhookReceiver | EmailReceiver | PostgresReceiver;

/** A gasless job and the endpoint that knows it. */
export type GaslessJob = { id: string; endpoint: 'status' | 'gateway' };

/** A deposit vault on the chain where it is funded; the address is lower-cased. */
export type Vault = { address: string; chainId: number };

/** A named set of subjects and the receivers of their events. */
export type Subscription = {
  name: string;
  /** EVM addresses are lower-cased, others as they are. */
  wallets: string[];
  /** `0x` and 64 hex digits, lower-cased. */
  intents: string[];
  /** Hashes of the transactions that fund transfers, and of those that deliver them. */
  sourceTxs: string[];
  destinationTxs: string[];
  /** UUIDs, lower-cased, also of those that were imported. */
  quotes: string[];
  gaslessJobs: GaslessJob[];
  vaults: Vault[];
  /** Routes that are priced again and again; one name is one route in all subscriptions. */
  routes: RouteDefinition[];
  metadata: Record<string, string>;
  receivers: string[];
  /** True when what happened before the subscription is reported too. */
  history: 'skip' | 'emit';
  /** `learned`: what takes longer than 99 of 100 on its route; `null`: no subject is ever overdue. */
  overdueAfterMs: OverdueAfter | null;
  /** How long before an unfunded quote or vault expires that is reported; null: never. */
  warnBeforeMs: number | null;
  /** Who may rightly receive what its transfers deliver; empty: it is not said. EVM addresses are lower-cased. */
  recipients: string[];
};

/** From when on a block counts: by the endpoint's own word, or once so many blocks are on top of it. */
export type ChainFinality = 'finalized' | 'safe' | { confirmations: number };

/** One JSON-RPC endpoint of a chain. */
export type ChainEndpoint = {
  /** Once among the endpoints of a chain. */
  name: string;
  url: Secret;
  headers: Record<string, Secret>;
  /** Budget of each process. */
  requestsPerSecond: number;
  timeoutMs: number;
  /** `null`: asked directly. */
  proxy: Secret | null;
};

/** A chain on which payments are checked. */
export type CheckedChain = {
  chainId: string;
  finality: ChainFinality;
  /** At least one. */
  endpoints: ChainEndpoint[];
  /** `null`: not pinned. */
  fulfilments: Fulfilments | null;
};

/** How the books are stored. */
export type BooksConfig = {
  /** The Postgres that keeps them; `null`: a file in `dataDir`. */
  url: Secret | null;
  hasTls: boolean;
  retentionMs: number;
  /** The zone in whose days they are closed. */
  timeZone: string;
  /** The time that after its end a day waits for what is seen late. */
  closeAfterMs: number;
  /** The mail of every morning: when, in minutes after midnight, and to whom. */
  report: { atMinute: number; to: string[] } | null;
};

/** A config before its place and its digests are added. */
export type ConfigContents = {
  upstream: UpstreamConfig;
  redis: RedisConfig;
  /** Absolute path. */
  dataDir: string;
  retentionMs: number;
  removal: RemovalConfig;
  server: ServerConfig;
  log: LogConfig;
  reload: ReloadConfig;
  smtp: SmtpConfig | null;
  polling: PollingConfig;
  /** `null`: none are stored. */
  books: BooksConfig | null;
  /** Names and explorers of chains beside the built-in ones. */
  chains: AddedChain[];
  /** Symbols and decimals of tokens beside the built-in ones. */
  tokens: AddedToken[];
  /** The chains on which payments are checked. */
  checkedChains: CheckedChain[];
  /** The tokens whose logs do not say what is received, beside the built-in ones. */
  uncheckedTokens: { chainId: string; address: string }[];
  receivers: Receiver[];
  /** Those of `receivers` that were made through the API, and are in no file. */
  addedReceivers?: readonly string[];
  subscriptions: Subscription[];
  /** The imported quotes, each once. */
  importedQuotes: ImportedQuote[];
};

/** A config file, checked, with defaults filled in and variables expanded. */
export type Config = ConfigContents & {
  /** Absolute path of the file. */
  file: string;
  /** SHA-256 in hex over the config without its secrets, the same whatever the order of keys. */
  digest: string;
  /** Tells two configs apart that differ in anything, secrets included; never shown (see config/digest.ts). */
  fingerprint: Secret;
  /** What is allowed in the file, but probably a mistake; like the problems of a file that is refused. */
  warnings: ConfigProblem[];
};
