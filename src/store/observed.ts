import { type OpenTransfers, openField } from './wallets.ts';

/** Changes of the stored open transfers of a wallet. */
type OpenChanges = {
  open: { readonly [subject: string]: string };
  unread?: { open: { readonly [subject: string]: string }; moves: number };
  ended: readonly string[];
};

/**
 * The observations of a page's poll, stored with the end of the poll. `unread`: open transfers as they were before its request,
 * which count where no other commit about the wallet's transfers came since (`moves` in wallets.ts). `after`: where
 * that changes them, all open transfers then, with their new version and the one before.
 */
export type PageFacts = OpenChanges & {
  facts: { readonly [field: string]: number | string };
  after?: OpenTransfers & { before: string };
  /**
   * Subjects of the page; those that need no own poll for `coverMs`, nor then for their virtual wait, and `latestMs` at most.
   */
  shown: readonly string[];
  covered: readonly {
    subject: string;
    alarmMs: number | null;
    virtualSeconds: number;
    latestMs: number;
  }[];
  coverMs: number;
};

export const NOTHING_OBSERVED: PageFacts = {
  facts: {},
  open: {},
  ended: [],
  shown: [],
  covered: [],
  coverMs: 0,
};

/** True where a poll changes the stored open transfers of its wallet. */
export function isOpenChanged({ open, unread, ended }: OpenChanges): boolean {
  const isAny = (transfers: object): boolean => Object.keys(transfers).length > 0;
  return isAny(open) || isAny(unread?.open ?? {}) || ended.length > 0;
}

/** Observations in the shape of the script that ends a poll. */
export function flatObserved(observed: PageFacts): object {
  return {
    facts: flat(observed.facts),
    open: flatOpen(observed.open),
    ...(observed.unread === undefined
      ? {}
      : { unread: flatOpen(observed.unread.open), moves: observed.unread.moves }),
    ended: observed.ended.map(openField),
    ...(observed.after === undefined ? {} : { version: [observed.after.before, observed.after.version] }),
    shown: observed.shown,
    covered: observed.covered.flatMap(({ subject, alarmMs, virtualSeconds, latestMs }) => [
      subject,
      alarmMs === null ? '' : String(alarmMs),
      virtualSeconds,
      latestMs,
    ]),
    coverMs: observed.coverMs,
  };
}

function flatOpen(open: { readonly [subject: string]: string }): string[] {
  return Object.entries(open).flatMap(([subject, text]) => [openField(subject), text]);
}

function flat(fields: { readonly [field: string]: number | string }): string[] {
  return Object.entries(fields).flatMap(([field, value]) => [field, String(value)]);
}
