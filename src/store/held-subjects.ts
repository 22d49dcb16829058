import { BoundedMap, bytesOfTexts, CACHES } from '../domain/caches.ts';
import type { SubjectId } from '../domain/subjects/subject.ts';
import type { Claim } from '../domain/subjects/subscription.ts';

/** A subject as Redis stores it: the fields of its snapshot, and its claims by subscription key. */
type StoredFields = { snapshot: { [field: string]: string }; claims: { [key: string]: string } };

/** The state by which a commit was decided that was not read since its response, as commands/commit-12.lua compares it. */
export type Basis = { call: string; unconfirmed: string; claims: readonly string[] };

const UNSEEN: StoredFields = { snapshot: {}, claims: {} };

/**
 * The transfers under way whose last commit this process made, as that left them in Redis. The next commit is decided by them
 * without a read: its script compares, and stores nothing where another process, a poll or a reload has changed them since.
 */
export class HeldSubjects {
  readonly #held = new BoundedMap<SubjectId, StoredFields>({
    ...CACHES.heldSubjects,
    bytesOf: (subject, { snapshot, claims }) =>
      bytesOfTexts(subject, ...Object.entries(snapshot).flat(), ...Object.entries(claims).flat()),
  });

  /** Returns the fields of a subject; none of one that seems new, null for one that must be read. */
  get(subject: SubjectId, { mayBeNew }: { mayBeNew: boolean }): StoredFields | null {
    return this.#held.get(subject) ?? (mayBeNew ? UNSEEN : null);
  }

  drop(subject: SubjectId): void {
    this.#held.delete(subject);
  }

  /** Notes a commit of an event for all claims. `fields` are those of its snapshot. */
  note(
    subject: SubjectId,
    { call, commit, unconfirmed, fields }: CommitTexts,
    claims: readonly Claim[],
  ): void {
    const snapshot: { [field: string]: string } = { call, commit, eventId: '' };
    for (let index = 0; index + 1 < fields.length; index += 2) {
      snapshot[fields[index] ?? ''] = fields[index + 1] ?? '';
    }
    if (unconfirmed !== '') snapshot.unconfirmed = unconfirmed;
    this.#held.set(subject, { snapshot, claims: Object.fromEntries(claims.map(claimFields)) });
  }
}

/** The texts of a commit: those of `call` and `commit` of its script, the stored doubt or "", and fields with their values. */
type CommitTexts = { call: string; commit: string; unconfirmed: string; fields: readonly string[] };

/** Returns what the script of the next commit compares. */
export function basisOf({ snapshot, claims }: StoredFields): Basis {
  const { call = '', unconfirmed = '' } = snapshot;
  return { call, unconfirmed, claims: Object.entries(claims).flat() };
}

function claimFields({ key, atMs, historyBefore, served }: Claim): [key: string, value: string] {
  return [key, `${atMs}:${historyBefore ?? ''}:${served ? '1' : '0'}`];
}
