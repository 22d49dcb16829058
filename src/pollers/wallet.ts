import type { UpstreamClient } from '../upstream/client/client.ts';
import { type Reading, readPage } from './reading.ts';

/** The largest page that the interface allows: the most transfers for one request. */
const PAGE_LIMIT = 50;

/** Asks for one page of a wallet, of all its transfers or of those in one status: the first, or where a cursor leads. */
export async function pollWallet(
  client: UpstreamClient,
  page: { address: string; status: string | null; cursor: string | null },
  signal: AbortSignal,
): Promise<Reading> {
  const { address: wallet, status, cursor } = page;
  const query = {
    wallet,
    limit: PAGE_LIMIT,
    ...(status === null ? {} : { status }),
    ...(cursor === null ? {} : { cursor }),
  };
  return readPage(await client.status(query, { signal }));
}
