import { isJsonObject } from '../domain/json.ts';
import {
  OPEN_EXECUTIONS,
  type RouteDefinition,
  type RouteQuote,
  routeRecord,
} from '../domain/quotes/route.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import { UpstreamFailure } from '../upstream/client/failure.ts';
import type { OpenQuotesClient } from '../upstream/client/open-quotes-client.ts';
import type { ExactInRequest, OpenQuote } from '../upstream/wire/open-quote.ts';
import type { Reading } from './reading.ts';
import { flawOf, routeQuote } from './route-quote.ts';

/** The open quoting service, the name under which it is asked, and what is known of tokens. */
export type QuotingService = { client: OpenQuotesClient; dAppId: string; directory: Directory };

/** A route to be requested, and the time of the request, ms since 1970. */
export type AskedRoute = { route: RouteDefinition; nowMs: number };

/**
 * Asks what solvers give for a route. No quotes are a success: nobody serves the route now. Quotes of which none is a
 * price of the route, or none can be read, say nothing about it, so they are a failure.
 */
export async function pollRoute(
  { client, dAppId, directory }: QuotingService,
  { route, nowMs }: AskedRoute,
  signal: AbortSignal,
): Promise<Reading> {
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
  const [first] = unreadable;
  if (quotes.length === 0 && first !== undefined) {
    throw new UpstreamFailure({
      endpoint: 'open-quotes',
      code: 'malformed',
      found: `${unreadable.length} quotes that cannot be used (${first})`,
      expected: 'quotes for the route that was requested, or none',
      httpStatus,
      problemCode: null,
      retryAfterMs: null,
    });
  }
  return { records: [routeRecord(route, quotes, directory)], nextCursor: null, dateMs, unreadable };
}

/** The members of a quote that say nothing, for they are not as the interface describes them. */
function membersOf({ quoteId, unreadable, raw }: OpenQuote): string[] {
  const response = isJsonObject(raw.quoteData) ? raw.quoteData.quoteResponse : undefined;
  return unreadable
    .filter((name) => ((isJsonObject(response) ? response[name] : null) ?? raw[name] ?? null) !== null)
    .map(
      (name) =>
        `${name} of quote ${JSON.stringify(quoteId.slice(0, 100))} is not as the interface describes it`,
    );
}
