import { asSubjectId, type SubjectId } from './subject.ts';
import { claimRoot, parseClaimRoot } from './subscription.ts';

/** A claim's subscription key before a reload: its start (Redis time, ms), and its receivers. */
export type StoredRoot = { root: string; atMs: number; receivers: readonly string[] };

/** A subject that a subscription of the new config names, and the receivers of that subscription. */
export type SubscribedSubject = { subscription: string; receivers: readonly string[]; subject: SubjectId };

/** A subscription key of the new config that continues others, which are removed: it has their start. */
export type ContinuedRoot = { root: string; subject: SubjectId; atMs: number; from: readonly string[] };

type RootPlan = { continued: ContinuedRoot[]; stays: ReadonlySet<string> };

/** Represents readers of the event log itself, which holds the events of every subscription. */
const LOG = '';

/**
 * Plans how the claims of a config continue under the next one. A subject that stays named retains its earliest start
 * for each receiver that had it, whatever its subscription is called now: for them, an earlier change that no poll
 * has seen yet is no history. A receiver new to the subject starts at the reload.
 *
 *   receiver, before the reload         | after it
 *   ------------------------------------|-------------------------------------------------------------------
 *   under a key that stays              | unchanged, if it is as old as every removed key
 *   under removed keys                  | a key continues the oldest of them: that of the whole subscription, if
 *                                       | it is new and every receiver has a start; else one for these receivers alone
 *   under none                          | the key of the subscription, from the reload on
 */
export function planRoots(stored: readonly StoredRoot[], named: readonly SubscribedSubject[]): RootPlan {
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

/** A subscription key for some receivers stays while its subscription names the subject and has one of them. */
function isStillWanted(root: string, receiversNow: ReadonlyMap<string, readonly string[]>): boolean {
  const { subscription, receivers, subject } = parseClaimRoot(root);
  const now = receiversNow.get(`${subscription}|${subject}`);
  if (now === undefined || receivers === null) return now !== undefined;
  return receivers.length === 0 || receivers.some((name) => now.includes(name));
}

function continuedFor(
  { subscription, receivers, subject }: SubscribedSubject,
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

/** True when a subscription key counts for a receiver; `""` means readers of the log itself. */
function countsFor({ receivers }: { receivers: readonly string[] }, name: string): boolean {
  return name === LOG || receivers.includes(name);
}

/** State of a removed subscription key, also on its way back; `isMade`: the sync that did so has completed. */
export type SuspendedState = { state: 'out' | 'back'; isMade: boolean };

/**
 * Effect of a reload on keys that it removes or that were removed before. `narrowed`: new keys for receivers without another
 * one, suspended from the start. `out`: suspended. `back`: resumed with all waiting events. `ended`: removed.
 */
export type SuspensionPlan = { narrowed: ContinuedRoot[]; out: string[]; back: string[]; ended: string[] };

/** Input of a reload; `continued` and `stays` as in `planRoots`. `present`: receivers of the next config. */
type Reload = {
  stored: readonly StoredRoot[];
  named: readonly SubscribedSubject[];
  continued: readonly ContinuedRoot[];
  stays: ReadonlySet<string>;
  suspended: ReadonlyMap<string, SuspendedState>;
  present: ReadonlySet<string>;
};

type Parting = {
  stored: readonly StoredRoot[];
  named: readonly SubscribedSubject[];
  suspended: ReadonlyMap<string, SuspendedState>;
  receivers: ReadonlyMap<string, readonly string[]>;
};

/**
 * Splits subscription keys that are suspended, or about to be, whose subscription stays with other receivers: it drops some,
 * the config does, or it has new ones, which get no earlier event. Each becomes one key for the receivers that stay and one
 * for the others, for whom its events wait on. A key in the config is unchanged.
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
  // Where two subscription keys have one part, for a receiver that both count for, it has the earlier start.
  return [...Map.groupBy(parts, ({ root }) => root).values()].flatMap((same) => {
    const sorted = same.toSorted((one, other) => one.atMs - other.atMs);
    const [first] = sorted;
    return first === undefined ? [] : [{ ...first, from: sorted.flatMap(({ from }) => from) }];
  });
}

/**
 * Plans the suspensions. A removed subscription key is suspended for receivers without another key as old; when others
 * continue it for all of them, it ends, as in a rename. A receiver dropped by a subscription that keeps the subject is not
 * suspended. `isGraced` is false when removed keys end at once.
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
      // A subscription key that counts for exactly these receivers is continued only for readers of the log.
      if (narrowed === root || (!isContinued && rest.length === receivers.length)) {
        if (before === undefined || !isDone(before, 'out')) plan.out.push(root);
        continue;
      }
      if (!known.has(narrowed)) {
        plan.narrowed.push({ root: narrowed, subject: asSubjectId(subject), atMs, from: [root] });
      }
    }
    plan.ended.push(root);
    // Its waiting events go to the subscription keys that continue it.
    if (before !== undefined) plan.back.push(root);
  }
  for (const { root, from } of continued) {
    if (from.some((left) => suspended.has(left))) plan.back.push(root);
  }
  // An interrupted sync had ended these already: their waiting events still go to the subscription keys that continue them.
  for (const [root, state] of suspended) {
    if (!known.has(root) && state.state === 'back' && !state.isMade) plan.back.push(root);
  }
  return plan;
}

function isDone({ state, isMade }: SuspendedState, wanted: SuspendedState['state']): boolean {
  return isMade && state === wanted;
}
