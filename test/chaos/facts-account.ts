import type { RenderedEvent } from '../../src/domain/events/event.ts';

/** An order of the run to the sandbox about a quote or vault. Times are Unix ms; amounts are base units. */
export type Ordered = {
  subject: string;
  intent: string;
  expiresAtMs: number;
  /** Time of the funding; null for never. */
  fundedAtMs: number | null;
  /** The minimum that the quote promises; null for a vault, which promises nothing. */
  minimum: bigint | null;
  delivers: bigint | null;
  stepFails: boolean;
  isRefunded: boolean;
};

/** The state of a subject in a readable answer, and the time of its last byte. */
export type Shown = {
  id: string;
  status: string;
  steps: { failed: number; refunded: number };
  isPage: boolean;
  atMs: number;
  doneAtMs: number;
};

/**
 * Other conditions of the run: the configured warning time before expiry, and the absences of the daemon. `committedMs`: longest
 * time from an answer to the event that it causes on this machine while the daemon runs.
 */
export type Conditions = {
  warnBeforeMs: number;
  away: readonly { fromMs: number; toMs: number }[];
  committedMs: number;
};

/**
 * Counts of each kind of fact: due and shown by answers in time, and reported. `problems`: each fact that was not reported
 * exactly once, or did not happen.
 */
export type FactsAccount = {
  due: Record<string, number>;
  reported: Record<string, number>;
  /** Not reported, because no answer showed it in time; or reported, because answers were stale. */
  excused: number;
  problems: string[];
};

/** Event types that must each have a cause in an order to the sandbox. */
const FACTS = /\.(short|expiring|expired|step_failed|refund_sent|error)$/;

/** Compares the events of a receiver with the orders to the sandbox and with its answers. */
export function accountFacts(
  ordered: readonly Ordered[],
  shown: readonly Shown[],
  events: readonly RenderedEvent[],
  conditions: Conditions,
): FactsAccount {
  const account: FactsAccount = { due: {}, reported: {}, excused: 0, problems: [] };
  const bySubject = Map.groupBy(shown, ({ id }) => id);
  const facts = new Map<string, RenderedEvent[]>();
  for (const event of new Map(events.map((one) => [one.id, one])).values()) {
    if (!FACTS.test(event.type) || isStatus(event)) continue;
    const key = `${event.type} ${event.data.subject.id}`;
    facts.set(key, [...(facts.get(key) ?? []), event]);
  }

  /** Counts a fact of a subject that is due once, or not at all; `excuse` is the reason for an exception. */
  function expect(
    type: string,
    subject: string,
    isDue: boolean,
    excuse: () => boolean,
  ): RenderedEvent | null {
    const key = `${type} ${subject}`;
    const reported = facts.get(key) ?? [];
    facts.delete(key);
    const isExcused = reported.length < 2 && (reported.length === 1) !== isDue && excuse();
    if (isExcused) account.excused += 1;
    else if (isDue) account.due[type] = (account.due[type] ?? 0) + 1;
    if (reported.length > 0) account.reported[type] = (account.reported[type] ?? 0) + 1;
    if (reported.length > 1) account.problems.push(`${key} was reported ${reported.length} times`);
    else if ((reported.length === 1) !== isDue && !isExcused) {
      account.problems.push(isDue ? `${key} was not reported` : `${key} did not happen`);
    }
    return reported[0] ?? null;
  }

  for (const one of ordered) {
    const { subject, intent, expiresAtMs, fundedAtMs } = one;
    const seen = bySubject.get(subject) ?? [];
    const kind = subject.slice(0, subject.indexOf(':'));
    const warnedMs = expiresAtMs - conditions.warnBeforeMs;
    const unfundedFrom = (fromMs: number, toMs = Number.POSITIVE_INFINITY): boolean =>
      seen.some(({ status, doneAtMs }) => UNFUNDED.test(status) && doneAtMs >= fromMs && doneAtMs < toMs);
    const seenFromMs = Math.min(...seen.filter(({ status }) => status !== 'unknown').map(({ atMs }) => atMs));
    /** A daemon that knows the subject ignores an answer that does not as stale. */
    const isStale = ({ status, atMs }: Shown): boolean => status === 'unknown' && atMs > seenFromMs;
    /** An answer so early in a span that a running daemon has reported it before the end. */
    const isShownWithin = (fromMs: number, toMs: number): boolean =>
      seen.some(
        (showing) =>
          UNFUNDED.test(showing.status) &&
          !isStale(showing) &&
          showing.atMs >= fromMs + 1_000 &&
          showing.doneAtMs <= toMs - conditions.committedMs &&
          !isAway(showing),
      );
    const isWarned = fundedAtMs === null || fundedAtMs > warnedMs;
    expect(`${kind}.expiring`, subject, isWarned, () =>
      isWarned
        ? !isShownWithin(warnedMs, Math.min(expiresAtMs, fundedAtMs ?? expiresAtMs))
        : unfundedFrom(warnedMs),
    );
    // The sandbox calls a vault expired at its deadline: this is reported as a status.
    expect(`${kind}.expired`, subject, fundedAtMs === null, () =>
      fundedAtMs === null
        ? seen.some(({ status }) => status === 'EXPIRED_UNFUNDED') ||
          events.some(({ data }) => data.subject.id === subject && data.status === 'EXPIRED_UNFUNDED')
        : unfundedFrom(expiresAtMs),
    );
    const isShort = one.minimum !== null && one.delivers !== null && one.delivers < one.minimum;
    const short = expect('intent.short', intent, isShort, () => false);
    if (short !== null && one.minimum !== null && one.delivers !== null) {
      const { shortfall } = short.data.transfer ?? {};
      const expected = String(one.minimum - one.delivers);
      if (shortfall?.amount !== expected) {
        account.problems.push(`${intent} is short by ${expected}, reported as ${shortfall?.amount}`);
      }
    }
    const failing = expect(
      'intent.step_failed',
      intent,
      one.stepFails,
      () => !isShown(intent, 'failed', 'pending'),
    );
    if (failing !== null) checkFailed(failing);
    if (kind === 'quote') {
      const failed = expect(
        'quote.step_failed',
        subject,
        one.stepFails,
        () => !isShown(subject, 'failed', 'submitted'),
      );
      if (failed !== null) checkFailed(failed);
      expect('quote.refund_sent', subject, one.isRefunded, () => !isShown(subject, 'refunded', 'submitted'));
    }
  }
  for (const key of facts.keys()) account.problems.push(`${key} has no reason`);
  return account;

  /**
   * True when a step was shown so after an answer with the same status without it: otherwise it is reported with the status. The
   * next answer after a failed step may show its refund, and then no longer shows the failure.
   */
  function isShown(subject: string, part: 'failed' | 'refunded', expected: string): boolean {
    const list = (bySubject.get(subject) ?? []).filter(({ status }) => status === expected);
    const isSo = ({ steps }: Shown) => steps[part] > 0;
    const at = list.findIndex(isSo);
    return at > 0 && list.slice(0, at).some(isStored) && list.slice(at).filter(isSo).some(isStored);
  }

  /** True when the daemon surely stored an answer: it sent the same request again before it was killed. */
  function isStored(showing: Shown): boolean {
    const killedMs = conditions.away.find(({ fromMs }) => fromMs > showing.atMs)?.fromMs;
    const isRequestedAgain = (bySubject.get(showing.id) ?? []).some(
      ({ isPage, atMs }) => isPage === showing.isPage && atMs > showing.doneAtMs && atMs < (killedMs ?? 0),
    );
    return !isAway(showing) && (killedMs === undefined || isRequestedAgain);
  }

  /** True when the daemon was away, or may have been before it had stored an answer. */
  function isAway({ atMs, doneAtMs }: Shown): boolean {
    return conditions.away.some(
      ({ fromMs, toMs }) => atMs <= toMs && doneAtMs + conditions.committedMs >= fromMs,
    );
  }

  function checkFailed({ data: { subject, transfer } }: RenderedEvent): void {
    if (transfer?.failed?.some(({ status }) => status === 'FAILED')) return;
    account.problems.push(`${subject.id} is reported to have failed, but not what`);
  }
}

const UNFUNDED = /^(active|pending|unknown)$/i;

/** True when an event reports an upstream status that has the name of a fact. */
function isStatus({ type, data }: RenderedEvent): boolean {
  return data.status !== data.previousStatus && type.endsWith(`.${data.status?.toLowerCase()}`);
}
