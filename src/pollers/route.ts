import { isJsonObject, type JsonObject, type JsonValue } from '../domain/json.ts';
import {
  isUsableQuote,
  OPEN_EXECUTIONS,
  type RouteDefinition,
  type RouteEnd,
  type RouteQuote,
  routeRecord,
} from '../domain/quotes/route.ts';
import { foldHex } from '../domain/subjects/subject.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import { UpstreamFailure } from '../upstream/client/failure.ts';
import type { OpenQuotesClient } from '../upstream/client/open-quotes-client.ts';
import type { ExactInRequest, OpenQuote } from '../upstream/wire/open-quote.ts';
import type { PollResponse } from './poll-response.ts';

/** The open quoting service, the dApp id of requests to it, and the known tokens. */
export type QuotingService = { client: OpenQuotesClient; dAppId: string; directory: Directory };

/** A route to request, and the time of the request, ms since 1970. */
export type RouteRequest = { route: RouteDefinition; nowMs: number };

/**
 * Requests the solvers' quotes for a route. No quotes are a success: no solver serves the route now. Where no quote is readable
 * or a price of the route, that is a failure, because the answer is no statement about it.
 */
export async function pollRoute(
  { client, dAppId, directory }: QuotingService,
  { route, nowMs }: RouteRequest,
  signal: AbortSignal,
): Promise<PollResponse> {
  const request: ExactInRequest = {
    dAppID: dAppId,
    intentExecutionTypes: OPEN_EXECUTIONS.filter((one) => route.executions.includes(one)),
    quoteRequest: {
      sourceChainID: route.source.chainId,
      destinationChainID: route.destination.chainId,
      sourceToken: route.source.token,
      destinationToken: route.destination.token,
      sourceAmount: route.amount,
      funder: route.funder,
      recipient: route.recipient,
    },
  };
  const { value, dateMs, httpStatus } = await client.exactIn(request, { signal });
  const unreadable = value.unreadable.map(({ index, reason }) => `quote ${index}: ${reason}`);
  const quotes: RouteQuote[] = [];
  for (const open of value.quotes) {
    const flaw = flawOf(open, { request, directory, nowMs: dateMs ?? nowMs });
    if (flaw === null) {
      quotes.push(routeQuote(open));
      unreadable.push(...membersOf(open));
    } else unreadable.push(`quote ${JSON.stringify(open.quoteId.slice(0, 100))}: ${flaw}`);
  }
  const common = { nextCursor: null, dateMs, unreadable };
  const [first] = unreadable;
  if (quotes.length > 0 || first === undefined) {
    return { ...common, records: [routeRecord(route, quotes, directory)] };
  }
  const useless = new UpstreamFailure({
    endpoint: 'open-quotes',
    code: 'malformed',
    found: `${unreadable.length} quotes that cannot be used (${first})`,
    expected: 'quotes for the route that was requested, or none',
    httpStatus,
    problemCode: null,
    retryAfterMs: null,
  });
  return { ...common, records: [], useless };
}

/** The members of a quote that count as absent, because they do not match the interface. */
function membersOf({ quoteId, unreadable, raw }: OpenQuote): string[] {
  const response = isJsonObject(raw.quoteData) ? raw.quoteData.quoteResponse : undefined;
  return unreadable
    .filter((name) => ((isJsonObject(response) ? response[name] : null) ?? raw[name] ?? null) !== null)
    .map(
      (name) =>
        `${name} of quote ${JSON.stringify(quoteId.slice(0, 100))} is not as the interface describes it`,
    );
}

/** The request of a price, and the upstream's clock where its answer had it (else ours), ms since 1970. */
type PriceRequest = { request: ExactInRequest; directory: Directory; nowMs: number };

function routeQuote(open: OpenQuote): RouteQuote {
  return {
    solver: open.solverId,
    output: open.destinationAmount,
    minimumOutput: open.minimumDestinationAmount,
    fees: open.fees,
    fillEstimateSeconds: open.estimatedFulfillSeconds,
    raw: open.raw,
  };
}

/**
 * The reason for which a quote is no price of the request; null when it may be one. A member that is missing, or has a form of
 * its own, is no reason. `destinationChainID` may differ from the last chain of the way.
 */
function flawOf(open: OpenQuote, { request, directory, nowMs }: PriceRequest): string | null {
  if (!isUsableQuote(routeQuote(open))) return 'a destinationAmount of more than 78 digits';
  const { quoteData } = open.raw;
  const response = isJsonObject(quoteData) ? quoteData.quoteResponse : undefined;
  if (!isJsonObject(response)) return null;
  const { quoteRequest: requested, intentExecutionTypes } = request;
  return (
    otherMember(response, {
      sourceAmount: requested.sourceAmount,
      sourceChainID: requested.sourceChainID,
      finalDestinationChainID: requested.destinationChainID,
      sourceToken: requested.sourceToken,
      destinationToken: requested.destinationToken,
      funder: requested.funder,
      recipient: requested.recipient,
    }) ??
    otherExecution(response, intentExecutionTypes) ??
    expiry(open, nowMs) ??
    otherDecimals(open, { requested, directory })
  );
}

function otherMember(response: JsonObject, requested: Record<string, string | number>): string | null {
  for (const [name, value] of Object.entries(requested)) {
    const answered = textOf(response[name]);
    if (answered !== null && foldHex(answered) !== foldHex(String(value))) {
      return `${name} ${answered.slice(0, 80)}, expected ${value}`;
    }
  }
  return null;
}

function otherExecution(response: JsonObject, requested: readonly string[]): string | null {
  const answered = textOf(response.intentExecutionType);
  if (answered === null || requested.includes(answered.toUpperCase())) return null;
  return `intentExecutionType ${answered.slice(0, 80)}, expected ${requested.join(' or ')}`;
}

function expiry({ quoteExpiry }: OpenQuote, nowMs: number): string | null {
  if (quoteExpiry === null || quoteExpiry * 1_000 >= nowMs) return null;
  return `quoteExpiry ${quoteExpiry}, which has passed (it is ${Math.floor(nowMs / 1_000)})`;
}

/** Compares decimals: an amount in other units of a token than the route's is no amount of it. */
function otherDecimals(
  { fees }: OpenQuote,
  { requested, directory }: { requested: ExactInRequest['quoteRequest']; directory: Directory },
): string | null {
  const ends: RouteEnd[] = [
    { chainId: requested.sourceChainID, token: requested.sourceToken },
    { chainId: requested.destinationChainID, token: requested.destinationToken },
  ];
  for (const { token, decimals } of fees) {
    if (token === null || decimals === null) continue;
    // One address can be a token on both chains; then either's decimals are valid.
    const expected = ends
      .filter((end) => foldHex(end.token) === foldHex(token))
      .map((end) => directory.token(String(end.chainId), end.token)?.decimals ?? decimals);
    if (expected.length > 0 && !expected.includes(decimals)) {
      return `a fee in ${token} of ${decimals} decimals, expected ${expected.join(' or ')}`;
    }
  }
  return null;
}

function textOf(value: JsonValue | undefined): string | null {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : null;
}
