import type { Config } from '../config/config.ts';
import { REMOVED_KINDS, type RemovedKind } from '../config/sections/reload.ts';
import { subjectsOf } from '../domain/subjects/subscription.ts';
import type { ConfigRemoval } from '../operations/config-removal.ts';

/** Fewer than this are never too many: of four wallets one is a quarter. */
const LEAST = 3;

/** So many ids are reported of each kind. */
const MOST_IDS = 100;

/** What a config names, by kind: ids of subjects, and names of receivers. */
export type Named = Readonly<Record<RemovedKind, ReadonlySet<string>>>;

/** What of it goes: how many of how many, and the first of them. */
export type Removal = Pick<ConfigRemoval, RemovedKind>;

/** What a config names. What was made or tracked through the API is in no file. */
export function namedBy({ subscriptions, receivers }: Pick<Config, 'subscriptions' | 'receivers'>): Named {
  return named(
    subscriptions.flatMap(subjectsOf),
    receivers.map(({ name }) => name),
  );
}

/** Ids of subjects and names of receivers by kind. */
export function named(subjects: readonly string[], receivers: readonly string[]): Named {
  const isWallet = (id: string): boolean => id.startsWith('wallet:');
  return {
    wallets: new Set(subjects.filter(isWallet)),
    subjects: new Set(subjects.filter((id) => !isWallet(id))),
    receivers: new Set(receivers),
  };
}

/** What `before` names and `after` does not, where that is more than a share of any kind; null otherwise. */
export function largeRemoval(
  before: Named,
  after: Named,
  { confirmAfter }: { confirmAfter: number },
): Removal | null {
  const gone = (kind: RemovedKind) => before[kind].difference(after[kind]);
  const isLarge = REMOVED_KINDS.some((kind) => {
    const count = gone(kind).size;
    return count >= LEAST && count > confirmAfter * before[kind].size;
  });
  if (!isLarge) return null;
  const of = (kind: RemovedKind) => {
    const ids = [...gone(kind)].sort();
    return { removed: ids.length, of: before[kind].size, ids: ids.slice(0, MOST_IDS) };
  };
  return { wallets: of('wallets'), subjects: of('subjects'), receivers: of('receivers') };
}
