import { BoundedMap, CACHES } from '../../domain/caches.ts';
import type { Listing } from '../../domain/cadence/wait.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';

/** A record of a page that would change nothing if it were ingested again. `readAtMs`: its last ingestion, Redis time. */
export type SeenRecord = {
  subject: SubjectId;
  status: string;
  updatedAt: number | null;
  isOpen: boolean;
  readAtMs: number;
};

/**
 * The page that a listing showed last. `body`: digest of its body, null where its results must be read even in an equal one;
 * `content`: digest of all that counts in it; `isSettled`: ingesting it again would change nothing; `records`: those of which
 * this is so, by the digests of their texts; `atMs`: Redis time.
 */
export type SeenPage = {
  body: string | null;
  content: string;
  isSettled: boolean;
  nextCursor: string | null;
  records: ReadonlyMap<string, SeenRecord>;
  atMs: number;
};

/** Age at which the record of an unchanged text is ingested again, and at which an unchanged page is. */
export const INGESTED_EVERY_MS = 300_000;

/** Bytes of an entry beside its cursor, and of each of its records beside its texts, as V8 stores them. */
const PAGE_BYTES = 400;
const RECORD_BYTES = 250;

/** Bytes of a character of a text that may be of any length and script: the upstream chooses cursors and statuses. */
const CHARACTER_BYTES = 2;

/**
 * The last pages of wallets in memory, up to a number of bytes. A full store takes no further page until one is too old: polls
 * come in turns, so that the oldest page is the next to be polled. Redis decides whether a page still counts (see
 * `printOf` in poll-wallet.ts).
 */
export class SeenPages {
  readonly #pages: BoundedMap<string, SeenPage>;

  constructor({ bytes }: { bytes: number } = CACHES.seenPages) {
    this.#pages = new BoundedMap({ entries: CACHES.seenPages.entries, bytes, bytesOf });
  }

  get(wallet: SubjectId, listing: Listing): SeenPage | null {
    return this.#pages.peek(`${listing}:${wallet}`) ?? null;
  }

  set(wallet: SubjectId, listing: Listing, page: SeenPage): void {
    const key = `${listing}:${wallet}`;
    this.#pages.delete(key);
    for (const [oldest, { atMs }] of this.#pages.entries()) {
      if (this.#pages.fits(key, page) || Math.abs(page.atMs - atMs) < 2 * INGESTED_EVERY_MS) break;
      this.#pages.delete(oldest);
    }
    if (this.#pages.fits(key, page)) this.#pages.set(key, page);
  }

  remove(wallet: SubjectId, listing: Listing): void {
    this.#pages.delete(`${listing}:${wallet}`);
  }
}

function bytesOf(_key: string, { nextCursor, records }: SeenPage): number {
  let bytes = PAGE_BYTES + CHARACTER_BYTES * (nextCursor?.length ?? 0);
  for (const { subject, status } of records.values()) {
    bytes += RECORD_BYTES + subject.length + CHARACTER_BYTES * status.length;
  }
  return bytes;
}
