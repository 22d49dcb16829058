import { BoundedMap, bytesOfTexts, CACHES } from '../domain/caches.ts';
import type { Snapshot, Unconfirmed } from '../domain/subjects/record.ts';
import { type SubjectId, subjectKind } from '../domain/subjects/subject.ts';
import { type Claim, claimsAfterEvent } from '../domain/subjects/subscription.ts';

/** A subject as Redis stores it: the fields of its snapshot, and its claims by subscription key. */
type StoredFields = { snapshot: { [field: string]: string }; claims: { [key: string]: string } };

/** The state by which a commit was decided that was not read since its response, as commands/commit-12.lua compares it. */
export type Basis = { call: string; unconfirmed: string; claims: readonly string[] };

/** The state by which a commit was decided, and what it stores (see `Commit`). */
type NotedCommit = {
  subject: SubjectId;
  before?: { snapshot: Snapshot | null; claims: readonly Claim[]; promised: unknown };
  event?: { claimKeys: string[] | null };
  unconfirmed?: Unconfirmed | 'clear';
  claims: readonly Claim[];
};

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

  /**
   * Notes a commit. `stored`: the texts of `call` and `commit` of its script, and the fields of its snapshot, each followed by its
   * text; null where the next commit must read the subject. That must be so, too, where a quote has promised something, or some
   * claims got no event.
   */
  note(
    { subject, before, event, unconfirmed, claims }: NotedCommit,
    stored: { call: string; commit: string; fields: readonly string[] } | null,
  ): void {
    const isPlain = before?.promised === null && event?.claimKeys === null;
    if (stored === null || !isPlain || subjectKind(subject) !== 'intent') {
      this.#held.delete(subject);
      return;
    }
    const { fields, ...texts } = stored;
    // Its value only shows that there was an event for all claims.
    const snapshot: { [field: string]: string } = { ...texts, eventId: '' };
    for (let index = 0; index + 1 < fields.length; index += 2) {
      snapshot[fields[index] ?? ''] = fields[index + 1] ?? '';
    }
    const doubt = unconfirmed ?? before.snapshot?.unconfirmed ?? 'clear';
    if (doubt !== 'clear') snapshot.unconfirmed = unconfirmedText(doubt);
    const all = claimsAfterEvent(before.claims, claims);
    this.#held.set(subject, { snapshot, claims: Object.fromEntries(all.map(claimFields)) });
  }
}

/** Returns what the script of the next commit compares. */
export function basisOf({ snapshot, claims }: StoredFields): Basis {
  const { call = '', unconfirmed = '' } = snapshot;
  return { call, unconfirmed, claims: Object.entries(claims).flat() };
}

/** Returns the text of a doubt in the snapshot's hash; "-" clears one, "" leaves it. */
export function unconfirmedText(unconfirmed: Unconfirmed | 'clear' | undefined): string {
  if (unconfirmed === undefined) return '';
  return unconfirmed === 'clear' ? '-' : `${unconfirmed.sinceMs}|${unconfirmed.key}`;
}

function claimFields({ key, atMs, historyBefore, served }: Claim): [key: string, value: string] {
  return [key, `${atMs}:${historyBefore ?? ''}:${served ? '1' : '0'}`];
}
