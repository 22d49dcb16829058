import { z } from 'zod';
import { MOST_PAGES, sweepEveryMs } from '../domain/cadence/wallet.ts';
import type { JsonValue } from '../domain/json.ts';
import type { ImportedQuote } from '../domain/quotes/promised.ts';
import type { ConfigContents, ReceiverTls } from './config.ts';
import { durationField, mapping } from './fields/fields.ts';
import { type ConfigPath, type Fault, findRepeated, isEmpty, items, member, valueAt } from './file/errors.ts';
import { booksSchema, buildBooks, checkBooks } from './sections/books.ts';
import { buildNames, chainsSchema, checkNames, tokensSchema } from './sections/directory.ts';
import { buildPolling, checkPolling, pollingSchema } from './sections/polling.ts';
import { buildLog, buildRemoval, logSchema, reloadSchema, removalSchema } from './sections/process.ts';
import { checkQuoteFiles } from './sections/quote-files.ts';
import { buildReceiver, buildSmtp, checkReceiver, receiverSchema, smtpSchema } from './sections/receiver.ts';
import { buildRedis, redisSchema } from './sections/redis.ts';
import { checkRoutes } from './sections/route.ts';
import { buildServer, checkServer, hasApi, serverSchema } from './sections/server.ts';
import { buildSubscription, checkSubscription, subscriptionSchema } from './sections/subscription.ts';
import { buildUpstream, checkStatusSource, checkUpstream, upstreamSchema } from './sections/upstream.ts';

/** Schema of the whole config file. Messages of its issues are expected values. */
export const configSchema = mapping({
  upstream: upstreamSchema,
  redis: redisSchema.prefault({}),
  dataDir: z
    .string({ error: 'a path of a folder' })
    .regex(/^[^\0]+$/, { error: 'a path of a folder' })
    .prefault('./data')
    .meta({
      description:
        'Where the embedded Redis stores its data, relative to the config file. A file in it also has what the process has seen of Redis, by which a start finds that Redis went back: give it a place that outlasts restarts beside a `redis.url` too.',
      label: 'path',
    }),
  retention: durationField({ min: '4d', max: '3650d' }).prefault('30d').meta({
    description:
      'How long events, what became of their deliveries, and what has ended are stored; the states of what has ended stay known in a compact form until a sweep of their whole wallet has not shown them for as long again. At least 4 days, and a day more than twice `polling.fullSweepEvery`. No shorter than the `disableAfter` and the retries of any receiver.',
    label: 'duration',
  }),
  removal: removalSchema.prefault({}),
  server: serverSchema.prefault({}),
  log: logSchema.prefault({}),
  reload: reloadSchema.prefault({}),
  smtp: smtpSchema.optional(),
  polling: pollingSchema.prefault({}),
  books: booksSchema.optional(),
  chains: chainsSchema,
  tokens: tokensSchema,
  receivers: z.array(receiverSchema, { error: 'a list of receivers' }).prefault([]).meta({
    description:
      'Where notices go. At least one where the API is off; where it is on, events can be pulled from it, and receivers made through it.',
    label: 'list of mappings',
  }),
  subscriptions: z.array(subscriptionSchema, { error: 'a list of subscriptions' }).prefault([]).meta({
    description:
      'What is watched and who is notified. At least one where the API is off; where it is on, all can be tracked through it.',
    label: 'list of mappings',
  }),
});

/** Parsed values with defaults, under the names of the file. */
export type ParsedConfig = z.output<typeof configSchema>;

/** Builds the config except for its place. `quotes` are by file, `tls` is by the place of the receiver. */
export function buildConfig(
  parsed: ParsedConfig,
  { quotes, tls }: { quotes: ReadonlyMap<string, ImportedQuote>; tls: readonly (ReceiverTls | null)[] },
): ConfigContents {
  return {
    upstream: buildUpstream(parsed.upstream),
    redis: buildRedis(parsed.redis),
    dataDir: parsed.dataDir,
    retentionMs: parsed.retention,
    removal: buildRemoval(parsed.removal),
    server: buildServer(parsed.server),
    log: buildLog(parsed.log),
    reload: parsed.reload,
    smtp: buildSmtp(parsed.smtp),
    polling: buildPolling(parsed.polling),
    books: buildBooks(parsed.books),
    ...buildNames(parsed),
    receivers: parsed.receivers.map((item, index) => buildReceiver(item, { tls: tls[index] ?? null })),
    subscriptions: parsed.subscriptions.map((item) => buildSubscription(item, quotes)),
    importedQuotes: [...new Map([...quotes.values()].map((quote) => [quote.subject, quote])).values()],
  };
}

/** Checks fields against each other, in the values as written, also beside invalid ones. `isShown`: a text may be shown. */
export function checkConfig(
  tree: JsonValue,
  {
    isShown,
    quotes,
  }: { isShown(path: ConfigPath, text: string): boolean; quotes: ReadonlyMap<string, ImportedQuote> },
): Fault[] {
  const receivers = items(member(tree, 'receivers'));
  const subscriptions = items(member(tree, 'subscriptions'));
  const hasSmtp = member(tree, 'smtp') !== undefined;
  const receiverNames = receivers.flatMap((item) => nameOf(item) ?? []);
  const shownNames = receivers.flatMap((item, index) => {
    const name = nameOf(item);
    return name !== null && isShown(['receivers', index, 'name'], name) ? [name] : [];
  });
  const mayPull = hasApi(member(tree, 'server'));
  const context = { receivers: receiverNames, shown: [...new Set(shownNames)], quotes, mayPull };
  return [
    ...under(['upstream'], checkUpstream(member(tree, 'upstream'))),
    ...under(['server'], checkServer(member(tree, 'server'))),
    ...checkWatched(tree),
    ...checkReported(tree),
    ...under(['polling'], checkPolling(member(tree, 'polling'))),
    ...checkBooks(tree),
    ...receivers.flatMap((item, index) => under(['receivers', index], checkReceiver(item, { hasSmtp }))),
    ...repeatedNames(receivers, 'receivers'),
    ...checkNames(tree),
    ...subscriptions.flatMap((item, index) =>
      under(['subscriptions', index], checkSubscription(item, context)),
    ),
    ...repeatedNames(subscriptions, 'subscriptions'),
    ...checkQuoteFiles(tree, quotes),
    ...checkRoutes(tree),
    ...checkStatusSource(tree),
  ];
}

/** A daemon without subjects in its config must be one that accepts them. */
function checkWatched(tree: JsonValue): Fault[] {
  if (!isEmpty(member(tree, 'subscriptions')) || hasApi(member(tree, 'server'))) return [];
  const expected = 'at least one subscription, or an API to track by (a token in server.tokens)';
  return [{ path: ['subscriptions'], expected }];
}

/** A daemon without receivers must have an API. */
function checkReported(tree: JsonValue): Fault[] {
  if (!isEmpty(member(tree, 'receivers')) || hasApi(member(tree, 'server'))) return [];
  const expected = 'at least one receiver, or an API to pull events from (a token in server.tokens)';
  return [{ path: ['receivers'], expected }];
}

function repeatedNames(list: JsonValue[], key: string): Fault[] {
  const expected = `each name once among the ${key}`;
  const repeated = findRepeated(list, { at: [key], expected, keyOf: nameOf });
  return repeated.map((finding) => ({ ...finding, path: [...finding.path, 'name'] }));
}

function nameOf(item: JsonValue): string | null {
  const name = member(item, 'name');
  return typeof name === 'string' ? name : null;
}

function under(at: ConfigPath, findings: Fault[]): Fault[] {
  return findings.map((finding) => ({ ...finding, path: [...at, ...finding.path] }));
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Longest time without a poll: a day without the daemon, from the end of one sweep to that of the next. */
function leastMs(fullSweepEveryMs: number): number {
  const sweepMs = sweepEveryMs({ leastMs: fullSweepEveryMs, pages: MOST_PAGES, newestFirst: true });
  return Math.ceil((DAY_MS + 2 * sweepMs) / DAY_MS) * DAY_MS;
}

/** Finds settings that need a longer `retention`. `tree` is the file as written: a default has no place in it. */
export function checkRetention(config: ParsedConfig, tree: JsonValue): Fault[] {
  const { retention, polling, receivers } = config;
  const least = leastMs(polling.fullSweepEvery);
  const findings: Fault[] = [];
  if (retention < least) {
    const why =
      'a day without the daemon and two sweeps of a wallet of many pages, or what a sweep still shows is removed';
    const found = `${text(retention)} beside a fullSweepEvery of ${text(polling.fullSweepEvery)}`;
    findings.push({ path: ['retention'], found, expected: `${text(least)} or more: ${why}` });
  }
  for (const [index, { name, disableAfter, retries }] of receivers.entries()) {
    const path = ['receivers', index];
    if (disableAfter > retention) {
      findings.push({
        ...place(tree, [...path, 'disableAfter']),
        found: `a disableAfter of ${text(disableAfter)} for ${name} beside a retention of ${text(retention)}`,
        expected: 'a retention as long or longer: events are gone before the receiver is disabled',
      });
    }
    const retriesMs = retries.delays.reduce((sum, delayMs) => sum + delayMs, 0);
    if (retriesMs > retention) {
      findings.push({
        ...place(tree, [...path, 'retries', 'delays']),
        found: `retries for ${text(retriesMs)} for ${name} beside a retention of ${text(retention)}`,
        expected: 'a retention as long or longer: the event is gone before its last attempt',
      });
    }
  }
  return findings;
}

/** The place of a written field, or `retention` where the field has its default. */
function place(tree: JsonValue, path: (string | number)[]): { path: (string | number)[] } {
  return { path: valueAt(tree, path) === undefined ? ['retention'] : path };
}

const UNITS = [
  ['d', DAY_MS],
  ['h', HOUR_MS],
  ['m', MINUTE_MS],
  ['s', 1_000],
] as const;

/** Formats a duration; a long one to the hour. */
function text(ms: number): string {
  const roundedMs = ms > DAY_MS ? Math.ceil(ms / HOUR_MS) * HOUR_MS : ms;
  const [unit, unitMs] = UNITS.find(([, one]) => roundedMs % one === 0) ?? ['ms', 1];
  return `${roundedMs / unitMs}${unit}`;
}
