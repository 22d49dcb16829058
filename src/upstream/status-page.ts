import { z } from 'zod';
import { isJsonObject, type JsonObject, type JsonValue } from '../domain/json.ts';
import { foldHex } from '../domain/subject.ts';
import {
  integerMember,
  integerOrNull,
  kindOf,
  type Members,
  type Reading,
  unreadableMembers,
} from './wire.ts';

/** A record of the status endpoint. Its words are the upstream's own, known or not. */
export type StatusRecord = {
  /** With its prefix, such as `intent:0x…`. */
  id: string;
  type: string;
  status: string;
  /** Unix seconds on the upstream's clock. */
  updatedAt: number | null;
  /** Every intent the record names, each once, in order, as spelled. */
  intentHashes: string[];
  /** All the upstream said, unknown and unreadable members included. */
  raw: JsonObject;
  /** Members that are there but not as the interface describes them. */
  unreadable: string[];
};

/** A page of the status endpoint. */
export type StatusPage = {
  records: StatusRecord[];
  /** Results without the core of a record; index -1 stands for `nextCursor`, which then is null for want of better. */
  unreadable: { index: number; reason: string }[];
  nextCursor: string | null;
};

/** What the status endpoint must answer, in words. */
export const STATUS_PAGE_EXPECTED = 'HTTP 200 with a JSON object of results (array) and nextCursor';

const transactionSummary = z.object({
  chainId: z.int(),
  txHash: z.string(),
  token: z.string(),
  amount: z.string(),
});

const subStatus = z.object({
  chainId: z.int(),
  quoteIds: z.array(z.string()),
  txHash: z.string().nullable(),
  intentHashes: z.array(z.string()),
  state: z.string(),
});

const stepSide = z.object({ token: z.string(), amount: z.string(), chainId: z.int() });

const stepTransaction = z.object({ chainId: z.int(), txHash: z.string() });

const step = z.object({
  type: z.string(),
  intentHash: z.string(),
  status: z.string(),
  from: stepSide,
  to: stepSide,
  transactions: z.object({
    created: stepTransaction.optional(),
    fulfilled: stepTransaction.optional(),
    refunded: stepTransaction.optional(),
  }),
});

const MEMBERS: Members = {
  updatedAt: integerMember.nullable(),
  intentHashes: z.array(z.string()),
  txHash: z.string().nullable(),
  subStatuses: z.array(subStatus),
  sourceTx: transactionSummary,
  destinationTx: transactionSummary,
  steps: z.array(step),
};

/** Reads a page: only `results` must be an array, everything below it is taken as far as it goes. */
export function readStatusPage(body: JsonValue): Reading<StatusPage> {
  if (!isJsonObject(body)) return { mismatch: `${kindOf(body)} as the body` };
  if (!Array.isArray(body.results)) return { mismatch: `${kindOf(body.results)} as results` };
  const page: StatusPage = { records: [], unreadable: [], nextCursor: null };
  for (const [index, result] of body.results.entries()) {
    const reading = readStatusRecord(result);
    if ('value' in reading) page.records.push(reading.value);
    else page.unreadable.push({ index, reason: reading.mismatch });
  }
  const { nextCursor } = body;
  if (typeof nextCursor === 'string' && nextCursor !== '') page.nextCursor = nextCursor;
  else if (nextCursor !== null) {
    page.unreadable.push({
      index: -1,
      reason: `nextCursor: found ${kindOf(nextCursor)}, expected text or null`,
    });
  }
  return { value: page };
}

function readStatusRecord(raw: JsonValue): Reading<StatusRecord> {
  if (!isJsonObject(raw)) return { mismatch: `result: found ${kindOf(raw)}, expected an object` };
  const { id, type, status } = raw;
  if (typeof id !== 'string' || id === '') {
    return { mismatch: `id: found ${kindOf(id)}, expected text` };
  }
  if (typeof type !== 'string') return { mismatch: `type: found ${kindOf(type)}, expected text` };
  if (typeof status !== 'string' || status === '') {
    return { mismatch: `status: found ${kindOf(status)}, expected text` };
  }
  return {
    value: {
      id,
      type,
      status,
      updatedAt: integerOrNull(raw.updatedAt),
      intentHashes: intentHashesOf(raw),
      raw,
      unreadable: unreadableMembers(raw, MEMBERS),
    },
  };
}

/** Taken one by one, so that a bad neighbour costs no hash. */
function intentHashesOf(raw: JsonObject): string[] {
  const named = [
    ...items(raw.intentHashes),
    ...items(raw.subStatuses).flatMap((sub) => (isJsonObject(sub) ? items(sub.intentHashes) : [])),
    ...items(raw.steps).map((one) => (isJsonObject(one) ? one.intentHash : null)),
  ];
  const byHash = new Map<string, string>();
  for (const hash of named) {
    if (typeof hash !== 'string' || hash === '') continue;
    const key = foldHex(hash);
    if (!byHash.has(key)) byHash.set(key, hash);
  }
  return [...byHash.values()];
}

function items(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}
