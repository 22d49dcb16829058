import type { Directory } from '../domain/chains.ts';
import { isJsonObject, type JsonValue } from '../domain/json.ts';
import { isUsableQuote, type RouteDefinition, type RouteQuote, routeRecord } from '../domain/route.ts';
import { UpstreamFailure } from '../upstream/failure.ts';
import type { OpenQuote } from '../upstream/open-quote.ts';
import type { OpenQuotesClient } from '../upstream/open-quotes-client.ts';
import type { Reading } from './reading.ts';

/** The open quoting service, the name under which it is asked, and what is known of tokens. */
export type QuotingService = { client: OpenQuotesClient; dAppId: string; directory: Directory };

/** Where a quote names a chain or an amount, it must be what was asked for. */
const ASKED = ['sourceAmount', 'sourceChainID', 'finalDestinationChainID'] as const;

/**
 * Asks what solvers give for a route. No quotes are a success: nobody serves the route now. Quotes of which none can be
 * read say nothing about the route, so they are a failure.
 */
export async function pollRoute(
  { client, dAppId, directory }: QuotingService,
  route: RouteDefinition,
  signal: AbortSignal,
): Promise<Reading> {
  const asked = {
    sourceChainID: route.source.chainId,
    destinationChainID: route.destination.chainId,
    sourceToken: route.source.token,
    destinationToken: route.destination.token,
    sourceAmount: route.amount,
    funder: route.funder,
    recipient: route.recipient,
  };
  const { value, dateMs, httpStatus } = await client.exactIn(
    { dAppID: dAppId, intentExecutionTypes: ['SELF_PUBLISH'], quoteRequest: asked },
    { signal },
  );
  const unreadable = value.unreadable.map(({ index, reason }) => `quote ${index}: ${reason}`);
  const quotes: RouteQuote[] = [];
  for (const open of value.quotes) {
    const quote = quoteOf(open);
    const flaw = flawOf(open, quote, { ...asked, finalDestinationChainID: asked.destinationChainID });
    if (flaw === null) quotes.push(quote);
    else unreadable.push(`quote ${JSON.stringify(open.quoteId.slice(0, 100))}: ${flaw}`);
  }
  const [first] = unreadable;
  if (quotes.length === 0 && first !== undefined) {
    throw new UpstreamFailure({
      endpoint: 'open-quotes',
      code: 'malformed',
      found: `${unreadable.length} quotes that cannot be used (${first})`,
      expected: 'quotes for the route that was asked for, or none',
      httpStatus,
      problemCode: null,
      retryAfterMs: null,
    });
  }
  return { records: [routeRecord(route, quotes, directory)], nextCursor: null, dateMs, unreadable };
}

function quoteOf(open: OpenQuote): RouteQuote {
  return {
    solver: open.solverId,
    output: open.destinationAmount,
    minimumOutput: open.minimumDestinationAmount,
    fees: open.fees,
    fillEstimateSeconds: open.estimatedFulfillSeconds,
    said: open.raw,
  };
}

/** Why a quote is not one for the route, in words; null when it may be one. */
function flawOf(
  open: OpenQuote,
  quote: RouteQuote,
  asked: Record<(typeof ASKED)[number], string | number>,
): string | null {
  if (!isUsableQuote(quote)) return 'a destinationAmount of more than 78 digits';
  const response = isJsonObject(open.raw.quoteData) ? open.raw.quoteData.quoteResponse : undefined;
  for (const name of ASKED) {
    const said = isJsonObject(response) ? textOf(response[name]) : null;
    if (said !== null && said !== String(asked[name])) {
      return `${name} ${said.slice(0, 80)}, expected ${asked[name]}`;
    }
  }
  return null;
}

function textOf(value: JsonValue | undefined): string | null {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null;
}
