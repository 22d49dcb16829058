import { UNKNOWN } from '../domain/subjects/kinds.ts';
import type { TxSide } from '../domain/subjects/subject.ts';
import type { UpstreamClient } from '../upstream/client/client.ts';
import { type Reading, readPage } from './reading.ts';

/** Asks for the transfer that a transaction belongs to. No records: the upstream does not know the transaction yet. */
export async function pollTx(
  client: UpstreamClient,
  { side, hash }: { side: TxSide; hash: string },
  signal: AbortSignal,
): Promise<Reading> {
  const query = side === 'source' ? { sourceTxHash: hash } : { destinationTxHash: hash };
  const answer = await client.status(query, { signal });
  // What stands for an unknown transaction has an id of any form.
  const records = answer.value.records.filter(({ status }) => status.toLowerCase() !== UNKNOWN);
  return readPage({ ...answer, value: { ...answer.value, records } });
}
