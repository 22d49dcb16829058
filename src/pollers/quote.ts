import type { UpstreamClient } from '../upstream/client/client.ts';
import { type Reading, readPage } from './reading.ts';

/** Asks for one quote by its bare UUID (interface, status endpoint, rule 5). */
export async function pollQuote(
  client: UpstreamClient,
  quote: { uuid: string },
  signal: AbortSignal,
): Promise<Reading> {
  return readPage(await client.status({ quoteId: quote.uuid }, { signal }));
}
