import { asSubjectId, type SubjectId } from './subject.ts';
import { claimKey, parseClaimKey } from './subscription.ts';

/** A claim's subscription key before a reload: its start (Redis time, ms), and its receivers. */
export type StoredKey = { key: string; atMs: number; receivers: readonly string[] };

/** A subject that a subscription of the new config names, and the receivers of that subscription. */
export type SubscribedSubject = { subscription: string; receivers: readonly string[]; subject: SubjectId };

/** A subscription key of the new config that continues others, which are removed: it has their start. */
export type ContinuedKey = { key: string; subject: SubjectId; atMs: number; from: readonly string[] };

type KeyPlan = { continued: ContinuedKey[]; stays: ReadonlySet<string> };

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
export function planKeys(stored: readonly StoredKey[], named: readonly SubscribedSubject[]): KeyPlan {
  const before = Map.groupBy(stored, ({ key }) => parseClaimKey(key).subject);
  const receiversNow = new Map(named.map((one) => [claimKey(one.subscription, one.subject), one.receivers]));
  const stays = new Set(stored.map(({ key }) => key).filter((key) => isStillWanted(key, receiversNow)));
  const continued = named.flatMap((one) => {
    const claimKeys = before.get(one.subject) ?? [];
    const leaving = claimKeys.filter(({ key }) => !stays.has(key));
    if (leaving.length === 0) return [];
    return continuedFor(one, { leaving, staying: claimKeys.filter(({ key }) => stays.has(key)) });
  });
  return { continued, stays };
}

/** A subscription key for some receivers stays while its subscription names the subject and has one of them. */
function isStillWanted(key: string, receiversNow: ReadonlyMap<string, readonly string[]>): boolean {
  const { subscription, receivers, subject } = parseClaimKey(key);
  const now = receiversNow.get(`${subscription}|${subject}`);
  if (now === undefined || receivers === null) return now !== undefined;
  return receivers.length === 0 || receivers.some((name) => now.includes(name));
}

function continuedFor(
  { subscription, receivers, subject }: SubscribedSubject,
  { leaving, staying }: { leaving: readonly StoredKey[]; staying: readonly StoredKey[] },
): ContinuedKey[] {
  const whole = claimKey(subscription, subject);
  const oldest = (claimKeys: readonly StoredKey[], name: string): number =>
    Math.min(...claimKeys.filter((key) => countsFor(key, name)).map(({ atMs }) => atMs));
  const starts = [LOG, ...receivers].map((name) => {
    const atMs = oldest(leaving, name);
    return { name, atMs: atMs < oldest(staying, name) ? atMs : null };
  });
  const groups = [...Map.groupBy(starts, ({ atMs }) => atMs)].flatMap(([atMs, members]) => {
    return atMs === null ? [] : [{ atMs, names: members.map(({ name }) => name) }];
  });
  const isWholeNew = !staying.some(({ key }) => key === whole);
  const latest = Math.max(...groups.map(({ atMs }) => atMs));
  const isWholeContinued = isWholeNew && starts.every(({ atMs }) => atMs !== null);
  const occupied = new Set(staying.map(({ key }) => key));
  return groups.flatMap(({ atMs, names }) => {
    const some = names.filter((name) => name !== LOG).toSorted();
    const key = isWholeContinued && atMs === latest ? whole : claimKey(subscription, subject, some);
    if (occupied.has(key)) return [];
    const from = leaving.filter((one) => one.atMs === atMs && names.some((name) => countsFor(one, name)));
    return [{ key, subject, atMs, from: from.map((one) => one.key) }];
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
export type SuspensionPlan = { narrowed: ContinuedKey[]; out: string[]; back: string[]; ended: string[] };

/** Input of a reload; `continued` and `stays` as in `planKeys`. `present`: receivers of the next config. */
type Reload = {
  stored: readonly StoredKey[];
  named: readonly SubscribedSubject[];
  continued: readonly ContinuedKey[];
  stays: ReadonlySet<string>;
  suspended: ReadonlyMap<string, SuspendedState>;
  present: ReadonlySet<string>;
};

type Parting = {
  stored: readonly StoredKey[];
  named: readonly SubscribedSubject[];
  suspended: ReadonlyMap<string, SuspendedState>;
  receivers: ReadonlyMap<string, readonly string[]>;
};

/**
 * Splits subscription keys that are suspended, or about to be, whose subscription stays with other receivers: it drops some,
 * the config does, or it has new ones, which get no earlier event. Each becomes one key for the receivers that stay and one
 * for the others, for whom its events wait on. A key in the config is unchanged.
 */
export function partKeys(
  { stored, named, suspended, receivers: receiversOf }: Parting,
  { isGraced }: { isGraced: boolean },
): ContinuedKey[] {
  const isNamed = new Set(named.map((one) => claimKey(one.subscription, one.subject)));
  const parts = stored.flatMap(({ key, atMs, receivers }) => {
    const { subscription, subject, receivers: narrowed } = parseClaimKey(key);
    const now = receiversOf.get(subscription);
    const before = suspended.get(key);
    const isInConfig =
      isNamed.has(`${subscription}|${subject}`) && (before === undefined || isDone(before, 'back'));
    if (now === undefined || isInConfig || (before === undefined && !isGraced)) return [];
    const [stay = [], go = []] = [true, false].map((stays) =>
      receivers.filter((name) => now.includes(name) === stays),
    );
    const gains = narrowed === null && now.some((name) => !receivers.includes(name));
    if (go.length === 0 && !gains) return [];
    const names = (receivers.length === 0 ? [stay] : [stay, go].filter((some) => some.length > 0)).map(
      (some) => claimKey(subscription, asSubjectId(subject), some.toSorted()),
    );
    if (names.includes(key)) return [];
    return names.map((part) => ({ key: part, subject: asSubjectId(subject), atMs, from: [key] }));
  });
  // Where two subscription keys have one part, for a receiver that both count for, it has the earlier start.
  return [...Map.groupBy(parts, ({ key }) => key).values()].flatMap((same) => {
    const sorted = same.toSorted((one, other) => one.atMs - other.atMs);
    const [first] = sorted;
    return first === undefined ? [] : [{ ...first, from: sorted.flatMap(({ from }) => from) }];
  });
}

/**
 * Plans the suspensions. A removed subscription key is suspended for receivers without another key as old; when others
 * continue it for all of them, it ends, as in a rename. A receiver dropped by a subscription that has the subject is not
 * suspended. `isGraced` is false when removed keys end at once.
 */
export function planSuspensions(
  { stored, named, continued, stays, suspended, present }: Reload,
  { isGraced }: { isGraced: boolean },
): SuspensionPlan {
  const receiversNow = new Map(named.map((one) => [claimKey(one.subscription, one.subject), one.receivers]));
  const goingOn = Map.groupBy(
    [...continued, ...stored.filter(({ key }) => stays.has(key))].map(({ key, atMs }) => {
      const { subscription, receivers, subject } = parseClaimKey(key);
      const all = receiversNow.get(`${subscription}|${subject}`) ?? [];
      const some = receivers === null ? all : all.filter((name) => receivers.includes(name));
      return { key, subject, atMs, receivers: some };
    }),
    ({ subject }) => subject,
  );
  const storedKeys = new Set(stored.map(({ key }) => key));
  const plan: SuspensionPlan = { narrowed: [], out: [], back: [], ended: [] };
  for (const one of stored) {
    const { key, atMs, receivers } = one;
    const before = suspended.get(key);
    if (stays.has(key)) {
      if (before !== undefined && !isDone(before, 'back')) plan.back.push(key);
      continue;
    }
    const { subscription, subject } = parseClaimKey(key);
    const others = (goingOn.get(subject) ?? []).filter((other) => other.atMs <= atMs);
    const isNamed = before === undefined && receiversNow.has(`${subscription}|${subject}`);
    const rest = receivers.filter(
      (name) => !(isNamed && present.has(name)) && !others.some((other) => countsFor(other, name)),
    );
    const isContinued = continued.some(({ from }) => from.includes(key));
    const isCovered = receivers.length === 0 ? isContinued : rest.length === 0;
    if (!isCovered && (isGraced || before !== undefined)) {
      const narrowed = claimKey(subscription, asSubjectId(subject), rest.toSorted());
      // A subscription key that counts for exactly these receivers is continued only for readers of the log.
      if (narrowed === key || (!isContinued && rest.length === receivers.length)) {
        if (before === undefined || !isDone(before, 'out')) plan.out.push(key);
        continue;
      }
      if (!storedKeys.has(narrowed)) {
        plan.narrowed.push({ key: narrowed, subject: asSubjectId(subject), atMs, from: [key] });
      }
    }
    plan.ended.push(key);
    // Its waiting events go to the subscription keys that continue it.
    if (before !== undefined) plan.back.push(key);
  }
  for (const { key, from } of continued) {
    if (from.some((left) => suspended.has(left))) plan.back.push(key);
  }
  // An interrupted sync had ended these already: their waiting events still go to the subscription keys that continue them.
  for (const [key, state] of suspended) {
    if (!storedKeys.has(key) && state.state === 'back' && !state.isMade) plan.back.push(key);
  }
  return plan;
}

function isDone({ state, isMade }: SuspendedState, wanted: SuspendedState['state']): boolean {
  return isMade && state === wanted;
}
