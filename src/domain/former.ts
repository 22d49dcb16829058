import { sha256, stringToBytes } from 'viem';
import type { Accepted } from './decide.ts';
import { isEmpty } from './fold.ts';
import type { JsonObject } from './json.ts';
import { leavesOf, setNames } from './leaves.ts';
import { statusMember } from './lifecycle.ts';
import type { Snapshot } from './record.ts';
import { type SubjectId, subjectKind } from './subject.ts';

/** How many former values of a subject are remembered at most, and how many of one change. */
const MOST = 128;
const MOST_OF_ONE_CHANGE = 32;

/**
 * The values that a subject has left at its present `updatedAt`, as hashes, the latest last: replicas that lag show them
 * again. Nothing is remembered over a newer `updatedAt`, for that orders answers better.
 */
export function formerAfter(before: Snapshot | null, accepted: Accepted, subject: SubjectId): string[] {
  if (before === null || subjectKind(subject) === 'route') return [];
  const [from, to] = [before.updatedAt, accepted.updatedAt];
  if (from !== null && to !== null && from !== to) return [];
  const [stored, now] = [valuesOf(subject, before), valuesOf(subject, accepted)];
  // The status comes first, and so is forgotten last.
  const left = [...stored.difference(now)].slice(0, MOST_OF_ONE_CHANGE).map(hashOf).reverse();
  if (left.length === 0 && before.former.length === 0) return [];
  const present = new Set([...left, ...[...now.difference(stored)].map(hashOf)]);
  return [...before.former.filter((hash) => !present.has(hash)), ...left].slice(-MOST);
}

/** The former values to which a subject would return, as hashes, the status first; empty when it would to none. */
export function returnedValues(snapshot: Snapshot, accepted: Accepted, subject: SubjectId): string[] {
  if (snapshot.former.length === 0) return [];
  const former = new Set(snapshot.former);
  const entered = valuesOf(subject, accepted).difference(valuesOf(subject, snapshot));
  return [...entered].map(hashOf).filter((hash) => former.has(hash));
}

/** All that is shown of a subject but its id and time, the status first. */
function valuesOf(subject: SubjectId, { status, record }: Pick<Accepted, 'status' | 'record'>): Set<string> {
  const apart = new Set(['id', 'updatedAt', statusMember(subject)]);
  const values = new Set([`status=${status.toLowerCase()}`]);
  // What several elements of one name show counts once for each of them.
  const times = new Map<string, number>();
  for (const [key, value] of Object.entries(record)) {
    if (apart.has(key)) continue;
    const names = setNames(key, { top: true });
    const shown: JsonObject = { [key]: value };
    if (!Array.isArray(value) || names === undefined) {
      for (const leaf of leavesOf(shown)) values.add(leaf);
      continue;
    }
    for (const element of value) {
      if (isEmpty(element)) continue;
      const prefix = `${JSON.stringify(key)} ${names(element)} `;
      for (const leaf of leavesOf(element)) {
        const count = (times.get(prefix + leaf) ?? 0) + 1;
        times.set(prefix + leaf, count);
        values.add(`${prefix}${leaf} ${count}`);
      }
    }
  }
  return values;
}

/** 64 bits, in hex. */
function hashOf(value: string): string {
  return sha256(stringToBytes(value)).slice(2, 18);
}
