import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { wordOf } from '../quotes/promised.ts';
import { readText } from '../transfers/transfer.ts';

/** A failed part of a record. `key` identifies it across records; `path` is its position in this one. */
export type Failure = {
  key: string;
  path: string;
  status: string;
  chainId: string | null;
  intentHash: string | null;
  reason: string | null;
};

/** Statuses of a failure. The interface names only `failed` of a sub-status, and documents no statuses of a step. */
const FAILED = /^(failed|failure|error|errored|reverted|rejected|expired|cancell?ed|refundable)$/i;

const MOST = 10;
const LONGEST_REASON = 300;

/** The failed steps, intents and sub-statuses of a record, at most ten. */
export function failures(record: JsonObject): Failure[] {
  return allFailures(record).slice(0, MOST);
}

function allFailures(record: JsonObject): Failure[] {
  return ['steps', 'intents', 'subStatuses'].flatMap((list) => elements(record, list)).flatMap(failureOf);
}

type RecordElement = { list: string; path: string; index: number; value: JsonObject };

function elements(record: JsonObject, list: string, prefix = ''): RecordElement[] {
  const values = record[list];
  if (!Array.isArray(values)) return [];
  return values.flatMap((value, index) => {
    if (!isJsonObject(value)) return [];
    const path = `${prefix}${list}[${index}]`;
    const inner = prefix === '' && list !== 'intents' ? elements(value, 'intents', `${path}.`) : [];
    return [{ list, path, index, value }, ...inner];
  });
}

function failureOf({ list, path, index, value }: RecordElement): Failure[] {
  const status = [value.status, value.state].map(wordOf).find((word) => word !== null && FAILED.test(word));
  if (status == null) return [];
  const chainId = wordOf(value.chainId);
  const intentHash = wordOf(value.intentHash);
  // An index identifies little: sub-statuses are a set, and a step may come before others.
  const name = list === 'subStatuses' ? chainId : intentHash;
  const type = list === 'steps' ? wordOf(value.type) : null;
  const key = `${list}:${type ?? ''}:${name ?? index}`;
  return [{ key, path, status, chainId, intentHash, reason: reasonOf(value) }];
}

function reasonOf(value: JsonObject): string | null {
  const texts = ['error', 'reason', 'errorMessage', 'message'].map((name) => shortText(value[name]));
  return texts.find((text) => text !== null) ?? null;
}

/** Error text of a record; null without one. */
export function errorText({ error }: JsonObject): string | null {
  return shortText(isJsonObject(error) ? (error.message ?? error.detail) : error);
}

function shortText(value: JsonValue | undefined): string | null {
  const text = readText(value);
  return text === null ? null : text.slice(0, LONGEST_REASON);
}

/**
 * Name of an event whose status did not change: a part failed, or the record gained an error text or a refund
 * transaction; null for anything else.
 */
export function partialFailure(
  stored: JsonObject,
  merged: JsonObject,
  changes: readonly string[],
): 'step_failed' | 'error' | 'refund_sent' | null {
  // Unreadable members are stored without an event, and are not news here either.
  const changed = new Set(changes.map((path) => path.replace(/[.[].*$/s, '')));
  const [before, after] = [stored, merged].map((record) =>
    Object.fromEntries(Object.entries(record).filter(([key]) => changed.has(key))),
  );
  if (before === undefined || after === undefined) return null;
  if (hasMore(allFailures(before), allFailures(after))) return 'step_failed';
  if (errorText(before) === null && errorText(after) !== null) return 'error';
  return refunds(after) > refunds(before) ? 'refund_sent' : null;
}

function hasMore(before: readonly Failure[], after: readonly Failure[]): boolean {
  const counts = new Map<string, number>();
  for (const { key } of before) counts.set(key, (counts.get(key) ?? 0) + 1);
  return after.some(({ key }) => {
    const left = (counts.get(key) ?? 0) - 1;
    counts.set(key, left);
    return left < 0;
  });
}

function refunds({ steps }: JsonObject): number {
  return (Array.isArray(steps) ? steps : []).filter((step) => {
    const transactions = isJsonObject(step) ? step.transactions : undefined;
    const refunded = isJsonObject(transactions) ? transactions.refunded : undefined;
    return isJsonObject(refunded) && readText(refunded.txHash) !== null;
  }).length;
}
