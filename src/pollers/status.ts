import type { JsonObject } from '../domain/json.ts';
import { UNKNOWN } from '../domain/subjects/kinds.ts';
import type { UpstreamRecord } from '../domain/subjects/record.ts';
import { foldHex, reservedKindOf, type SubjectId, type TxSide, txId } from '../domain/subjects/subject.ts';
import { readLeg } from '../domain/transfers/transfer.ts';
import type { UpstreamClient } from '../upstream/client/client.ts';
import { type PollResponse, readPage, strangerFailure } from './poll-response.ts';

/** A record of a page without its content. */
export type ShownRecord = { subject: SubjectId; status: string; updatedAt: number | null };

/** An earlier page of a wallet: the digest of its body, null where its results must be read, and its records by their digests. */
export type EarlierPage = {
  body: string | null;
  nextCursor: string | null;
  find: (digest: string) => ShownRecord | null;
};

/**
 * A page of a wallet. `results`: its records in order, with their content except for those of the earlier page. `digests`: of its
 * body and content, where it was compared. `isSame`: it has the body of the earlier page, and is not read again.
 */
export type WalletPage = PollResponse & {
  results: readonly (ShownRecord & { digest: string; record: UpstreamRecord | null })[];
  digests: { body: string; content: string } | null;
  isSame: boolean;
};

/**
 * Requests a page of a wallet, of all transfers or one status: the first, or a cursor's; with at most `limit` records. It is
 * compared with an earlier one, where there may be one.
 */
export async function pollWallet(
  client: UpstreamClient,
  page: {
    address: string;
    status: string | null;
    cursor: string | null;
    limit: number;
    earlier: EarlierPage | null;
  },
  signal: AbortSignal,
): Promise<WalletPage> {
  const { address: wallet, status, cursor, limit, earlier } = page;
  const query = {
    wallet,
    limit,
    ...(status === null ? {} : { status }),
    ...(cursor === null ? {} : { cursor }),
  };
  if (earlier === null) {
    const response = readPage(await client.status(query, { signal }));
    return { ...response, results: response.records.map(shown), digests: null, isSame: false };
  }
  const { body, find } = earlier;
  const answer = await client.status(query, {
    signal,
    earlier: { body, has: (digest) => find(digest) !== null },
  });
  const response = readPage(answer);
  const { digests } = answer.value;
  if (digests === 'same') {
    return { ...response, nextCursor: earlier.nextCursor, results: [], digests: null, isSame: true };
  }
  if (digests === null) {
    return { ...response, results: response.records.map(shown), digests: null, isSame: false };
  }
  const records = new Map(response.records.map((record) => [record.raw, record]));
  const results = digests.results.flatMap(({ digest, record }) => {
    if (record !== null) {
      const read = records.get(record.raw);
      return read === undefined ? [] : { ...shown(read), digest };
    }
    const unchanged = find(digest);
    return unchanged === null ? [] : { ...unchanged, digest, record: null };
  });
  return { ...response, results, digests, isSame: false };
}

function shown(record: UpstreamRecord): ShownRecord & { digest: string; record: UpstreamRecord } {
  const { subject, status, updatedAt } = record;
  return { subject, status, updatedAt, digest: '', record };
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
  const own = [...reserved, ...records.filter(({ raw }) => !isOfAnother(raw, { side, hash }))];
  if (own.length === 0 && records[0] !== undefined) {
    const { httpStatus } = answer;
    const expected = txId(side, hash);
    throw strangerFailure({ endpoint: 'status', httpStatus, found: records[0].id, expected });
  }
  return readPage({ ...answer, value: { ...answer.value, records: own.slice(0, reserved.length + MOST) } });
}

/** Cap above the transfers that one transaction funds or delivers. */
const MOST = 50;

/** True when a record names its transaction, and contains the requested one nowhere. */
function isOfAnother(record: JsonObject, { side, hash }: { side: TxSide; hash: string }): boolean {
  const leg = readLeg(record[`${side}Tx`], { done: true, members: [] });
  if (leg?.txHash == null || foldHex(leg.txHash) === hash) return false;
  return !JSON.stringify(record).toLowerCase().includes(hash.toLowerCase());
}
