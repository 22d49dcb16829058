import { lookupKey } from './identifiers.ts';
import type { IntentStatus } from './record.ts';

/** Position of an intent in the lists of its wallets; only the index writes `order`. */
type IndexPosition<T> = { entry: T; wallets: string[]; status: IntentStatus; order: number };

/** One page. `before` is the place of the next page; null when there is none. */
export type Page<T> = { entries: T[]; before: number | null };

/** Query for a page: the newest change first or last, entries behind `before` (an earlier page's), at most `limit` of them. */
export type PageQuery = {
  wallet: string;
  status: IntentStatus | null;
  before: number | null;
  limit: number;
  oldestFirst?: boolean;
};

/** Intents of each wallet, all and by status, so that a page never costs more than its own length. */
export type WalletIndex<T> = {
  /** Adds an entry, or moves it to the front because it changed. `key` identifies entries. */
  put(change: { key: string; entry: T; wallets: readonly string[]; status: IntentStatus }): void;
  page(query: PageQuery): Page<T>;
};

export function createWalletIndex<T>(): WalletIndex<T> {
  // Invariant: every list ascends by `order`, which is unique and grows with every change; so the end is the newest.
  const lists = new Map<string, IndexPosition<T>[]>();
  const places = new Map<string, IndexPosition<T>>();
  let changes = 0;

  const listKey = (wallet: string, status: IntentStatus | null): string => `${status ?? 'all'} ${wallet}`;

  function append(key: string, place: IndexPosition<T>): void {
    const list = lists.get(key);
    if (list === undefined) lists.set(key, [place]);
    else list.push(place);
  }

  function remove(key: string, place: IndexPosition<T>): void {
    const list = lists.get(key);
    list?.splice(firstNotBefore(list, place.order), 1);
  }

  return {
    put({ key, entry, wallets, status }) {
      const old = places.get(key);
      if (old !== undefined) {
        for (const wallet of old.wallets) {
          remove(listKey(wallet, null), old);
          remove(listKey(wallet, old.status), old);
        }
      }
      changes += 1;
      const place = { entry, wallets: [...new Set(wallets.map(lookupKey))], status, order: changes };
      places.set(key, place);
      for (const wallet of place.wallets) {
        append(listKey(wallet, null), place);
        append(listKey(wallet, status), place);
      }
    },
    page({ wallet, status, before, limit, oldestFirst = false }) {
      const list = lists.get(listKey(lookupKey(wallet), status)) ?? [];
      if (oldestFirst) {
        const from = before === null ? 0 : firstNotBefore(list, before + 1);
        const shown = list.slice(from, from + limit);
        const isLast = from + limit >= list.length;
        return {
          entries: shown.map((place) => place.entry),
          before: isLast ? null : (shown.at(-1)?.order ?? null),
        };
      }
      const end = before === null ? list.length : firstNotBefore(list, before);
      const start = Math.max(0, end - limit);
      const shown = list.slice(start, end).reverse();
      const last = shown.at(-1);
      return {
        entries: shown.map((place) => place.entry),
        before: start === 0 || last === undefined ? null : last.order,
      };
    },
  };
}

/** Index of the first place with at least this `order`. */
function firstNotBefore(list: readonly { order: number }[], order: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((list[middle]?.order ?? order) < order) low = middle + 1;
    else high = middle;
  }
  return low;
}
