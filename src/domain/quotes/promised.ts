import { PROMISED, type Promised } from '../events/event-schema.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { foldHex } from '../subjects/subject.ts';
import { readLeg, readText } from '../transfers/transfer.ts';
import type { ImportedQuote } from './imported-quote.ts';

/** An amount with more digits than any token has is none, and arithmetic on it would take time without bound. */
const AMOUNT = /^\d{1,78}$/;

const MOST_FEES = 10;
const LONGEST_WORD = 100;

/** The longest time that is believed, seconds. */
const LONGEST_ESTIMATE = 7 * 86_400;

/** What an imported quote promises; what it does not say, or not in the shape of the interface, is left out. */
export function promisedBy({ subject, raw }: ImportedQuote): Promised {
  const [source, destination] = [raw.source, raw.destination].map((end) => (isJsonObject(end) ? end : {}));
  const ends = (end: JsonObject = {}) => ({ chainId: wordOf(end.chainId), token: wordOf(end.token) });
  const parts: JsonObject = {
    quote: subject,
    source: { ...ends(source), amount: amountOf(source?.amount), funder: wordOf(source?.funder) },
    destination: {
      ...ends(destination),
      amount: amountOf(destination?.amountOut),
      minimum: amountOf(destination?.minAmountOut),
      recipient: wordOf(destination?.recipient),
    },
    fees: feesOf(raw.fees),
    estimateSeconds: estimateOf(raw.estimatedFulfillTimeSec),
  };
  return PROMISED.parse(withoutNulls(parts));
}

/**
 * How a delivery compares with the quote's minimum and with what it promised; null where the amounts are not of the same
 * token on the same chain, or not all known. `missing`: base units by which less was delivered than the minimum, 0 for none.
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
    token: wordOf(fee.token),
    amount: amountOf(fee.amount),
  }));
  const usable = read.filter(({ kind, amount }) => kind !== null && amount !== null);
  return usable.length === 0 ? null : usable;
}

function estimateOf(value: JsonValue | undefined): number | null {
  const text = readText(value) ?? '';
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  return seconds > 0 && seconds <= LONGEST_ESTIMATE ? seconds : null;
}

/** A text or number as text; null for anything else, and for what is too long to be one of the interface's. */
export function wordOf(value: JsonValue | undefined): string | null {
  const text = readText(value);
  return text === null || text.length > LONGEST_WORD ? null : text;
}

/** A whole number of base units; null for anything else. */
export function amountOf(value: JsonValue | undefined): string | null {
  const text = readText(value);
  return text !== null && AMOUNT.test(text) ? text : null;
}

/** A value without the members of objects that are null, or are objects or lists with nothing in them. */
export function withoutNulls(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value).flatMap(([key, member]): [string, JsonValue][] => {
    const inner = member === null ? null : withoutNulls(member);
    const isNothing = inner === null || (typeof inner === 'object' && Object.keys(inner).length === 0);
    return isNothing ? [] : [[key, inner]];
  });
  return Object.fromEntries(members);
}
