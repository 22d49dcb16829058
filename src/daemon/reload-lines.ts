import { REMOVED_KINDS } from '../config/sections/reload.ts';
import type { ConfigRemoval } from '../operations/config-removal.ts';
import type { ConfigChanges } from '../operations/config-state.ts';

/** So many names are logged of what has changed; of the others only how many. */
const MOST_LOGGED = 20;

/** Changes for the log: nothing that is empty, and no list without end. */
export function changesLine({ subjects, subscriptions, receivers, settings }: ConfigChanges): object {
  const lists = { subscriptions, receivers };
  const named = Object.entries(lists).flatMap(([what, changes]) =>
    Object.entries(changes).flatMap(([how, names]) =>
      names.length === 0 ? [] : [[`${what}_${how}`, shortened(names, names.length)] as const],
    ),
  );
  return { subjects, ...Object.fromEntries(named), ...(settings.length === 0 ? {} : { settings }) };
}

/** A removal for the log: per kind how many of how many, and the first of them. */
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
