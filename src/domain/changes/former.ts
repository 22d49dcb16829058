import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { statusMember, UNKNOWN } from '../subjects/kinds.ts';
import type { Snapshot } from '../subjects/record.ts';
import { type SubjectId, subjectKind } from '../subjects/subject.ts';
import type { Accepted } from './decision.ts';
import { fold, isEmpty, leavesOf, type NameElement, setNames, sortedFold } from './leaves.ts';

const MOST = 128;
const MOST_OF_ONE_CHANGE = 32;

type State = { status: string; record: JsonObject };

/** Marks a hash of an earlier `updatedAt`. It counts only for answers without a time: time orders the others better. */
const EARLIER = '<';

/** Most of them: in Redis a hash with a value of more than 64 bytes takes twice the memory. */
const MOST_EARLIER = 2;

/**
 * Hashes of the values and whole answers that a subject had before, the latest last: replicas that lag show them again. Those of
 * its present `updatedAt` come unmarked. A status that polls have shown and not confirmed is one of them.
 */
export function formerAfter(before: Snapshot | null, accepted: Accepted, subject: SubjectId): string[] {
  if (before === null || subjectKind(subject) === 'route') return [];
  const order = orderOf(before.updatedAt, accepted.updatedAt);
  const { left, entered } =
    order === 'newer' ? leftInTime(before, accepted) : changedValues(before, accepted, subject);
  const latest = left.map(hashOf).reverse();
  const held = heldStatus(before);
  const shown = [...before.former, ...(held === null ? [] : [held]), ...latest];
  const current = new Set([...entered, statusValue(accepted.status)].map(hashOf));
  const all = shown.map((hash) => marked(hash, order)).filter((hash) => !current.has(bare(hash)));
  // The record may have more than the answer, which is what a replica shows.
  const own = accepted.answered === undefined ? [] : [hashOf(wholeOf(accepted.answered))];
  const hashes = latestOfEach([...all, ...own]);
  const earlier = hashes.filter((hash) => hash.startsWith(EARLIER)).slice(-MOST_EARLIER);
  return [...earlier, ...hashes.filter((hash) => !hash.startsWith(EARLIER))].slice(-MOST);
}

/** Behind a newer time nothing but an answer without a time is compared: the former status is enough, else the whole answer. */
function leftInTime(before: State, { status }: Accepted): { left: string[]; entered: string[] } {
  const former = statusValue(before.status);
  return { left: [former === statusValue(status) ? wholeOf(before.record) : former], entered: [] };
}

/** The values of one change; the status comes first, and so is removed last. */
function changedValues(
  before: State,
  accepted: Accepted,
  subject: SubjectId,
): { left: string[]; entered: string[] } {
  const { left, entered } = valuesBetween(before, accepted, subject);
  return { left: [...left.slice(0, MOST_OF_ONE_CHANGE), wholeOf(before.record)], entered };
}

function statusValue(status: string): string {
  return `status=${status.toLowerCase()}`;
}

function orderOf(from: number | null, to: number | null): 'newer' | 'older' | 'same' {
  if (from === null || to === null || from === to) return 'same';
  return from < to ? 'newer' : 'older';
}

/** Nothing that was shown before a step back in time is earlier than the state behind it. */
function marked(hash: string, order: ReturnType<typeof orderOf>): string {
  if (order === 'same') return hash;
  return order === 'newer' ? EARLIER + bare(hash) : bare(hash);
}

function bare(hash: string): string {
  return hash.startsWith(EARLIER) ? hash.slice(EARLIER.length) : hash;
}

function latestOfEach(hashes: readonly string[]): string[] {
  const latest = new Map<string, string>();
  for (const hash of hashes) {
    latest.delete(bare(hash));
    latest.set(bare(hash), hash);
  }
  return [...latest.values()];
}

/** The status of an answer that is not confirmed; its key has the status and the time, or is a hash of the list. */
function heldStatus({ unconfirmed, updatedAt }: Snapshot): string | null {
  const { key } = unconfirmed ?? { key: '' };
  const at = key.lastIndexOf('@');
  const [status, time] = [key.slice(0, Math.max(0, at)), key.slice(at + 1)];
  if (at === -1 || status === UNKNOWN) return null;
  const hash = hashOf(statusValue(status));
  return time !== '' && orderOf(Number(time), updatedAt) === 'newer' ? EARLIER + hash : hash;
}

/**
 * Hashes of the former values to which a subject would return, the status first; empty for none. `answered` is the whole answer
 * that would do so: one that was a former state whole brings nothing new, whatever it makes of the elements of a set. `isTimed`:
 * it and the subject have a time.
 */
export function returnedValues(
  snapshot: Snapshot,
  state: State,
  { subject, answered, isTimed }: { subject: SubjectId; answered: JsonObject; isTimed: boolean },
): string[] {
  if (snapshot.former.length === 0) return [];
  const former = new Set(isTimed ? snapshot.former : snapshot.former.map(bare));
  const { entered } = valuesBetween(snapshot, state, subject);
  return [...entered, wholeOf(answered)].map(hashOf).filter((hash) => former.has(hash));
}

function wholeOf(record: JsonObject): string {
  const { id: _id, updatedAt: _updatedAt, ...rest } = record;
  return `whole ${fold(rest)}`;
}

/** The values that only one of two states has, the status first. Id and time do not count. */
function valuesBetween(from: State, to: State, subject: SubjectId): { left: string[]; entered: string[] } {
  const apart = new Set(['id', 'updatedAt', statusMember(subject)]);
  const before = new Set([statusValue(from.status)]);
  const after = new Set([statusValue(to.status)]);
  for (const key of Object.keys({ ...from.record, ...to.record })) {
    if (apart.has(key)) continue;
    const [stored, answered] = [from, to].map(({ record }) =>
      Object.hasOwn(record, key) ? record[key] : null,
    );
    addValues(before, key, stored ?? null, answered ?? null);
    addValues(after, key, answered ?? null, stored ?? null);
  }
  return { left: [...before.difference(after)], entered: [...after.difference(before)] };
}

/** Adds the values of a member. Of a set, only elements that the other state does not have unchanged. */
function addValues(values: Set<string>, key: string, value: JsonValue, other: JsonValue): void {
  if (isEmpty(value)) return;
  const path = JSON.stringify(key);
  const nameElement = setNames(key, { top: true });
  if (nameElement === undefined || !Array.isArray(value)) {
    for (const leaf of leavesOf(value)) values.add(path + leaf);
    return;
  }
  values.add(`${path}[]`);
  const others = new Set((Array.isArray(other) ? other : []).map(fold));
  const elements = value.filter((element) => !isEmpty(element) && !others.has(fold(element)));
  for (const text of elementValues(elements, nameElement)) values.add(`${path} ${text}`);
}

/**
 * The values of elements, each counted twice: by the element's name, since an answer may omit the quotes; and by name
 * and quotes, since another element of the name may have the same value.
 */
function elementValues(elements: readonly JsonValue[], nameElement: NameElement): string[] {
  const times = new Map<string, number>();
  return elements.flatMap((element) => {
    const leaves = [...leavesOf(element)];
    const name = nameElement(element);
    const quotes = isJsonObject(element) ? sortedFold(element.quoteIds) : '';
    return [`${name} `, `${name} ${quotes} `].flatMap((prefix) =>
      leaves.map((leaf) => {
        const count = (times.get(prefix + leaf) ?? 0) + 1;
        times.set(prefix + leaf, count);
        return `${prefix}${leaf} ${count}`;
      }),
    );
  });
}

/** 64 bits of FNV-1a over the text in both directions. A collision costs one more poll, so a cheap hash is enough. */
function hashOf(value: string): string {
  let [forward, backward] = [0x811c9dc5, 0x811c9dc5];
  for (let at = 0; at < value.length; at += 1) {
    forward = Math.imul(forward ^ value.charCodeAt(at), 0x01000193);
    backward = Math.imul(backward ^ value.charCodeAt(value.length - 1 - at), 0x01000193);
  }
  return `${(forward >>> 0).toString(36)}.${(backward >>> 0).toString(36)}`;
}
