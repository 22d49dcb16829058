import { hash } from 'node:crypto';
import type { FlaggedEvent } from '../changes/decision.ts';
import { PROMISED, type Promised } from '../events/event-schema.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import type { Snapshot } from '../subjects/record.ts';
import { foldHex, quoteId, type SubjectId, subjectKind } from '../subjects/subject.ts';
import { readLeg, readText } from '../transfers/transfer.ts';
import type { QuotePart } from './quote-signature.ts';

/** An imported quote: the JSON of `POST /v1/quotes`. `raw` has its signed members, its promises and its vault, unchanged. */
export type ImportedQuote = { subject: SubjectId; raw: JsonObject };

/** An imported quote and the verdict on its signature; null until it is verified. */
export type ImportedState = { quote: ImportedQuote; verdict: 'valid' | 'invalid' | null };

const SIGNED = ['id', 'intentHash', 'steps', 'expiresAt', 'source', 'signature'];

/** Stored members: the signed ones and the promises, beside the vault. The rest of a quote is not stored. */
const STORED = [...SIGNED, 'destination', 'fees', 'estimatedFulfillTimeSec', 'refundRecipient'];

/** Reads the id and the stored members of a quote. Null when the id is not `quote:` and a UUID. */
export function readImportedQuote(json: JsonValue): ImportedQuote | null {
  if (!isJsonObject(json) || typeof json.id !== 'string') return null;
  const [, uuid] = /^quote:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i.exec(json.id) ?? [];
  if (uuid === undefined) return null;
  const raw = membersOf(json, STORED);
  const { execution } = json;
  if (isJsonObject(execution) && execution.vault !== undefined) raw.execution = vaultOf(execution);
  return { subject: quoteId(uuid), raw };
}

/** The vault of a quote and the deadline of its reward, where they are in the quote. */
function vaultOf(execution: JsonObject): JsonObject {
  const intent = isJsonObject(execution.intent) ? execution.intent : {};
  const reward = isJsonObject(intent.reward) ? membersOf(intent.reward, ['deadline']) : {};
  return { ...membersOf(execution, ['vault']), intent: { reward } };
}

/** Fingerprint of a quote's signed content: an imported quote with other content is verified again. */
export function fingerprintOf({ raw }: ImportedQuote): string {
  return hash('sha256', canonicalJson(membersOf(raw, SIGNED)), 'hex').slice(0, 32);
}

function membersOf(json: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(json).filter(([key]) => names.includes(key)));
}

/** Event of an invalid signature, once per content. */
export function signatureInvalid(
  quote: ImportedQuote,
  flaw: { part: QuotePart; reason: string; recovered: string | null },
  { status }: { status: string },
): FlaggedEvent {
  const { part, reason, recovered } = flaw;
  return {
    flag: `quote:signature:${fingerprintOf(quote)}`,
    transition: {
      type: 'quote.signature_invalid',
      status,
      previousStatus: status,
      changes: [],
      skipped: false,
      regression: false,
    },
    raw: { id: quote.subject, signature: { valid: false, part, reason, recovered } },
  };
}

/** No token has more digits, and arithmetic on longer ones would take unbounded time. */
const AMOUNT = /^\d{1,78}$/;

const MOST_FEES = 10;
const LONGEST_WORD = 100;

/** Longest estimate that is believed, seconds. */
const LONGEST_ESTIMATE = 7 * 86_400;

/** Promises of an imported quote. Members that are missing or not in the interface's shape are omitted. */
export function promisedBy({ subject, raw }: ImportedQuote): Promised {
  const [source, destination] = [raw.source, raw.destination].map((end) => (isJsonObject(end) ? end : {}));
  const ends = (end: JsonObject = {}) => ({ chainId: wordOf(end.chainId), token: wordOf(end.token) });
  const members: JsonObject = {
    quote: subject,
    source: { ...ends(source), amount: amountOf(source?.amount), funder: wordOf(source?.funder) },
    destination: {
      ...ends(destination),
      amount: amountOf(destination?.amountOut),
      minimum: amountOf(destination?.minAmountOut),
      recipient: wordOf(destination?.recipient),
    },
    fees: feesOf(raw.fees),
    estimateSeconds: estimatedSeconds(raw),
    refundRecipient: wordOf(raw.refundRecipient),
    local: localHashesOf(raw).includes(foldHex(wordOf(raw.intentHash) ?? '')) ? true : null,
  };
  return PROMISED.parse(withoutNulls(members));
}

/** Most local intents of a quote that are stored. */
const MOST_LOCAL = 16;

/** Hashes, in lower case, of the local intents that an imported quote names. */
export function localHashesOf({ steps }: JsonObject): string[] {
  const hashes = (Array.isArray(steps) ? steps : []).filter(isJsonObject).flatMap(localHashes);
  return [...new Set(hashes)].slice(0, MOST_LOCAL);
}

/** Hashes, in lower case, of the intents of a step whose role is `local`. */
export function localHashes({ intents }: JsonObject): string[] {
  const list = Array.isArray(intents) ? intents.filter(isJsonObject) : [];
  return list.flatMap(({ role, intentHash }) => {
    const hash = isLocalRole(role) ? wordOf(intentHash) : null;
    return hash === null ? [] : [foldHex(hash)];
  });
}

/** True for the role of an intent that is fulfilled on its source chain. */
export function isLocalRole(role: JsonValue | undefined): boolean {
  return typeof role === 'string' && role.toLowerCase() === 'local';
}

/**
 * Compares a delivery with the quote's minimum and promised amount. Null when the amounts are of different tokens or
 * chains, or unknown. `missing`: base units below the minimum, 0 for none.
 */
export function deliveredOf(
  record: JsonObject,
  promised: Promised | null | undefined,
): { delivered: bigint; promised: bigint | null; minimum: bigint | null; missing: bigint } | null {
  const leg = readLeg(record.destinationTx, { done: true, members: [] });
  const expected = promised?.destination;
  if (leg?.amount == null || !AMOUNT.test(leg.amount) || expected === undefined) return null;
  if (leg.chainId === null || leg.chainId !== expected.chainId) return null;
  if (leg.token === null || expected.token === undefined || foldHex(leg.token) !== foldHex(expected.token)) {
    return null;
  }
  const delivered = BigInt(leg.amount);
  const minimum = expected.minimum === undefined ? null : BigInt(expected.minimum);
  return {
    delivered,
    promised: expected.amount === undefined ? null : BigInt(expected.amount),
    minimum,
    missing: minimum === null || delivered >= minimum ? 0n : minimum - delivered,
  };
}

/** A part as a share of a whole above 0, to six digits. */
export function shareOf(part: bigint, whole: bigint): number {
  return Number((part * 1_000_000n + whole / 2n) / whole) / 1_000_000;
}

function feesOf(value: JsonValue | undefined): JsonObject[] | null {
  const fees = (Array.isArray(value) ? value : []).filter(isJsonObject).slice(0, MOST_FEES);
  const read = fees.map((fee) => ({
    kind: wordOf(fee.type),
    token: wordOf(isJsonObject(fee.token) ? fee.token.address : fee.token),
    amount: amountOf(fee.amount),
  }));
  const usable = read.filter(({ kind, amount }) => kind !== null && amount !== null);
  return usable.length === 0 ? null : usable;
}

/** Estimated time until the delivery, whole seconds: the quote's own, else the sum of its steps. Null where it states none. */
export function estimatedSeconds({ estimatedFulfillTimeSec, steps }: JsonObject): number | null {
  const parts = Array.isArray(steps) ? steps : [];
  const own = secondsOf(estimatedFulfillTimeSec);
  // A sum without one of the steps would be too short.
  const seconds =
    own ??
    parts.reduce<number>(
      (sum, step) => sum + ((isJsonObject(step) ? secondsOf(step.estimatedDurationSec) : null) ?? Number.NaN),
      0,
    );
  const whole = Math.ceil(seconds);
  return whole > 0 && whole <= LONGEST_ESTIMATE ? whole : null;
}

function secondsOf(value: JsonValue | undefined): number | null {
  const text = readText(value) ?? '';
  return /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : null;
}

/** A text or number as text; null for anything else, and for text longer than any of the interface. */
export function wordOf(value: JsonValue | undefined): string | null {
  const text = readText(value);
  return text === null || text.length > LONGEST_WORD ? null : text;
}

/** A whole number of base units; null for anything else. */
export function amountOf(value: JsonValue | undefined): string | null {
  const text = readText(value);
  return text !== null && AMOUNT.test(text) ? text : null;
}

/** Removes null members, empty objects and empty lists from a value. */
export function withoutNulls(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isJsonObject(value)) return value;
  const members: JsonObject = {};
  for (const key of Object.keys(value)) {
    const member = value[key];
    if (member === null || member === undefined) continue;
    const inner = withoutNulls(member);
    if (typeof inner !== 'object' || Object.keys(inner ?? {}).length > 0) members[key] = inner;
  }
  return members;
}

/** Flag of a transfer reported as short. It never clears, since a delivered amount does not grow. */
export const SHORT = 'short';

/**
 * Event of a transfer that delivered less than its quote's minimum, once; null for any other. Amounts of different
 * tokens or chains are not compared, and a transfer that is history to every claim is not reported.
 */
export function shortEvent(
  subject: SubjectId,
  snapshot: Snapshot,
  promised: Promised | null,
): FlaggedEvent | null {
  if (promised === null || subjectKind(subject) !== 'intent' || !snapshot.reported || snapshot.salvaged)
    return null;
  if (snapshot.flags.includes(SHORT)) return null;
  const compared = deliveredOf(snapshot.record, promised);
  if (compared === null || compared.missing === 0n) return null;
  const { status } = snapshot;
  return {
    flag: SHORT,
    transition: {
      type: 'intent.short',
      status,
      previousStatus: status,
      changes: [],
      skipped: false,
      regression: false,
    },
    raw: {},
  };
}

/** Delivered amount as a share of the promised one; null when they cannot be compared. */
export function deliveredRatio(snapshot: Snapshot | null, promised: Promised | null): number | null {
  const compared = snapshot === null ? null : deliveredOf(snapshot.record, promised);
  return compared?.promised == null || compared.promised === 0n
    ? null
    : shareOf(compared.delivered, compared.promised);
}
