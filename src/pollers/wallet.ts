import type { UpstreamClient } from '../upstream/client.ts';
import { type Reading, readPage } from './reading.ts';

/** The largest page that the interface allows: the most transfers for one request. */
const PAGE_LIMIT = 50;

/** Asks for one page of a wallet: the first, or the one that a cursor leads to. */
export async function pollWallet(
  client: UpstreamClient,
  page: { address: string; cursor: string | null },
  signal: AbortSignal,
): Promise<Reading> {
  const { address: wallet, cursor } = page;
  const query = cursor === null ? { wallet, limit: PAGE_LIMIT } : { wallet, limit: PAGE_LIMIT, cursor };
  return readPage(await client.status(query, { signal }));
}
