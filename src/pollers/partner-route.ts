import { setTimeout as wait } from 'node:timers/promises';
import type { JsonValue } from '../domain/json.ts';
import { estimatedSeconds } from '../domain/quotes/promised.ts';
import { isUndecided, type QuoteVerdict, verdictsOf } from '../domain/quotes/quote-signature.ts';
import { isUsableQuote, type RouteDefinition, type RouteQuote, routeRecord } from '../domain/quotes/route.ts';
import { foldHex } from '../domain/subjects/subject.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import type { UpstreamClient } from '../upstream/client/client.ts';
import { UpstreamFailure } from '../upstream/client/failure.ts';
import type { QuoteSigners } from '../upstream/client/quote-signers.ts';
import type { Answer } from '../upstream/client/send-request.ts';
import type { Quote, QuoteAnswer } from '../upstream/wire/quote.ts';
import type { PollResponse } from './poll-response.ts';
import type { RouteRequest } from './route.ts';

/** The v1 API for prices, and the sources to check them. `slot` resolves when these prices' budget allows a request. */
export type PartnerPricing = {
  client: UpstreamClient;
  signers: QuoteSigners;
  slot: (signal: AbortSignal) => Promise<void>;
  dAppId: string;
  directory: Directory;
};

/** Most quotes that are verified. Each signature takes a millisecond of a core; the quotes with the least output are dropped. */
const MOST_QUOTES = 50;

/** Age below which the signers are not read again for an invalid signature. */
const SIGNERS_TRUSTED_MS = 10_000;

/** Wait before `solver-error` is requested once more, in a slot: it may be temporary (interface, Errors, 2). */
const AGAIN_AFTER_MS = 500;

/** Codes of 422: every solver rejected the request for a stated reason (interface, Errors). */
const REJECTED: readonly (string | null)[] = [
  'chain-not-supported',
  'no-route-found',
  'chain-pair-unsupported',
  'amount-too-low',
  'amount-too-high',
  'insufficient-liquidity',
  'simulation-failed',
];

/**
 * Requests the price of a route from `POST /v1/quotes`, with the key. Only a quote of this very route that the service has
 * signed is a price of it. It never sends anything that funds a quote. An answer without quotes is a success: no solver serves
 * the route.
 */
export async function pollPartnerRoute(
  pricing: PartnerPricing,
  { route, nowMs }: RouteRequest,
  signal: AbortSignal,
): Promise<PollResponse> {
  const { directory } = pricing;
  const answer = await requestQuotes(pricing, route, signal);
  if (answer === null) {
    const records = [routeRecord(route, [], directory)];
    return { records, nextCursor: null, dateMs: null, unreadable: [] };
  }
  const { value, dateMs, httpStatus } = answer;
  const flaws = new Set(value.unreadableQuotes.map(({ index, reason }) => `quote ${index}: ${reason}`));
  const quotes = new Map<string, RouteQuote>();
  const prices: { quote: Quote; price: RouteQuote }[] = [];
  // The quote at the top may be among the others as well; one of the two may be damaged.
  for (const quote of [value, ...value.quotes]) {
    const price = priceOf(quote);
    const flaw = price === null ? NO_OUTPUT : flawOf(quote, route, dateMs ?? nowMs);
    if (price !== null && flaw === null) prices.push({ quote, price });
    else flaws.add(`${nameOf(quote)}: ${flaw}`);
  }
  prices.sort((a, b) => descending(BigInt(a.price.output), BigInt(b.price.output)));
  const verifiable = prices.slice(0, MOST_QUOTES);
  const verdicts = await verdictsOf(
    verifiable.map(({ quote }) => quote.raw),
    (raw) => verdictOf(pricing.signers, raw, signal),
  );
  for (const [index, { quote, price }] of verifiable.entries()) {
    const verdict = verdicts[index];
    if (verdict === undefined) break;
    if (!verdict.valid && !isUndecided(verdict)) {
      flaws.add(`${nameOf(quote)}: its signature does not hold: ${verdict.part}: ${verdict.reason}`);
      continue;
    }
    if (!quotes.has(quote.id)) quotes.set(quote.id, verdict.valid ? price : { ...price, unverified: true });
    for (const flaw of membersOf(quote)) flaws.add(flaw);
  }
  if (prices.length > MOST_QUOTES) flaws.add(`more than ${MOST_QUOTES} quotes`);
  const unreadable = [...flaws];
  const common = { nextCursor: null, dateMs, unreadable };
  if (quotes.size > 0) {
    return { ...common, records: [routeRecord(route, [...quotes.values()], directory)] };
  }
  const useless = new UpstreamFailure({
    endpoint: 'quotes',
    code: 'malformed',
    found: `${unreadable.length} quotes that cannot be used (${unreadable[0] ?? 'none'})`,
    expected: 'a signed quote for the route that was requested',
    httpStatus,
    problemCode: null,
    retryAfterMs: null,
  });
  return { ...common, records: [], useless };
}

function descending(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? 1 : -1;
}

const NO_OUTPUT = 'no destination.amountOut of at most 78 digits';

async function requestQuotes(
  { client, dAppId, slot }: PartnerPricing,
  { source, destination, amount, funder, recipient }: RouteDefinition,
  signal: AbortSignal,
): Promise<Answer<QuoteAnswer> | null> {
  const request = () =>
    client.quote(
      {
        type: 'exact-in',
        dappId: dAppId,
        source: { ...source, funder, amount },
        destination: { ...destination, recipient },
        options: { allQuotes: true },
      },
      { signal },
    );
  try {
    return await request();
  } catch (error) {
    if (isRejected(error)) return null;
    if (!isSolverError(error)) throw error;
  }
  await wait(AGAIN_AFTER_MS, undefined, { signal });
  await slot(signal);
  try {
    return await request();
  } catch (error) {
    if (isRejected(error) || isSolverError(error)) return null;
    throw error;
  }
}

function isRejected(error: unknown): boolean {
  return error instanceof UpstreamFailure && error.httpStatus === 422 && REJECTED.includes(error.problemCode);
}

function isSolverError(error: unknown): boolean {
  return error instanceof UpstreamFailure && error.httpStatus === 502 && error.problemCode === 'solver-error';
}

/** Converts a quote to the domain's form; null where its output is not a usable amount. */
function priceOf({ destination, fees, solver, raw }: Quote): RouteQuote | null {
  const price = {
    solver,
    output: destination.amountOut ?? '',
    minimumOutput: destination.minAmountOut,
    fees,
    fillEstimateSeconds: estimatedSeconds(raw),
    raw,
  };
  return isUsableQuote(price) ? price : null;
}

/** Reason against a quote as price of a route, or null. A missing member is none, except an execution if the route names some. */
function flawOf(quote: Quote, route: RouteDefinition, nowMs: number): string | null {
  const { source, destination, type, expiresAt, transaction } = quote;
  const members: [name: string, answered: string | number | null, requested: string | number][] = [
    ['type', type?.toLowerCase() ?? null, 'exact-in'],
    ['source.chainId', source.chainId, route.source.chainId],
    ['source.token', source.token, route.source.token],
    ['source.funder', source.funder, route.funder],
    ['source.amount', source.amount, route.amount],
    ['destination.chainId', destination.chainId, route.destination.chainId],
    ['destination.token', destination.token, route.destination.token],
    ['destination.recipient', destination.recipient, route.recipient],
  ];
  for (const [name, answered, requested] of members) {
    if (answered !== null && foldHex(String(answered)) !== foldHex(String(requested))) {
      return `${name} ${String(answered).slice(0, 80)}, expected ${requested}`;
    }
  }
  if (expiresAt * 1_000 < nowMs) {
    return `expiresAt ${expiresAt}, which has passed (it is ${Math.floor(nowMs / 1_000)})`;
  }
  const { executions } = route;
  const execution = transaction?.type;
  if (executions.length === 0) return null;
  if (typeof execution !== 'string')
    return `no execution.transaction.type, expected ${executions.join(' or ')}`;
  if (executions.some((one) => one.toLowerCase() === execution.toLowerCase())) return null;
  return `execution.transaction.type ${execution.slice(0, 80)}, expected ${executions.join(' or ')}`;
}

/** Throws UpstreamFailure where the signers cannot be read. */
async function verdictOf(signers: QuoteSigners, raw: JsonValue, signal: AbortSignal): Promise<QuoteVerdict> {
  return (
    (await signers.cached(raw)) ?? (await signers.verify(raw, { trustedForMs: SIGNERS_TRUSTED_MS, signal }))
  );
}

/** The members of a quote that count as absent, because they do not match the interface. */
function membersOf(quote: Quote): string[] {
  return quote.unreadable
    .filter((name) => (quote.raw[name] ?? null) !== null)
    .map((name) => `${name} of ${nameOf(quote)} is not as the interface describes it`);
}

function nameOf({ id }: Quote): string {
  return `quote ${JSON.stringify(id.slice(0, 100))}`;
}
