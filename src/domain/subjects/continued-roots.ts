import { claimRoot, parseClaimRoot } from './claim.ts';
import type { SubjectId } from './subject.ts';

/** A root of a claim before a reload: since when it counts (Redis time, ms), and for which receivers. */
export type StoredRoot = { root: string; atMs: number; receivers: readonly string[] };

/** A subject that a subscription of the new config names, and the receivers of that subscription. */
export type NamedSubject = { subscription: string; receivers: readonly string[]; subject: SubjectId };

/** A root of the new config that goes on from others, which leave the config: it has their start. */
export type ContinuedRoot = { root: string; subject: SubjectId; atMs: number; from: readonly string[] };

/** `stays` are the stored roots that the new config still has. */
export type RootPlan = { continued: ContinuedRoot[]; stays: ReadonlySet<string> };

/** Stands for whoever reads the event log itself, which holds the events of every subscription. */
const LOG = '';

/**
 * Plans how the claims of a config go on under the next one. A subject that stays named keeps its earliest start for each
 * receiver that had it, whatever its subscription is called now: a change from before the reload that no poll has seen yet
 * is no history for them. A receiver that is new to the subject starts at the reload.
 *
 *   receiver, before the reload         | after it
 *   ------------------------------------|-------------------------------------------------------------------
 *   under a root that stays             | as it was, where that is as old as every root that leaves
 *   under roots that leave              | a root continues the oldest of them: that of the whole subscription, where
 *                                       | it is new and every receiver has a start; else one for these receivers alone
 *   under none                          | the root of the subscription, from the reload on
 */
export function planRoots(stored: readonly StoredRoot[], named: readonly NamedSubject[]): RootPlan {
  const before = Map.groupBy(stored, ({ root }) => parseClaimRoot(root).subject);
  const receiversNow = new Map(named.map((one) => [claimRoot(one.subscription, one.subject), one.receivers]));
  const stays = new Set(stored.map(({ root }) => root).filter((root) => isStillWanted(root, receiversNow)));
  const continued = named.flatMap((one) => {
    const roots = before.get(one.subject) ?? [];
    const leaving = roots.filter(({ root }) => !stays.has(root));
    if (leaving.length === 0) return [];
    return continuedFor(one, { leaving, staying: roots.filter(({ root }) => stays.has(root)) });
  });
  return { continued, stays };
}

/** A root for some receivers stays while its subscription names the subject and has one of them. */
function isStillWanted(root: string, receiversNow: ReadonlyMap<string, readonly string[]>): boolean {
  const { subscription, receivers, subject } = parseClaimRoot(root);
  const now = receiversNow.get(`${subscription}|${subject}`);
  if (now === undefined || receivers === null) return now !== undefined;
  return receivers.length === 0 || receivers.some((name) => now.includes(name));
}

function continuedFor(
  { subscription, receivers, subject }: NamedSubject,
  { leaving, staying }: { leaving: readonly StoredRoot[]; staying: readonly StoredRoot[] },
): ContinuedRoot[] {
  const whole = claimRoot(subscription, subject);
  const oldest = (roots: readonly StoredRoot[], name: string): number =>
    Math.min(...roots.filter((root) => countsFor(root, name)).map(({ atMs }) => atMs));
  const starts = [LOG, ...receivers].map((name) => {
    const atMs = oldest(leaving, name);
    return { name, atMs: atMs < oldest(staying, name) ? atMs : null };
  });
  const groups = [...Map.groupBy(starts, ({ atMs }) => atMs)].flatMap(([atMs, members]) => {
    return atMs === null ? [] : [{ atMs, names: members.map(({ name }) => name) }];
  });
  const isWholeNew = !staying.some(({ root }) => root === whole);
  const latest = Math.max(...groups.map(({ atMs }) => atMs));
  const isWholeContinued = isWholeNew && starts.every(({ atMs }) => atMs !== null);
  const taken = new Set(staying.map(({ root }) => root));
  return groups.flatMap(({ atMs, names }) => {
    const some = names.filter((name) => name !== LOG).toSorted();
    const root = isWholeContinued && atMs === latest ? whole : claimRoot(subscription, subject, some);
    if (taken.has(root)) return [];
    const from = leaving.filter((one) => one.atMs === atMs && names.some((name) => countsFor(one, name)));
    return [{ root, subject, atMs, from: from.map((one) => one.root) }];
  });
}

/** True when a root counts for a receiver; `""` stands for whoever reads the log itself. */
export function countsFor({ receivers }: Pick<StoredRoot, 'receivers'>, name: string): boolean {
  return name === LOG || receivers.includes(name);
}
