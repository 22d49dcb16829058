import type { JsonObject } from '../json.ts';
import { readTransfer } from '../transfers/transfer.ts';

/** The route of which nothing is known, and on which everything is learned. */
export const ANY_ROUTE = '*';

const CHAIN = /^[A-Za-z0-9_-]{1,40}$/;

/**
 * The route of a record by which its timing is learned: `8453:10`; `8453:*` where only the source chain can be read; `*`
 * where not even that.
 */
export function routeName(record: JsonObject): string {
  const { source, destination } = readTransfer(record);
  const from = source?.chainId ?? '';
  const to = destination?.chainId ?? '';
  if (!CHAIN.test(from)) return ANY_ROUTE;
  return `${from}:${CHAIN.test(to) ? to : '*'}`;
}
