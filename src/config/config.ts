import { createHash } from 'node:crypto';
import type { OverdueAfter } from '../domain/cadence/timed.ts';
import type { PollingLimits } from '../domain/cadence/watch-rules.ts';
import type { BatchingRules } from '../domain/events/batching.ts';
import type { TransferFilter } from '../domain/events/filter.ts';
import { canonicalJson, type JsonValue } from '../domain/json.ts';
import type { Fulfilments } from '../domain/proof/moves.ts';
import type { ImportedQuote } from '../domain/quotes/promised.ts';
import type { QuoteDomain } from '../domain/quotes/quote-signature.ts';
import type { RouteDefinition } from '../domain/quotes/route.ts';
import type { StatusSource } from '../domain/subjects/kinds.ts';
import type { SubjectId } from '../domain/subjects/subject.ts';
import type { AddedChain, AddedToken } from '../domain/transfers/chains.ts';
import { Secret } from '../secret.ts';
import type { WebhookFormat } from './fields/receiver.ts';
import { ExpiringSecret } from './fields/signing-secret.ts';
import type { ConfigProblem } from './file/errors.ts';
import type { LogConfig, ReloadConfig, RemovalConfig } from './sections/process.ts';

/** The kinds of subject whose records carry a status that can end tracking. */
export type FinishingKind = 'intent' | 'quote' | 'gasless' | 'vault' | 'deposit-address';

/** Address, budgets and timeouts of the transfer service. */
export type UpstreamConfig = {
  /** Without a trailing slash. */
  baseUrl: string;
  /** The open quoting service, without a trailing slash; needed by routes and by statuses of the open source. */
  quotesUrl: string | null;
  /** Null where the upstream is requested without one. */
  apiKey: Secret | null;
  /** Budget of the keyed v1 API over all processes. */
  requestsPerSecond: number;
  /** Budget of the deposit-vault endpoints over all processes. */
  gatewayRequestsPerSecond: number;
  /** Budget of the open quoting service over all processes. */
  quotesRequestsPerSecond: number;
  /** Budget of prices that are requested with the key, over all processes. */
  partnerQuotesRequestsPerSecond: number;
  /** Source of the status of transfers. */
  statusSource: StatusSource;
  /** Budget of statuses from the open source, over all processes. */
  openStatusRequestsPerSecond: number;
  /** Identity that requests for a price carry. */
  dAppId: string;
  timeoutMs: number;
  /** The http or https proxy for requests to both services, with its user and password; `null`: direct. */
  proxy: Secret | null;
  /** The EIP-712 domain of quotes; `isExplicit`: the config names it. */
  quoteDomain: QuoteDomain & { isExplicit: boolean };
  gateway: GatewayConfig;
};

/**
 * The deposit-vault endpoints. `prefix`: the word in their paths. `vaultPath` and `jobPath` start with `/` and contain
 * `{vaultAddress}` and `{id}`. `chainParam`: name of the query parameter that carries a vault's source chain id.
 */
export type GatewayConfig = { prefix: string; vaultPath: string; jobPath: string; chainParam: string };

/** The Redis that stores the state. */
export type RedisConfig = {
  /** `null` starts the embedded server. */
  url: Secret | null;
  prefix: string;
};

/** Limits of receivers made through the API: their types, and the addresses they may connect to. */
export type ApiReceiverLimits = {
  types: readonly Receiver['type'][];
  /** Networks (CIDR) that are permitted although they are not public. */
  allowNetworks: readonly string[];
  allowInsecure: boolean;
  proxies: readonly string[];
};

/** Address and rules of metrics, health and the API. */
export type ServerConfig = {
  host: string;
  /** 0: the system chooses a free port. */
  port: number;
  /** Tokens of the API: one to read, one to consume the log as well, several to do all. */
  tokens: { read: Secret | null; consume: Secret | null; admin: readonly Secret[] };
  /** Encrypts receivers made through the API; `null`: none can be made. */
  secretsKey: Secret | null;
  apiReceivers: ApiReceiverLimits;
  console: boolean;
  /** Address of the server for receivers, without a trailing slash; the base of links in events. */
  publicUrl: string | null;
  /** Networks (CIDR) of proxies whose `X-Forwarded-For` counts. */
  trustProxy: readonly string[];
};

/** Mail server and sender. */
export type SmtpConfig = {
  /** `smtp://` or `smtps://`, with user and password inside when the server requires them. */
  url: Secret;
  from: string;
};

/** Polling rules of our own, beside those of the upstream. */
export type PollingConfig = PollingLimits & {
  /** Time for which exact polls must confirm a stale answer before it is accepted. */
  confirmAfterMs: number;
  /** Interval of full sweeps over a wallet's pages. */
  fullSweepEveryMs: number;
  /** Statuses that end tracking, per kind; a missing kind uses the built-in ones. */
  finished: Partial<Record<FinishingKind, string[]>>;
};

/** Waits between the attempts of a delivery. */
export type Retries = {
  /** One wait per retry; an empty list means a single attempt. */
  delaysMs: number[];
  /** Share of each wait that is random, 0 to 1. */
  jitter: number;
};

/** Content of the files of a receiver's `tls`, in PEM. */
export type ReceiverTls = {
  /** CA certificates that replace the usual ones; `null`: the usual ones. */
  ca: string | null;
  identity: { cert: string; key: Secret } | null;
};

/** Members of every receiver: its events and the rules of their delivery. */
type Receiving = {
  name: string;
  /** Globs over event types, `!` negates. */
  events: string[];
  filter: TransferFilter;
  /** Deliveries per second over all processes: requests, mails or inserts; `null`: no limit. */
  rateLimit: number | null;
  timeoutMs: number;
  retries: Retries;
  concurrency: number;
  /** Span of nothing but failures after which the receiver is disabled. */
  disableAfterMs: number;
};

/**
 * For a receiver made through the API: networks (CIDR) beside public addresses to which it may connect, whatever its own
 * members allow. `null`: a receiver of the config, which has no such limit.
 */
type ApiNetworks = readonly string[] | null;

/** A URL that receives signed events. */
export type WebhookReceiver = Receiving & {
  type: 'webhook';
  format: WebhookFormat;
  /** A secret, because such URLs carry tokens. */
  url: Secret;
  /** At least one for `standard`: `whsec_` or `whsk_` and base64. An `ExpiringSecret` signs until its end. */
  secrets: Secret[];
  /** The user's own headers; none is reserved. */
  headers: Record<string, Secret>;
  /** `null`: the usual CAs, no client certificate. */
  tls: ReceiverTls | null;
  /** `subject`: events of one subject are delivered one after another, by `sequence`. */
  ordering: 'none' | 'subject';
  /** The http or https proxy for requests to the receiver, with its user and password; `null`: direct. */
  proxy: Secret | null;
  /** True for all private, loopback and reserved addresses; then `allowNetworks` is empty. */
  allowPrivateNetwork: boolean;
  /** Networks (CIDR) that are allowed although they are private, loopback or reserved. */
  allowNetworks: readonly string[];
  allowInsecure: boolean;
  apiNetworks: ApiNetworks;
};

/** A list of mail addresses. */
export type EmailReceiver = Receiving & {
  type: 'email';
  to: string[];
  /** `subject`: events of one subject are delivered one after another, by `sequence`. */
  ordering: 'none' | 'subject';
  batching: BatchingRules;
};

/** A table of the user's own Postgres. */
export type PostgresReceiver = Receiving & {
  type: 'postgres';
  /** `postgres://user:password@host:port/database`. */
  url: Secret;
  table: string;
  /** `null`: the usual CAs, no client certificate. */
  tls: ReceiverTls | null;
  /** Events of one subject are inserted one after another, by `sequence`. */
  ordering: 'subject';
  allowInsecure: boolean;
  apiNetworks: ApiNetworks;
};

/** A receiver of any type. */
export type Receiver = WebhookReceiver | EmailReceiver | PostgresReceiver;

/** A gasless job and its endpoint. */
export type ConfiguredJob = { id: string; endpoint: 'status' | 'gateway' };

/** A deposit vault on its funding chain; the address is lower-cased. */
export type Vault = { address: string; chainId: number };

/** A named set of subjects and the receivers of their events. */
export type Subscription = {
  name: string;
  /** EVM addresses are lower-cased, others as they are. */
  wallets: string[];
  intents: string[];
  sourceTxs: string[];
  destinationTxs: string[];
  /** UUIDs, lower-cased, including those of imported quotes. */
  quotes: string[];
  /** Imported quotes whose vault is watched too, by their subjects. */
  vaultQuotes: SubjectId[];
  gaslessJobs: ConfiguredJob[];
  vaults: Vault[];
  /** Routes that are priced repeatedly; one name is one route in all subscriptions. */
  routes: RouteDefinition[];
  metadata: Record<string, string>;
  receivers: string[];
  /** `emit`: changes before the subscription are reported too. */
  history: 'skip' | 'emit';
  /** `learned`: longer than 99 of 100 transfers on its route; `null`: no subject is ever overdue. */
  overdueAfterMs: OverdueAfter | null;
  /** Lead time of the warning before an unfunded quote or vault expires; null: none. */
  warnBeforeMs: number | null;
  /** Permitted recipients of its transfers; empty: not restricted. EVM addresses are lower-cased. */
  recipients: string[];
};

/** Finality of a block: by the endpoint's own report, or under so many further blocks. */
export type ChainFinality = 'finalized' | 'safe' | { confirmations: number };

/** One JSON-RPC endpoint of a chain. */
export type ChainEndpoint = {
  /** Unique among the endpoints of a chain. */
  name: string;
  url: Secret;
  headers: Record<string, Secret>;
  /** Budget of each process. */
  requestsPerSecond: number;
  timeoutMs: number;
  /** `null`: direct. */
  proxy: Secret | null;
};

/** A chain on which payments are checked. */
export type CheckedChain = {
  chainId: string;
  finality: ChainFinality;
  endpoints: ChainEndpoint[];
  /** `null`: not pinned. */
  fulfilments: Fulfilments | null;
  /** The contract of the token issuer's burn messages, in lower case; `null`: not pinned. */
  transmitter: string | null;
};

/** Storage and closing of the books. */
export type BooksConfig = {
  /** The Postgres that stores them; `null`: a file in `dataDir`. */
  url: Secret | null;
  hasTls: boolean;
  retentionMs: number;
  timeZone: string;
  /** Wait after the end of a day for late observations. */
  closeAfterMs: number;
  /** The daily report: minutes after midnight, and recipients; `null`: none. */
  report: { atMinute: number; to: string[] } | null;
};

/** A config without its file and its digests. */
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
  /** `null`: no books. */
  books: BooksConfig | null;
  chains: AddedChain[];
  tokens: AddedToken[];
  checkedChains: CheckedChain[];
  /** Tokens, beside the built-in ones, whose logs do not report the received amount. */
  uncheckedTokens: { chainId: string; address: string }[];
  receivers: Receiver[];
  /** Names of `receivers` that were made through the API, and are in no file. */
  addedReceivers?: readonly string[];
  subscriptions: Subscription[];
  importedQuotes: ImportedQuote[];
};

/** A config file, checked, with defaults filled in and variables expanded. */
export type Config = ConfigContents & {
  /** Absolute path of the file. */
  file: string;
  /** SHA-256 in hex over the config without its secrets, independent of the order of keys. */
  digest: string;
  /** Differs between two configs that differ in anything, secrets included; never shown (see fingerprintOf). */
  fingerprint: Secret;
  /** Findings that are allowed in the file, but probably mistakes. */
  warnings: ConfigProblem[];
};

/** SHA-256 in hex over the settings that processes on one Redis must share: without secrets and settings of a single process. */
export function digestOf({ dataDir, server, log, reload, ...shared }: ConfigContents): string {
  return createHash('sha256')
    .update(canonicalJson(withoutSecrets(shared) ?? null))
    .digest('hex');
}

/**
 * SHA-256 over the text of a file and the values of its variables and files, secrets included: a confirmation must not apply
 * a file in which a token was exchanged meanwhile. Processes with one file may differ in the variables of `dataDir`, `log`
 * and `server`; there only the text counts. The digest is a secret itself, because it allows guesses of weak secrets. The
 * shown value is made from it with a key (see ConfirmationStore).
 */
export function fingerprintOf(text: string, { dataDir, log, server, ...shared }: ConfigContents): Secret {
  const { host, port, publicUrl, ...access } = server;
  const values = canonicalJson(withSecrets({ ...shared, server: access }));
  return new Secret(
    createHash('sha256')
      .update(JSON.stringify([text, values]))
      .digest('hex'),
  );
}

/** A value with its secrets, for comparison only; never shown. */
export function withSecrets(value: unknown): JsonValue {
  if (value instanceof ExpiringSecret) return [value.reveal(), value.untilMs];
  if (value instanceof Secret) return [value.reveal()];
  if (Array.isArray(value)) return value.map(withSecrets);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withSecrets(inner)]));
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
}

function withoutSecrets(value: unknown): JsonValue | undefined {
  if (value instanceof Secret) return undefined;
  if (Array.isArray(value)) return value.flatMap((item) => withoutSecrets(item) ?? []);
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).flatMap(([key, inner]) => {
      const remaining = withoutSecrets(inner);
      return remaining === undefined ? [] : [[key, remaining] as const];
    });
    return Object.fromEntries(members);
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
}
