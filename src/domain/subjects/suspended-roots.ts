import { asSubjectId, type SubjectId } from './subject.ts';
import { claimRoot, parseClaimRoot } from './subscription.ts';

/** A root of a claim before a reload: since when it counts (Redis time, ms), and for which receivers. */
export type StoredRoot = { root: string; atMs: number; receivers: readonly string[] };

/** A subject that a subscription of the new config names, and the receivers of that subscription. */
export type NamedSubject = { subscription: string; receivers: readonly string[]; subject: SubjectId };

/** A root of the new config that goes on from others, which leave the config: it has their start. */
export type ContinuedRoot = { root: string; subject: SubjectId; atMs: number; from: readonly string[] };

/** `stays` are the stored roots that the new config still has. */
type RootPlan = { continued: ContinuedRoot[]; stays: ReadonlySet<string> };

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
function countsFor({ receivers }: Pick<StoredRoot, 'receivers'>, name: string): boolean {
  return name === LOG || receivers.includes(name);
}

/** True when a root has left the config or is on its way back; `isMade`: whether the sync that did so came to its end. */
export type SuspendedState = { state: 'out' | 'back'; isMade: boolean };

/**
 * What a reload does with the roots that leave the config and with those that had left it. `narrowed` are new roots that
 * continue one for the receivers to whom nothing else leads on; they are suspended from the start. `out` are suspended, `back`
 * come back with all that waits for them, and nobody wants `ended` any more.
 */
export type SuspensionPlan = { narrowed: ContinuedRoot[]; out: string[]; back: string[]; ended: string[] };

/**
 * What a config had stored and what its next one names, with how the claims go on (see `planRoots`). `present` are the receivers of
 * the next one.
 */
type Reload = {
  stored: readonly StoredRoot[];
  named: readonly NamedSubject[];
  continued: readonly ContinuedRoot[];
  stays: ReadonlySet<string>;
  suspended: ReadonlyMap<string, SuspendedState>;
  present: ReadonlySet<string>;
};

/** What `partRoots` reads; `receivers` are those that each subscription of the new config has. */
type Parting = Pick<Reload, 'stored' | 'named' | 'suspended'> & {
  receivers: ReadonlyMap<string, readonly string[]>;
};

/**
 * Finds the roots that are suspended, or are about to be, whose subscription stays with other receivers: it gives some up, loses
 * them as they leave the config, or has new ones, to whom nothing is owed. Each is parted in those that together count for the
 * same: one for the receivers that stay, and one for the others, for whom its events wait on. A root that is in the config is left
 * as it is.
 */
export function partRoots(
  { stored, named, suspended, receivers: receiversOf }: Parting,
  { isGraced }: { isGraced: boolean },
): ContinuedRoot[] {
  const isNamed = new Set(named.map((one) => claimRoot(one.subscription, one.subject)));
  const parts = stored.flatMap(({ root, atMs, receivers }) => {
    const { subscription, subject, receivers: narrowed } = parseClaimRoot(root);
    const now = receiversOf.get(subscription);
    const before = suspended.get(root);
    const isInConfig =
      isNamed.has(`${subscription}|${subject}`) && (before === undefined || isDone(before, 'back'));
    if (now === undefined || isInConfig || (before === undefined && !isGraced)) return [];
    const [stay = [], go = []] = [true, false].map((stays) =>
      receivers.filter((name) => now.includes(name) === stays),
    );
    const gains = narrowed === null && now.some((name) => !receivers.includes(name));
    if (go.length === 0 && !gains) return [];
    const names = (receivers.length === 0 ? [stay] : [stay, go].filter((some) => some.length > 0)).map(
      (some) => claimRoot(subscription, asSubjectId(subject), some.toSorted()),
    );
    if (names.includes(root)) return [];
    return names.map((part) => ({ root: part, subject: asSubjectId(subject), atMs, from: [root] }));
  });
  // Where two roots have one part, for a receiver that both count for, it has the earlier start.
  return [...Map.groupBy(parts, ({ root }) => root).values()].flatMap((same) => {
    const sorted = same.toSorted((one, other) => one.atMs - other.atMs);
    const [first] = sorted;
    return first === undefined ? [] : [{ ...first, from: sorted.flatMap(({ from }) => from) }];
  });
}

/**
 * Plans what is suspended. A root that leaves is suspended for the receivers to whom no root leads that is as old; where
 * other roots lead on to all of them it ends, as in a rename. A receiver that its subscription gives up, while it goes on with the
 * subject, is suspended by nothing. `isGraced` is false where what leaves ends at once.
 */
export function planSuspensions(
  { stored, named, continued, stays, suspended, present }: Reload,
  { isGraced }: { isGraced: boolean },
): SuspensionPlan {
  const receiversNow = new Map(named.map((one) => [claimRoot(one.subscription, one.subject), one.receivers]));
  const goingOn = Map.groupBy(
    [...continued, ...stored.filter(({ root }) => stays.has(root))].map(({ root, atMs }) => {
      const { subscription, receivers, subject } = parseClaimRoot(root);
      const all = receiversNow.get(`${subscription}|${subject}`) ?? [];
      const some = receivers === null ? all : all.filter((name) => receivers.includes(name));
      return { root, subject, atMs, receivers: some };
    }),
    ({ subject }) => subject,
  );
  const known = new Set(stored.map(({ root }) => root));
  const plan: SuspensionPlan = { narrowed: [], out: [], back: [], ended: [] };
  for (const one of stored) {
    const { root, atMs, receivers } = one;
    const before = suspended.get(root);
    if (stays.has(root)) {
      if (before !== undefined && !isDone(before, 'back')) plan.back.push(root);
      continue;
    }
    const { subscription, subject } = parseClaimRoot(root);
    const others = (goingOn.get(subject) ?? []).filter((other) => other.atMs <= atMs);
    const isNamed = before === undefined && receiversNow.has(`${subscription}|${subject}`);
    const rest = receivers.filter(
      (name) => !(isNamed && present.has(name)) && !others.some((other) => countsFor(other, name)),
    );
    const isContinued = continued.some(({ from }) => from.includes(root));
    const isCovered = receivers.length === 0 ? isContinued : rest.length === 0;
    if (!isCovered && (isGraced || before !== undefined)) {
      const narrowed = claimRoot(subscription, asSubjectId(subject), rest.toSorted());
      // One that counts for just these already is continued for who reads the log alone.
      if (narrowed === root || (!isContinued && rest.length === receivers.length)) {
        if (before === undefined || !isDone(before, 'out')) plan.out.push(root);
        continue;
      }
      if (!known.has(narrowed)) {
        plan.narrowed.push({ root: narrowed, subject: asSubjectId(subject), atMs, from: [root] });
      }
    }
    plan.ended.push(root);
    // What waits for it goes to the roots that continue it.
    if (before !== undefined) plan.back.push(root);
  }
  for (const { root, from } of continued) {
    if (from.some((left) => suspended.has(left))) plan.back.push(root);
  }
  // A sync that was cut off had ended these already: what waits for them still goes to the roots that continue them.
  for (const [root, state] of suspended) {
    if (!known.has(root) && state.state === 'back' && !state.isMade) plan.back.push(root);
  }
  return plan;
}

function isDone({ state, isMade }: SuspendedState, wanted: SuspendedState['state']): boolean {
  return isMade && state === wanted;
}
