import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { isEmpty } from './leaves.ts';

/**
 * So much is stored of the old values of one event, in characters of JSON, and of one of them. The log holds every event for
 * the retention, and what is longer is seldom read.
 */
const MOST_OF_ALL = 2_000;
const MOST_OF_ONE = 1_000;

/**
 * The value at a path as `diffRecords` writes it (`steps[0].status`); null where there is none, undefined where the path
 * does not lead through this record. A member whose name has a dot is found as well.
 */
function valueAt(record: JsonValue, path: string): JsonValue | undefined {
  if (path === '') return record;
  if (Array.isArray(record)) {
    const [whole, index] = /^\[(\d{1,9})\]/.exec(path) ?? [];
    if (whole === undefined) return undefined;
    const element = record[Number(index)];
    return element === undefined ? null : valueAt(element, withoutDot(path.slice(whole.length)));
  }
  if (!isJsonObject(record)) return null;
  // The longest name first. The path is cut, not every name tried: a record may have any number of members.
  for (let end = path.length; end > 0; end = lastCut(path, end - 1)) {
    const key = path.slice(0, end);
    if (!Object.hasOwn(record, key)) continue;
    const found = valueAt(record[key] ?? null, withoutDot(path.slice(end)));
    if (found !== undefined) return found;
  }
  return null;
}

/** The place where the name of a member may end, at or before a place: at a dot or a bracket; -1 for nowhere. */
function lastCut(path: string, from: number): number {
  return Math.max(path.lastIndexOf('.', from), path.lastIndexOf('[', from));
}

function withoutDot(path: string): string {
  return path.startsWith('.') ? path.slice(1) : path;
}

/** The values at some paths, null for one that is too long to keep; what is not there, or says nothing, is left out. */
export function valuesAt(record: JsonObject, paths: readonly string[]): JsonObject {
  let left = MOST_OF_ALL;
  return Object.fromEntries(
    paths.flatMap((path) => {
      if (path.length > MOST_OF_ONE) return [[path, null]];
      const value = valueAt(record, path) ?? null;
      if (isEmpty(value)) return [];
      const { length } = canonicalJson(value);
      if (length > Math.min(left, MOST_OF_ONE)) return [[path, null]];
      left -= length;
      return [[path, value]];
    }),
  );
}
