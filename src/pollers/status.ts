import type { JsonObject } from '../domain/json.ts';
import { UNKNOWN } from '../domain/subjects/kinds.ts';
import { foldHex, reservedKindOf, type TxSide, txId } from '../domain/subjects/subject.ts';
import { readLeg } from '../domain/transfers/transfer.ts';
import type { UpstreamClient } from '../upstream/client/client.ts';
import { type PollResponse, readPage, strangerFailure } from './poll-response.ts';

/** Requests a page of a wallet, of all transfers or one status: the first, or a cursor's; with at most `limit` records. */
export async function pollWallet(
  client: UpstreamClient,
  page: { address: string; status: string | null; cursor: string | null; limit: number },
  signal: AbortSignal,
): Promise<PollResponse> {
  const { address: wallet, status, cursor, limit } = page;
  const query = {
    wallet,
    limit,
    ...(status === null ? {} : { status }),
    ...(cursor === null ? {} : { cursor }),
  };
  return readPage(await client.status(query, { signal }));
}

/** Requests one intent by its hash. */
export async function pollIntent(
  client: UpstreamClient,
  intent: { hash: string },
  signal: AbortSignal,
): Promise<PollResponse> {
  return readPage(await client.status({ intentHash: intent.hash }, { signal }));
}

/** Requests one quote by its bare UUID (interface, status endpoint, rule 5). */
export async function pollQuote(
  client: UpstreamClient,
  quote: { uuid: string },
  signal: AbortSignal,
): Promise<PollResponse> {
  return readPage(await client.status({ quoteId: quote.uuid }, { signal }));
}

/** Requests the transfers of a transaction. Another's record changes nothing; no records: it is not known upstream yet. */
export async function pollTx(
  client: UpstreamClient,
  { side, hash }: { side: TxSide; hash: string },
  signal: AbortSignal,
): Promise<PollResponse> {
  const query = side === 'source' ? { sourceTxHash: hash } : { destinationTxHash: hash };
  const answer = await client.status(query, { signal });
  // The record of an unknown transaction has an id of any form. Records of reserved kinds are counted, whatever they state.
  const { records: all } = answer.value;
  const reserved = all.filter((record) => reservedKindOf(record) !== null);
  const records = all.filter(
    (record) => reservedKindOf(record) === null && record.status.toLowerCase() !== UNKNOWN,
  );
  const known = [...reserved, ...records.filter(({ raw }) => !isOfAnother(raw, { side, hash }))];
  if (known.length === 0 && records[0] !== undefined) {
    const { httpStatus } = answer;
    const expected = txId(side, hash);
    throw strangerFailure({ endpoint: 'status', httpStatus, found: records[0].id, expected });
  }
  return readPage({ ...answer, value: { ...answer.value, records: known.slice(0, reserved.length + MOST) } });
}

/** Cap above the transfers that one transaction funds or delivers. */
const MOST = 50;

/** True when a record names its transaction, and contains the requested one nowhere. */
function isOfAnother(record: JsonObject, { side, hash }: { side: TxSide; hash: string }): boolean {
  const leg = readLeg(record[`${side}Tx`], { done: true, members: [] });
  if (leg?.txHash == null || foldHex(leg.txHash) === hash) return false;
  return !JSON.stringify(record).toLowerCase().includes(hash.toLowerCase());
}
