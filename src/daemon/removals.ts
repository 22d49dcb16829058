import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { REMOVED_KINDS, type RemovedKind } from '../config/sections/process.ts';
import { subjectsOf } from '../domain/subjects/subscription.ts';
import type { ConfigChanges, ConfigRemoval } from '../operations/config-state.ts';
import { isoTime } from '../operations/moment.ts';
import type { ConfirmationStore } from '../store/confirmations.ts';
import type { Registry } from '../store/registry.ts';

/** A smaller removal is never large: of four wallets one is a quarter. */
const LEAST = 3;

const MOST_IDS = 100;

type Names = Readonly<Record<RemovedKind, ReadonlySet<string>>>;

/** Collects the names in a config. No file names entries that were added or tracked through the API. */
export function namedBy({ subscriptions, receivers }: Config): Names {
  return named(
    subscriptions.flatMap(subjectsOf),
    receivers.map(({ name }) => name),
  );
}

/** Groups ids of subjects and names of receivers by kind. */
export function named(subjects: readonly string[], receivers: readonly string[]): Names {
  const isWallet = (id: string): boolean => id.startsWith('wallet:');
  return {
    wallets: new Set(subjects.filter(isWallet)),
    subjects: new Set(subjects.filter((id) => !isWallet(id))),
    receivers: new Set(receivers),
  };
}

/** The names that `before` has and `after` lacks, where they exceed the share in any kind; null otherwise. */
export function largeRemoval(
  before: Names,
  after: Names,
  { confirmAfter }: { confirmAfter: number },
): Pick<ConfigRemoval, RemovedKind> | null {
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

const MOST_LOGGED = 20;

/** Formats changes for the log, without empty parts and with shortened lists. */
export function changesLine({ subjects, subscriptions, receivers, settings }: ConfigChanges): object {
  const lists = { subscriptions, receivers };
  const named = Object.entries(lists).flatMap(([what, changes]) =>
    Object.entries(changes).flatMap(([how, names]) =>
      names.length === 0 ? [] : [[`${what}_${how}`, shortened(names, names.length)] as const],
    ),
  );
  return { subjects, ...Object.fromEntries(named), ...(settings.length === 0 ? {} : { settings }) };
}

/** Formats a removal for the log: per kind the counts and the first ids. */
export function removalLine(removal: ConfigRemoval): object {
  const { digest, held, confirmAfter } = removal;
  const kinds = REMOVED_KINDS.flatMap((kind) => {
    const { removed, of, ids } = removal[kind];
    return removed === 0 ? [] : [[kind, { removed, of, ids: shortened(ids, removed) }] as const];
  });
  return { held, digest, confirmAfter, ...Object.fromEntries(kinds) };
}

function shortened(names: readonly string[], count: number): string[] {
  if (count <= MOST_LOGGED) return [...names];
  return [...names.slice(0, MOST_LOGGED), `and ${count - MOST_LOGGED} more`];
}

/**
 * Reports the config entries in Redis that the file of a start removes, before their removal, where a reload would be held for
 * them without confirmation. A start is not held: its operator wants the process to run. Returns the removal.
 */
export async function reportStart({
  config,
  registry,
  confirmations,
  log,
}: {
  config: Config;
  registry: Registry;
  confirmations: ConfirmationStore;
  log: Logger;
}): Promise<ConfigRemoval | null> {
  const { confirmAfter } = config.reload;
  const { subjects, receivers } = await registry.named();
  const removal = largeRemoval(named(subjects, receivers), namedBy(config), { confirmAfter });
  if (removal === null) return null;
  const digest = await confirmations.digestOf(config);
  if (await confirmations.isConfirmed(digest)) return null;
  const reported = { at: isoTime(Date.now()), held: false, digest, confirmAfter, ...removal };
  await confirmations.report(reported);
  log.error(removalLine(reported), 'config.large_removal');
  return reported;
}
