import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { gaps, statesWithTwoIds } from '../chaos/operator-account.ts';
import { type PairModel, type PairSpan, RETENTION_MS, stateKey } from './model.ts';
import { isTimeless, type Shown, type State, type Transfer } from './virtual-upstream.ts';

/** An event that a receiver got. */
export type Got = { event: RenderedEvent; atMs: number };

/** The record of a life. `named`: ids of the events that an operator event named as dropped, with reasons. */
export type Lived = {
  model: PairModel;
  transfers: readonly Transfer[];
  shown: readonly Shown[];
  /** The polls that were cut off by the death of their process. */
  cut: ReadonlySet<number>;
  got: ReadonlyMap<string, readonly Got[]>;
  logged: ReadonlyMap<string, RenderedEvent>;
  named: ReadonlyMap<string, string>;
  restoredMs: readonly number[];
};

/** Reasons for a shown state without an event at a receiver that has it. */
export const EXCUSES = [
  'named as dropped',
  'in a span that was named as lost',
  'its poll was cut off',
  'given up before it was opened',
  'its tracking had ended',
] as const;

export type VirtualAccount = {
  changes: number;
  shown: number;
  matched: number;
  delivered: number;
  suspended: number;
  events: number;
  closedDays: number;
  excused: Record<(typeof EXCUSES)[number], number>;
  problems: string[];
};

const SUSPENSION_REASONS: ReadonlySet<string> = new Set(['span-over', 'removed']);

const DAY_MS = 24 * 3_600_000;

/** The time for which a transfer that no wallet shows is tracked in a status without a change (docs/assumptions.md). */
const TRACKED_MS: Readonly<Record<string, number>> = {
  filled: 7 * DAY_MS,
  failed: 7 * DAY_MS,
  expired: 30 * DAY_MS,
  refundable: 30 * DAY_MS,
};

/** Statuses in which a transfer goes on. */
const LASTING: ReadonlySet<string> = new Set(['pending', ...Object.keys(TRACKED_MS)]);

/** Longest time between two polls of a subject that is polled. */
const LONGEST_STEP_MS = 2 * DAY_MS;

/** The same for a job or a vault, in any status (docs/assumptions.md). */
const OTHER_TRACKED_MS = 30 * DAY_MS;

/** The next step opens the polls of a step that dies. */
const STEP_MS = 1_000;

/** From the second of a change to that of a start: both are rounded. */
const SECOND_MS = 1_000;

/** A start may be a whole second earlier because of the `Date` of responses. */
const EARLIER_MS = 2 * SECOND_MS;

/**
 * Compares the events of receivers with the upstream's states and the configs of the time:
 *
 * - each state that was shown to a poll, or is the last of its transfer, reaches each receiver that had the transfer, or is named
 *   as dropped, or was in a span that was named as lost, or came after its tracking had ended, or was not opened yet when the
 *   receiver was given up;
 * - a receiver gets no state that was never shown while it had the transfer, or is older than its start;
 * - a state has one id, an id one state, except for the first one after a restore whose records have no time; sequence numbers
 *   have no gap and are unique in an epoch, unless the transfer was shown again after it had been removed.
 */
export function accountVirtual(lived: Lived): VirtualAccount {
  const { model, shown, got, logged, named } = lived;
  const account: VirtualAccount = {
    changes: lived.transfers.reduce((sum, { states }) => sum + states.length, 0),
    shown: 0,
    matched: 0,
    delivered: 0,
    suspended: 0,
    events: logged.size,
    closedDays: 0,
    excused: Object.fromEntries(EXCUSES.map((excuse) => [excuse, 0])) as VirtualAccount['excused'],
    problems: [],
  };
  // A span counts as named where a report came after it, before the next one was over.
  const { restores } = model;
  const lost = restores.flatMap(({ fromMs, atMs, isUnwatched }, index) => {
    const nextMs = restores[index + 1]?.atMs ?? Number.POSITIVE_INFINITY;
    const isNamed = lived.restoredMs.some((ms) => atMs <= ms && ms <= nextMs + 60_000);
    return isNamed ? [{ fromMs, untilMs: atMs, isUnwatched }] : [];
  });
  const showings = Map.groupBy(shown, ({ transfer, state }) => stateKey(transfer, state));
  const pages = Map.groupBy(
    shown.filter(({ isPage }) => isPage),
    ({ transfer }) => transfer,
  );
  account.shown = showings.size;
  const idsOf = new Map<string, Set<string>>();
  for (const [id, event] of logged) {
    const key = eventKey(event);
    idsOf.set(key, (idsOf.get(key) ?? new Set()).add(id));
  }
  for (const [receiver, events] of got) holdReceiver(receiver, events);
  const all = [...got.values()].flat().map(({ event }) => event);
  const distinct = [...new Map([...logged, ...all.map((event) => [event.id, event] as const)]).values()];
  const subjects = new Set(lived.transfers.map(({ subject }) => subject));
  const own = distinct.filter(({ data }) => subjects.has(data.subject.id));
  const timed = own.filter(({ data: { subject } }) => !isTimeless({ subject: subject.id }));
  const timeless = own.filter(({ data: { subject, afterRestore } }) => {
    return isTimeless({ subject: subject.id }) && afterRestore !== true;
  });
  account.problems.push(...statesWithTwoIds(timed), ...statesWithTwoIds(timeless), ...gaps(own, subjects));
  const expired = expiredSubjects();
  account.problems.push(...placesTwice(own.filter(({ data }) => !expired.has(data.subject.id))));
  return account;

  /** Subjects that nothing has shown for twice the retention: stored whole for the first, and compact for the second. */
  function expiredSubjects(): Set<string> {
    const lastMs = new Map<string, number>();
    const found = new Set<string>();
    for (const { transfer, atMs } of shown) {
      const { subject } = transfer;
      if (atMs - (lastMs.get(subject) ?? atMs) >= 2 * RETENTION_MS) found.add(subject);
      lastMs.set(subject, atMs);
    }
    return found;
  }

  function holdReceiver(receiver: string, events: readonly Got[]): void {
    const came = Map.groupBy(events, ({ event }) => eventKey(event));
    for (const transfer of lived.transfers) {
      for (const [index, state] of transfer.states.entries()) {
        const key = stateKey(transfer, state);
        const isLast = index === transfer.states.length - 1;
        holdState({ receiver, transfer, state, key, isLast, came: came.get(key) ?? [] });
      }
    }
    const keys = new Set(
      lived.transfers.flatMap((transfer) => transfer.states.map((state) => stateKey(transfer, state))),
    );
    for (const key of came.keys()) {
      if (!keys.has(key)) account.problems.push(`${receiver} was reported ${key}, which never was`);
    }
  }

  function holdState(held: {
    receiver: string;
    transfer: Transfer;
    state: State;
    key: string;
    isLast: boolean;
    came: readonly Got[];
  }): void {
    const { receiver, transfer, state, key, isLast, came } = held;
    const observations = showings.get(key) ?? [];
    const standings = observations.map((one) => ({ one, at: model.standings(receiver, transfer, one.atMs) }));
    const isReported = came.length > 0;
    const due = standings.filter(({ one, at }) =>
      at.some((span) => isDue(span, state) && isOfWallet(one, span) && !isStartLost(span, state, one.atMs)),
    );
    const last = isLast
      ? model.standings(receiver, transfer, Number.MAX_SAFE_INTEGER).filter(({ state: is }) => is === 'in')
      : [];
    const isLastDue = last.some(
      (span) => state.atMs >= span.startMs + SECOND_MS && !isStartLost(span, state, Number.POSITIVE_INFINITY),
    );
    if (isReported) {
      account.delivered += 1;
      if (due.length > 0 || isLastDue) account.matched += 1;
      const isAllowed = observations.some(
        ({ atMs }) =>
          model.wasAway(receiver, { fromMs: atMs, untilMs: came[0]?.atMs ?? atMs }) ||
          model.standings(receiver, transfer, atMs, { atEnd: true }).some((span) => isFor(span, held, atMs)),
      );
      if (!isAllowed)
        account.problems.push(`${receiver} was reported ${key}, which was not for it ${describe(held)}`);
      if (came.some(({ event }) => event.data.suspended === true)) account.suspended += 1;
      holdWaiting(held, standings);
      return;
    }
    if (due.length === 0 && !isLastDue) return;
    account.matched += 1;
    const excuse = excuseOf(
      held,
      due.map(({ one }) => one),
      isLastDue,
    );
    if (excuse !== null) account.excused[excuse] += 1;
    else account.problems.push(`${receiver} was not reported ${key} ${describe(held)}`);
  }

  /** A receiver's first state of a transfer, when it was suspended, waited for its return, and the event reports this. */
  function holdWaiting(
    held: { receiver: string; transfer: Transfer; state: State; key: string; came: readonly Got[] },
    standings: readonly { one: Shown; at: readonly PairSpan[] }[],
  ): void {
    const [first] = held.came;
    if (first === undefined) return;
    const before = standings.filter(({ one }) => one.atMs <= first.atMs);
    const isOut = before.every(
      ({ one, at }) =>
        !lived.cut.has(one.poll) &&
        at.length > 0 &&
        at.every(({ state, isUnclear }) => state === 'out' && !isUnclear) &&
        !model.wasAway(held.receiver, { fromMs: one.atMs, untilMs: one.atMs }),
    );
    if (!isOut || before.length === 0) return;
    const untilMs = Math.min(...before.flatMap(({ at }) => at.map((span) => span.untilMs)));
    if (first.atMs < untilMs)
      account.problems.push(
        `${held.receiver} was reported ${held.key} while it was suspended ${describe(held)}`,
      );
    else if (first.event.data.suspended !== true)
      account.problems.push(
        `${held.receiver} was reported ${held.key} as if it had not waited ${describe(held)}`,
      );
  }

  function excuseOf(
    { key, receiver, transfer, state }: { key: string; receiver: string; transfer: Transfer; state: State },
    due: readonly Shown[],
    isLastDue: boolean,
  ): (typeof EXCUSES)[number] | null {
    const reasons = [...(idsOf.get(key) ?? [])].flatMap((id) => named.get(id) ?? []);
    // A suspended pair may end so; a pair that was in the config when the state was shown may not.
    const mayEnd = due.every(({ atMs, transfer }) =>
      model.standings(receiver, transfer, atMs).some(({ state: is }) => is === 'out'),
    );
    if (reasons.some((reason) => mayEnd || !SUSPENSION_REASONS.has(reason))) return 'named as dropped';
    if (!showings.has(key) && (isTrackedNoMore(transfer, state) || isNeverFound(transfer)))
      return 'its tracking had ended';
    if (isLastDue) return null;
    if (due.every(({ poll }) => lived.cut.has(poll))) return 'its poll was cut off';
    const isGivenUp = due.every(
      ({ atMs, poll }) =>
        lived.cut.has(poll) ||
        model
          .standings(receiver, transfer, atMs)
          .every((span) => span.untilMs - atMs < STEP_MS && model.isGivenUp(receiver, transfer, span)),
    );
    if (isGivenUp) return 'given up before it was opened';
    const isLost = due.every(
      ({ atMs, poll }) =>
        lived.cut.has(poll) || lost.some(({ fromMs, untilMs }) => fromMs <= atMs && atMs <= untilMs),
    );
    return isLost ? 'in a span that was named as lost' : null;
  }

  /** True when a transfer that no wallet shows was in some status for longer than it is tracked, and has not been shown since. */
  function isTrackedNoMore(transfer: Transfer, state: State): boolean {
    const { wallet, states } = transfer;
    const elseMs = isTimeless(transfer) ? OTHER_TRACKED_MS : Number.POSITIVE_INFINITY;
    const index = states.indexOf(state);
    const shownLast = states.findLastIndex((one, at) => at < index && showings.has(stateKey(transfer, one)));
    return (
      wallet === null &&
      states.slice(shownLast + 1, index + 1).some(({ atMs }, offset) => {
        const before = states[shownLast + offset];
        return before !== undefined && atMs - before.atMs >= (TRACKED_MS[before.status] ?? elseMs);
      })
    );
  }

  /** True for a further transfer of a transaction that was not polled any more: the others had ended, or their tracking had. */
  function isNeverFound(transfer: Transfer): boolean {
    const bornMs = transfer.states[0]?.atMs ?? 0;
    const others = lived.transfers.filter(({ tx }) => tx !== null && tx === transfer.tx);
    return others.every((other) => {
      const seen = shown.filter(({ transfer: one }) => one === other);
      const last = seen.at(-1);
      if (other === transfer || last === undefined) return seen.length === 0;
      const { status, atMs } = last.state;
      const untilMs = LASTING.has(status) ? atMs + (TRACKED_MS[status] ?? Number.POSITIVE_INFINITY) : 0;
      return last.atMs < bornMs && untilMs <= bornMs + LONGEST_STEP_MS;
    });
  }

  /** True when a receiver in this state must get a state that is shown to it. */
  function isDue({ startMs, isUnclear }: PairSpan, { atMs }: State): boolean {
    return !isUnclear && atMs >= startMs + SECOND_MS;
  }

  /** True when Redis lost the start of a receiver's transfer and no process ran that knew it: it starts anew. */
  function isStartLost({ startMs }: PairSpan, state: State, shownMs: number): boolean {
    return lost.some(
      ({ fromMs, untilMs, isUnwatched }) =>
        isUnwatched && fromMs <= startMs && state.atMs <= untilMs + SECOND_MS && untilMs <= shownMs,
    );
  }

  /** True when a page has shown that a transfer belongs to the wallet of a receiver since then: a record does not name it. */
  function isOfWallet({ transfer, atMs, isPage }: Shown, { startMs }: PairSpan): boolean {
    if (isPage || transfer.wallet === null) return true;
    return (pages.get(transfer) ?? []).some(
      (page) => startMs <= page.atMs && page.atMs <= atMs && !lived.cut.has(page.poll),
    );
  }

  /** True when a receiver in this state may get a state that is shown to it. */
  function isFor(
    span: PairSpan,
    { transfer, state }: { transfer: Transfer; state: State },
    shownMs: number,
  ): boolean {
    const isNamedItself = transfer.wallet === null;
    return isNamedItself || state.atMs >= span.earliestMs - EARLIER_MS || shownMs < span.fromMs;
  }

  function describe({
    receiver,
    transfer,
    state,
    key,
    came,
  }: {
    receiver: string;
    transfer: Transfer;
    state: State;
    key: string;
    came: readonly Got[];
  }): string {
    const at = (ms: number): string => (Number.isFinite(ms) ? new Date(ms).toISOString().slice(5, 23) : '…');
    const spans = model
      .history(receiver, transfer)
      .map(
        ({ state: is, fromMs, untilMs, startMs, isUnclear }) =>
          `${is}${isUnclear ? '?' : ''} ${at(fromMs)}–${at(untilMs)} since ${at(startMs)}`,
      );
    const seen = (showings.get(key) ?? []).map(
      ({ atMs, poll }) => `${at(atMs)}${lived.cut.has(poll) ? ' (cut)' : ''}`,
    );
    const places = `ids ${[...(idsOf.get(key) ?? [])].map((id) => id.slice(0, 12)).join(', ') || 'none'}`;
    return `(changed ${at(state.atMs)}; came ${came.map(({ atMs }) => at(atMs)).join(', ') || 'never'}; shown ${[...seen.slice(0, 3), ...seen.slice(-1)].join(', ') || 'never'}; ${spans.join('; ')}; ${transfer.wallet ?? transfer.tx ?? 'named'}; ${places})`;
  }
}

function eventKey({ data: { subject, status, upstreamUpdatedAt } }: RenderedEvent): string {
  return stateKey({ subject: subject.id }, { status: status ?? '', updatedAt: upstreamUpdatedAt ?? 0 });
}

function placesTwice(events: readonly RenderedEvent[]): string[] {
  const places = new Map<string, string>();
  return events.flatMap(({ id, data: { subject, epoch, sequence } }) => {
    const place = `${subject.id} #${sequence} in epoch ${epoch}`;
    const before = places.get(place);
    places.set(place, id);
    return before === undefined || before === id ? [] : [`${place} is ${before} and ${id}`];
  });
}
