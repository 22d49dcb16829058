import { hash } from 'node:crypto';
import { z } from 'zod';
import { isJsonObject, type JsonObject, type JsonValue, type SplitJson } from '../../domain/json.ts';
import { foldHex } from '../../domain/subjects/subject.ts';
import {
  amountMember,
  integerMember,
  integerOrNull,
  kindOf,
  type Members,
  nameMember,
  type Parsed,
  readCore,
  recordSchema,
  textMember,
  textOrNull,
  unreadableMembers,
} from './wire.ts';

/** A record of the status endpoint. Its statuses are the upstream's own, known or not. */
export type StatusRecord = {
  /** With its prefix, such as `intent:0x…`. */
  id: string;
  type: string;
  status: string;
  /** Unix seconds on the upstream's clock. */
  updatedAt: number | null;
  /** Unique intents that the record names, in order, as spelled. */
  intentHashes: string[];
  /** The whole record, with unknown and unreadable members. */
  raw: JsonObject;
  /** Members that do not have the interface's shape. */
  unreadable: string[];
};

/**
 * Digests of a page: of the body, of all that counts in it, and of each result with its record; `null` for one of the earlier page or an
 * unreadable one.
 */
export type PageDigests = {
  body: string;
  content: string;
  results: readonly { digest: string; record: StatusRecord | null }[];
};

/**
 * Content of an earlier page that need not be read again: the digest of its body, null where its results must be read, and a
 * test for the digests of results.
 */
export type EarlierContent = { body: string | null; has: (digest: string) => boolean };

/** A page of the status endpoint. `digests` where it was compared with an earlier one; `same`: it has the same body. */
export type StatusPage = {
  records: StatusRecord[];
  digests: PageDigests | 'same' | null;
  /** Results without the core of a record; index -1 means `nextCursor`, which is then null. */
  unreadable: { index: number; reason: string }[];
  nextCursor: string | null;
};

export const STATUS_PAGE_EXPECTED = 'HTTP 200 with a JSON object of results (array) and nextCursor';

const transactionSummary = z.object({
  chainId: z.int(),
  txHash: textMember,
  token: textMember,
  amount: amountMember,
});

const subStatus = z.object({
  chainId: z.int(),
  quoteIds: z.array(textMember),
  txHash: textMember.nullable(),
  intentHashes: z.array(textMember),
  state: textMember,
});

const stepSide = z.object({ token: textMember, amount: amountMember, chainId: z.int() });

const stepTransaction = z.object({ chainId: z.int(), txHash: textMember });

const step = z.object({
  type: textMember,
  intentHash: textMember,
  status: textMember,
  from: stepSide,
  to: stepSide,
  transactions: z.object({
    created: stepTransaction.optional(),
    fulfilled: stepTransaction.optional(),
    refunded: stepTransaction.optional(),
  }),
});

/** Unix seconds up to the year 5138: milliseconds would make every later answer appear older than this one. */
const secondsMember = integerMember.refine((seconds) => Number(seconds) < 1e11);

const CORE = z.object({ id: nameMember, type: textMember, status: nameMember });

const MEMBERS: Members = {
  updatedAt: secondsMember.nullable(),
  intentHashes: z.array(textMember),
  txHash: textMember.nullable(),
  subStatuses: z.array(subStatus),
  sourceTx: transactionSummary,
  destinationTx: transactionSummary,
  steps: z.array(step),
};

/** The schema of a page. */
export const STATUS_PAGE = z.object({
  results: z.array(recordSchema(CORE.shape, MEMBERS)),
  nextCursor: z.string().min(1).nullable(),
});

/** A page has at most fifty results. A much longer list is no page, and would take seconds to read. */
const MOST_RESULTS = 2_000;

/** Reads a page: only `results` must be an array, other members are read if readable. */
export function readStatusPage(body: JsonValue): Parsed<StatusPage> {
  if (!isJsonObject(body)) return { mismatch: `${kindOf(body)} as the body` };
  if (!Array.isArray(body.results)) return { mismatch: `${kindOf(body.results)} as results` };
  if (body.results.length > MOST_RESULTS) return { mismatch: `${body.results.length} results` };
  const page: StatusPage = { records: [], digests: null, unreadable: [], nextCursor: null };
  for (const [index, result] of body.results.entries()) readResult(page, index, result);
  readCursor(page, body);
  return { value: page };
}

/** Digits of base 64 that no two texts share by chance. */
const DIGEST_CHARS = 22;

function digestOf(content: string | Uint8Array): string {
  return hash('sha256', content, 'base64url').slice(0, DIGEST_CHARS);
}

/** A page with the body of an earlier one; null for any other body. */
export function readSameBody(bytes: Uint8Array, earlier: EarlierContent): StatusPage | null {
  if (earlier.body === null || digestOf(bytes) !== earlier.body) return null;
  return { records: [], digests: 'same', unreadable: [], nextCursor: null };
}

/** Member of a page that has its results. */
export const RESULTS = 'results';

/** Reads a page as `readStatusPage` does, except for results of an earlier page. */
export function readSplitPage(
  { elements, rest, parse }: SplitJson,
  { bytes, earlier }: { bytes: Uint8Array; earlier: EarlierContent },
): Parsed<StatusPage> {
  if (!isJsonObject(rest)) return { mismatch: `${kindOf(rest)} as the body` };
  const parsed = elements.map((element) => {
    const digest = digestOf(element);
    return { digest, value: earlier.has(digest) ? null : { result: parse(element) } };
  });
  if (elements.length > MOST_RESULTS) return { mismatch: `${elements.length} results` };
  const page: StatusPage = { records: [], digests: null, unreadable: [], nextCursor: null };
  const results = parsed.map(({ digest, value }, index) => ({
    digest,
    record: value === null ? null : readResult(page, index, value.result),
  }));
  readCursor(page, rest);
  const content = digestOf(JSON.stringify([parsed.map(({ digest }) => digest), rest.nextCursor ?? null]));
  return { value: { ...page, digests: { body: digestOf(bytes), content, results } } };
}

function readResult(page: StatusPage, index: number, result: JsonValue): StatusRecord | null {
  const parsed = readStatusRecord(result);
  if ('value' in parsed) {
    page.records.push(parsed.value);
    return parsed.value;
  }
  page.unreadable.push({ index, reason: parsed.mismatch });
  return null;
}

function readCursor(page: StatusPage, { nextCursor }: JsonObject): void {
  if (typeof nextCursor === 'string' && nextCursor !== '') page.nextCursor = nextCursor;
  else if (nextCursor !== null) {
    page.unreadable.push({
      index: -1,
      reason: `nextCursor: found ${kindOf(nextCursor)}, expected text or null`,
    });
  }
}

function readStatusRecord(raw: JsonValue): Parsed<StatusRecord> {
  if (!isJsonObject(raw)) return { mismatch: `result: found ${kindOf(raw)}, expected an object` };
  const core = readCore(raw, CORE);
  if ('found' in core) return { mismatch: `${core.member}: found ${core.found}, expected text` };
  return {
    value: {
      ...core.value,
      updatedAt: secondsMember.safeParse(raw.updatedAt).success ? integerOrNull(raw.updatedAt) : null,
      intentHashes: intentHashesOf(raw),
      raw,
      unreadable: unreadableMembers(raw, MEMBERS),
    },
  };
}

/** Read one by one, so that an invalid neighbour discards no hash. */
function intentHashesOf(raw: JsonObject): string[] {
  const named = [
    ...items(raw.intentHashes),
    ...items(raw.subStatuses).flatMap((sub) => (isJsonObject(sub) ? items(sub.intentHashes) : [])),
    ...items(raw.steps).map((one) => (isJsonObject(one) ? one.intentHash : null)),
  ];
  const byHash = new Map<string, string>();
  for (const member of named) {
    const hash = textOrNull(member);
    if (hash === null) continue;
    const key = foldHex(hash);
    if (!byHash.has(key)) byHash.set(key, hash);
  }
  return [...byHash.values()];
}

function items(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}

type ExactFilter = 'intentHash' | 'sourceTxHash' | 'destinationTxHash' | 'quoteId' | 'jobId';

type WalletFilter = { wallet: string; status?: string; cursor?: string; limit?: number };

/** One exact filter and no other member. */
type Only<Name extends ExactFilter> = { [N in Name]: string } & {
  [N in Exclude<ExactFilter, Name> | keyof WalletFilter]?: never;
};

/** Query of the status endpoint: one exact filter (`quoteId`, `jobId`: bare UUIDs), or a wallet's page (`limit`: 1 to 50). */
export type StatusQuery =
  | { [Name in ExactFilter]: Only<Name> }[ExactFilter]
  | (WalletFilter & { [Name in ExactFilter]?: never });

/** Path and query of a status request. */
export function statusPath(query: StatusQuery): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value));
  }
  return `/v1/intents/status?${parameters}`;
}
