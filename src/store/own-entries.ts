import { BoundedMap, bytesOfTexts, CACHES } from '../domain/caches.ts';
import type { Event } from '../domain/events/event.ts';
import { type Claim, isHistoryFor } from '../domain/subjects/subscription.ts';
import { compareEntries, type ExpectedEntry, type StoredEntry, shortKey } from './log-entry.ts';

/** Most entries that are announced at once: the script that opens them blocks Redis. */
const MOST_EXPECTED = 100;

/**
 * The entries that this process writes to the log, in order. Its relay opens them without waiting until it reads them; it does so
 * only where nothing else is between them and the entry that it reached.
 *
 *   State      Entered when                                 Left when
 *   announced  its commit is sent next                      this turn of the event loop ends, and the relay may open it on the
 *                                                           way ─► under way
 *   under way  the turn ended                               the commit is answered: with an entry ─► written, else ─► gone
 *   written    the entry is in the log                      the relay removes it, and opens it unless that was done on the way
 */
export class OwnEntries {
  readonly #entries = new BoundedMap<string, StoredEntry>({
    ...CACHES.ownEntries,
    bytesOf: (id, { fields }) => bytesOfTexts(id, ...fields),
  });
  #came = Promise.withResolvers<void>();
  /** Those of commits that were sent in this turn of the event loop; null for one that cannot be foretold. */
  #expected: (ExpectedEntry | null)[] = [];
  /** Commits with an event that were sent and not answered. */
  #underWay = 0;
  #listener: ((entries: readonly ExpectedEntry[]) => void) | null = null;

  /** Sets who is called with the entries of each turn, once all their commits were sent, unless others come before them. */
  onExpected(listener: (entries: readonly ExpectedEntry[]) => void): void {
    this.#listener = listener;
  }

  /** Announces the entry of a commit that is sent next. Returns what is to be called when that is answered. */
  expect(entry: ExpectedEntry | null): () => void {
    // Immediates come once the turn is over, and its commits are sent.
    if (this.#expected.length === 0) setImmediate(() => this.#announce());
    this.#expected.push(entry);
    this.#underWay += 1;
    return () => {
      this.#underWay -= 1;
    };
  }

  #announce(): void {
    const all = this.#expected;
    this.#expected = [];
    const expected = all.filter((entry) => entry !== null);
    const areNext = this.#underWay === all.length && this.#entries.size === 0;
    if (areNext && expected.length === all.length && all.length <= MOST_EXPECTED) this.#listener?.(expected);
  }

  add(entry: StoredEntry): void {
    if (!this.#entries.fits(entry.id, entry)) return;
    this.#entries.set(entry.id, entry);
    this.#came.resolve();
  }

  /** Resolves once there are some, for the last caller alone: nothing of the waits before it stays in memory. */
  async came(): Promise<void> {
    if (this.#entries.size === 0) this.#came = Promise.withResolvers();
    return this.#came.promise;
  }

  /** Removes all, and returns those behind a place in the log. */
  take(after: string): StoredEntry[] {
    const all = [...this.#entries.entries()].map(([, entry]) => entry);
    this.#entries.clear();
    this.#came = Promise.withResolvers();
    return all.filter(({ id }) => compareEntries(id, after) > 0);
  }
}

/** The state by which a commit was decided, and its event. */
type EventCommit = {
  before?: { claims: readonly Claim[] };
  claims: readonly Claim[];
  event: { event: Event; updatedAt: number | null; first: boolean; claimKeys: string[] | null };
};

/**
 * Returns the entry that a commit writes (commands/commit-12.lua) where its subject is as it was decided by, and none of its
 * subscription keys has changed; null where that is uncertain. `packed`: its event, as it is stored.
 */
export function expectedEntry({ before, claims, event }: EventCommit, packed: string): ExpectedEntry | null {
  const { data } = event.event;
  if (before === undefined || event.claimKeys !== null || data.proof !== undefined) return null;
  const fresh = new Set(claims.map(({ key }) => key));
  const others = event.first ? [] : before.claims.filter(({ key, served }) => served && !fresh.has(key));
  const all = [...claims.filter((claim) => !isHistoryFor(claim, event.updatedAt)), ...others];
  const claimKeys = all.map(({ key }) => shortKey(key, data.subject.id));
  return { event: event.event, packed, claimKeys };
}
