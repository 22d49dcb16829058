import type { BookException, BooksReport } from '../../src/domain/books/report-schema.ts';
import { type Account, endOf, type Life, NEVER } from './books-lives.ts';
import { proofWords } from './books-proofs.ts';
import type { Accepted, BooksTruth, ReportedEvent } from './books-truth.ts';

/** Longest time between a receiver's answer and the note of a daemon that was stopped meanwhile. */
const NOTED_WITHIN_MS = 10_000;

/** Least and greatest number of times that an exception must be named. */
type Expected = Map<string, { least: number; most: number }>;

/** Compares the exceptions of a day with those that follow from the transfers made and reported. */
export function exceptionDifferences(account: Account & { truth: BooksTruth }): string[] {
  const { report } = account;
  const expected = expectedExceptions(account);
  const found = new Map<string, number>();
  for (const exception of report.exceptions) {
    const key = keyOfException(exception);
    found.set(key, (found.get(key) ?? 0) + 1);
  }
  return [...new Set([...expected.keys(), ...found.keys()])].flatMap((key) => {
    const { least, most } = expected.get(key) ?? { least: 0, most: 0 };
    const count = found.get(key) ?? 0;
    if (count < least) return [`${report.day}: ${key} is not in the report`];
    return count > most ? [`${report.day}: ${key} is in the report, and was not so`] : [];
  });
}

export function expectedExceptions({
  report,
  day,
  lives,
  dayOf,
  truth,
}: Account & { truth: BooksTruth }): Expected {
  const expected: Expected = new Map();
  const expect = (key: string, isCertain: boolean): void => {
    const { least, most } = expected.get(key) ?? { least: 0, most: 0 };
    expected.set(key, { least: least + (isCertain ? 1 : 0), most: most + 1 });
  };
  const isBy = (event: ReportedEvent): boolean => (dayOf(event) ?? NEVER) <= day;
  const mayBeBy = (event: ReportedEvent): boolean => (dayOf(event) ?? 1) <= day;
  for (const { transfer, startDay, endDay } of lives) {
    const { subject, reported } = transfer;
    if (startDay <= day && endDay > day) {
      expect(keyOf('in-flight', subject), true);
      const isRefundable = (list: readonly ReportedEvent[]) => list.at(-1)?.status === 'refundable';
      const [sure, perhaps] = [isRefundable(reported.filter(isBy)), isRefundable(reported.filter(mayBeBy))];
      if (sure || perhaps) expect(keyOf('refundable', subject), sure && perhaps);
      const overdue = reported.filter(({ type }) => type.endsWith('.overdue'));
      if (overdue.some(mayBeBy)) expect(keyOf('overdue', subject), overdue.some(isBy));
    }
    const end = endOf(transfer);
    if (endDay === day && end !== undefined && end.status !== 'refunded') {
      // Details may come after the end: until then the paid amount is unknown.
      const shown = reported.slice(reported.indexOf(end)).filter(({ showsDestination }) => showsDestination);
      if (!shown.some(isBy)) expect(keyOf('amount-unknown', subject), !shown.some(mayBeBy));
    }
    for (const [kind, isCertain] of proofExceptions({ transfer, startDay, endDay }, { day, dayOf, truth })) {
      expect(keyOf(kind, subject), isCertain);
    }
    for (const event of reported) {
      const eventDay = dayOf(event);
      if (eventDay !== null && eventDay !== day) continue;
      for (const [receiver, accepted] of truth.receivers) {
        const kills = receiver === truth.dead ? truth.kills : [];
        const { closeAfterMs } = truth;
        const verdict = wasAccepted(accepted.get(event.id), { report, closeAfterMs, kills });
        if (verdict === true) continue;
        const text = `${event.type} was not delivered to ${receiver} by then`;
        expect(keyOf('undelivered', subject, text), verdict === false && eventDay === day);
      }
    }
  }
  return expected;
}

/** Disputed and unproved payments of a day on which the transfer was observed, and whether they are certain. */
function proofExceptions(
  { transfer, startDay, endDay }: Life,
  { day, dayOf, truth }: Pick<Account, 'day' | 'dayOf'> & { truth: BooksTruth },
): (readonly ['disputed' | 'unproven', boolean])[] {
  const { reported, stated } = transfer;
  const days = reported.map(dayOf);
  const isSeen = (startDay <= day && day <= endDay) || days.some((one) => one === day);
  if (!isSeen && !days.includes(null)) return [];
  const end = endOf(transfer);
  const isDelivered = endDay === day && end?.status !== 'refunded';
  const isChecked = stated.some(
    ({ payment, chainId }) => payment === 'destination' && truth.checkedChains.has(chainId),
  );
  // A chain that no record has named by then is not known to have endpoints.
  const shown = reported.filter(({ showsDestination }) => showsDestination).map(dayOf);
  const isShown = shown.some((one) => (one ?? NEVER) <= day);
  const words = proofWords(transfer, { day, dayOf, isEnded: endDay <= day });
  const named = [...words].flatMap((word): (readonly ['disputed' | 'unproven', boolean])[] => {
    if (word === 'disputed' || word === 'unproven') return [[word, true]];
    return word === 'not checked' && isDelivered && isChecked ? [['unproven', isShown]] : [];
  });
  return named.map(([kind, isCertain]) => [kind, isCertain && isSeen && words.size === 1]);
}

/** True when a receiver had accepted an event before the report of its day was made; null where that is unknown. */
function wasAccepted(
  accepted: Accepted | undefined,
  { report, closeAfterMs, kills }: { report: BooksReport } & Pick<BooksTruth, 'closeAfterMs' | 'kills'>,
): boolean | null {
  const byMs = Math.min(Date.parse(report.madeAt), Date.parse(report.to) + closeAfterMs);
  if (accepted === undefined || accepted.firstMs > byMs) return false;
  // A daemon that was killed before it noted the answer sends again, and the receiver has died by then.
  const { lastMs } = accepted;
  if (kills.some(({ fromMs, toMs }) => fromMs <= lastMs + NOTED_WITHIN_MS && toMs >= lastMs)) return null;
  const isDayOver = Date.parse(report.madeAt) > byMs;
  return isDayOver && lastMs > byMs - NOTED_WITHIN_MS ? null : true;
}

export function keyOfException({ kind, subject, text }: BookException): string {
  return keyOf(kind, subject.toLowerCase(), kind === 'undelivered' ? text : '');
}

function keyOf(kind: string, subject: string, text = ''): string {
  return [kind, subject, text].filter((part) => part !== '').join(' ');
}
