import { z } from 'zod';
import { canonicalJson, isJsonObject, type JsonObject } from '../json.ts';
import type { UpstreamRecord } from '../subjects/record.ts';
import { foldHex, type RouteService, routeId } from '../subjects/subject.ts';
import { COMMON_NAMES, type Directory } from '../transfers/chains.ts';

/** Start or end of a route. */
export type RouteEnd = { chainId: number; token: string };

/** Executions that the open quoting service accepts. */
export const OPEN_EXECUTIONS = ['SELF_PUBLISH', 'GASLESS'] as const;

/** Executions requested from the open quoting service when a route names none. */
export const USUAL_EXECUTIONS: readonly string[] = ['SELF_PUBLISH'];

/**
 * A watched route of a subscription. `amount`: the input, base units. `movedBy`: share by which the output must
 * differ from the last reported one. `executions`: only quotes with one of them count, as `intentExecutionTypes` of
 * the open service or `execution.transaction.type` of v1; none means any.
 */
export type RouteDefinition = {
  name: string;
  service: RouteService;
  executions: readonly string[];
  source: RouteEnd;
  destination: RouteEnd;
  amount: string;
  funder: string;
  recipient: string;
  movedBy: number;
  everyMs: number;
};

/** A fee of a quote; null marks a member that the quote omits. */
export type RouteFee = {
  amount: string;
  token: string | null;
  decimals: number | null;
  symbol: string | null;
};

/** One solver's quote for a route. Amounts are base units; `raw` is the whole quote. */
export type RouteQuote = {
  solver: string | null;
  output: string;
  minimumOutput: string | null;
  fees: readonly RouteFee[];
  fillEstimateSeconds: number | null;
  /** Its signature could not be verified: the domain of the deployment's quotes is unproven, or no signer is published. */
  unverified?: true;
  raw: JsonObject;
};

/** No token has more digits, and arithmetic on longer ones would take unbounded time. */
const AMOUNT = /^\d{1,78}$/;

/** Longest quote in a record, characters of JSON, so that an event stays well below 20 kB. */
const LONGEST_QUOTE = 12_000;
const MOST_FEE_TOKENS = 20;
const LONGEST_WORD = 100;

const RATIO_DIGITS = 12;

const amount = z.string().regex(AMOUNT);
const end = z.object({ chainId: z.int(), token: z.string(), decimals: z.int().nullable() });

const ROUTE_RECORD = z.object({
  source: end,
  destination: end,
  amount,
  funder: z.string(),
  recipient: z.string(),
  movedBy: z.number(),
  output: amount.nullable(),
  previousOutput: amount.nullable(),
  /** In a snapshot: the last reported output, when the present one differs from it. */
  reportedOutput: amount.optional(),
  minimumOutput: amount.nullable(),
  outputPerInput: z.string().nullable(),
  fees: z.array(
    z.object({ token: z.string(), symbol: z.string().nullable(), decimals: z.int().nullable(), amount }),
  ),
  fillEstimateSeconds: z.int().nullable(),
  solvers: z.int(),
  /** The signature of the quote could not be verified. */
  unverified: z.literal(true).optional(),
});

/** Content of a route's record. `outputPerInput` is in token units when both tokens' decimals are known. */
export type RouteSummary = z.infer<typeof ROUTE_RECORD>;

/** Reads the record of a route; null for any other record. */
export function readRoute(record: JsonObject): RouteSummary | null {
  if (record.type !== 'route') return null;
  const parsed = ROUTE_RECORD.safeParse(record);
  return parsed.success ? parsed.data : null;
}

/** True when a quote's output is a valid amount. */
export function isUsableQuote(quote: RouteQuote): boolean {
  return AMOUNT.test(quote.output);
}

/**
 * Makes one record of an answer about a route: the best quote (the largest output) and the number of solvers. The
 * order of the quotes means nothing. Without quotes the route is `unavailable`.
 */
export function routeRecord(
  definition: RouteDefinition,
  quotes: readonly RouteQuote[],
  directory: Directory = COMMON_NAMES,
): UpstreamRecord {
  const { service, source, destination, movedBy, funder, recipient } = definition;
  const subject = routeId(definition);
  const [best] = quotes.filter(isUsableQuote).sort(betterFirst);
  const status = best === undefined ? 'unavailable' : 'available';
  const decimals = {
    source: decimalsOf(source, quotes, directory),
    destination: decimalsOf(destination, quotes, directory),
  };
  const raw = {
    id: subject,
    type: 'route',
    service,
    status,
    source: { ...source, decimals: decimals.source },
    destination: { ...destination, decimals: decimals.destination },
    amount: definition.amount,
    funder,
    recipient,
    movedBy,
    output: best?.output ?? null,
    previousOutput: null,
    minimumOutput: best === undefined ? null : usableAmount(best.minimumOutput),
    outputPerInput: best === undefined ? null : outputPerInput(definition, best.output, decimals),
    fees: best === undefined ? [] : sumFees(best.fees),
    fillEstimateSeconds: best?.fillEstimateSeconds ?? null,
    solvers: countSolvers(quotes),
    ...(best?.unverified === true ? { unverified: true } : {}),
    quote: best === undefined ? null : shownQuote(best.raw),
  };
  return { subject, status, updatedAt: null, names: [], raw, unreadable: [] };
}

/**
 * Fees as a share of the amounts they are deducted from: the input for fees in the source token, the output for fees in
 * the destination token. Null without a quote. Fees in other tokens are not counted.
 */
export function feeRatio(route: RouteSummary): number | null {
  const { source, destination, output } = route;
  if (output === null) return null;
  return route.fees.reduce((sum, fee) => {
    if (foldHex(fee.token) === foldHex(source.token)) return sum + share(fee.amount, route.amount);
    return foldHex(fee.token) === foldHex(destination.token) ? sum + share(fee.amount, output) : sum;
  }, 0);
}

/** True when an output differs from another by more than a share of the latter, to the last digit. */
export function isBeyond(output: string, from: string, movedBy: number): boolean {
  const difference = BigInt(output) - BigInt(from);
  const size = difference < 0n ? -difference : difference;
  return size * 1_000_000n > BigInt(from) * BigInt(Math.round(movedBy * 1_000_000));
}

function share(part: string, whole: string): number {
  return BigInt(whole) === 0n ? 0 : Number(ratio(BigInt(part), BigInt(whole)));
}

/** Quotes with equal terms are sorted by their text, so that the same set gives the same record. */
function betterFirst(a: RouteQuote, b: RouteQuote): number {
  return (
    descending(a.output, b.output) ||
    descending(usableAmount(a.minimumOutput) ?? '0', usableAmount(b.minimumOutput) ?? '0') ||
    (a.fillEstimateSeconds ?? Number.MAX_SAFE_INTEGER) - (b.fillEstimateSeconds ?? Number.MAX_SAFE_INTEGER) ||
    (canonicalJson(a.raw) < canonicalJson(b.raw) ? -1 : 1)
  );
}

function descending(a: string, b: string): number {
  const [left, right] = [BigInt(a), BigInt(b)];
  return left === right ? 0 : left > right ? -1 : 1;
}

function usableAmount(text: string | null): string | null {
  return text !== null && AMOUNT.test(text) ? text : null;
}

/** Decimals of a known token, else those on which all fees in this token agree; null when they do not. */
function decimalsOf(
  { chainId, token }: RouteEnd,
  quotes: readonly RouteQuote[],
  directory: Directory,
): number | null {
  const listed = directory.token(String(chainId), token);
  if (listed !== null) return listed.decimals;
  const decimals = quotes
    .flatMap(({ fees }) => fees)
    .filter((fee) => fee.token !== null && foldHex(fee.token) === foldHex(token))
    .map((fee) => fee.decimals)
    .filter((decimals) => decimals !== null && decimals >= 0 && decimals <= 36);
  return new Set(decimals).size === 1 ? (decimals[0] ?? null) : null;
}

function outputPerInput(
  definition: RouteDefinition,
  output: string,
  decimals: { source: number | null; destination: number | null },
): string {
  const areListed = decimals.source !== null && decimals.destination !== null;
  const scale = (value: number | null): bigint => 10n ** BigInt(areListed ? (value ?? 0) : 0);
  return ratio(
    BigInt(output) * scale(decimals.source),
    BigInt(definition.amount) * scale(decimals.destination),
  );
}

/** A ratio as a decimal number, cut after 12 digits. */
function ratio(part: bigint, whole: bigint): string {
  const digits = ((part * 10n ** BigInt(RATIO_DIGITS)) / whole).toString().padStart(RATIO_DIGITS + 1, '0');
  const fraction = digits.slice(-RATIO_DIGITS).replace(/0+$/, '');
  return fraction === '' ? digits.slice(0, -RATIO_DIGITS) : `${digits.slice(0, -RATIO_DIGITS)}.${fraction}`;
}

function sumFees(fees: readonly RouteFee[]): RouteSummary['fees'] {
  const sums = new Map<string, RouteSummary['fees'][number]>();
  for (const { token, amount: paid, symbol, decimals } of fees) {
    if (token === null || token.length > LONGEST_WORD || !AMOUNT.test(paid)) continue;
    const before = sums.get(foldHex(token));
    const sum = String(BigInt(before?.amount ?? '0') + BigInt(paid));
    const name = symbol === null || symbol.length > LONGEST_WORD ? null : symbol;
    sums.set(
      foldHex(token),
      before ? { ...before, amount: sum } : { token, symbol: name, decimals, amount: sum },
    );
  }
  const usable = [...sums.values()].filter((sum) => AMOUNT.test(sum.amount));
  return usable.sort((a, b) => (a.token < b.token ? -1 : 1)).slice(0, MOST_FEE_TOKENS);
}

/** Number of solvers; a quote that names no solver counts as one of its own. */
function countSolvers(quotes: readonly RouteQuote[]): number {
  const usable = quotes.filter(isUsableQuote);
  const named = new Set(usable.flatMap(({ solver }) => (solver === null ? [] : [foldHex(solver)])));
  return named.size + usable.filter(({ solver }) => solver === null).length;
}

/** The quote without `encodedRoute` or v1's `execution`, which only its funder needs, and without v1's other `quotes`. */
function shownQuote(raw: JsonObject): JsonObject | null {
  const shown = withoutFunding(raw);
  return shown === null || canonicalJson(shown).length > LONGEST_QUOTE ? null : shown;
}

function withoutFunding(raw: JsonObject): JsonObject | null {
  const { quoteData, execution, quotes, ...others } = raw;
  if (typeof raw.signature === 'string') return others;
  if (!isJsonObject(quoteData) || !isJsonObject(quoteData.quoteResponse)) return null;
  const { encodedRoute, ...quoteResponse } = quoteData.quoteResponse;
  return { ...raw, quoteData: { ...quoteData, quoteResponse } };
}
