import type { BookException, Report, ReportRow } from '../../src/domain/books/report-schema.ts';
import { Sums } from './books-sums.ts';
import {
  type Accepted,
  type BooksTruth,
  ENDED,
  type Money,
  type ToldEvent,
  type TrueTransfer,
} from './books-truth.ts';

/** How long after a receiver's answer a daemon that stood still may have noted it. */
const NOTED_WITHIN_MS = 10_000;

/** On which of two days something is in the books; `null`: it was appended while the first one was being closed. */
type DayNumber = 1 | 2 | null;

/** The days in which a transfer starts and ends in the books, by what was made; `NEVER` is after both. */
type Life = { transfer: TrueTransfer; startDay: number; endDay: number };

const NEVER = 3;

/** Says of an event in which day it is. */
type DayOf = (event: ToldEvent) => DayNumber;

/**
 * What the books of two days in a row say otherwise than what was made and told; nothing where they agree. Which day
 * something is in follows from when it happened, and from whether it was told before the first day was closed.
 */
export function differencesOf(reports: readonly [Report, Report], truth: BooksTruth): string[] {
  const [first, second] = reports;
  const found = reports.flatMap(ownProblems);
  if (first.state !== 'closed') found.push(`${first.day} is ${first.state}, and should be closed by now`);
  const [rows, laterRows] = [rowsOf(first), rowsOf(second)];
  const known = new Set(truth.transfers.map(({ subject }) => subject));
  for (const subject of new Set([...rows.keys(), ...laterRows.keys()])) {
    if (!known.has(subject)) found.push(`${subject} is in the books, and was not made`);
  }
  for (const one of truth.transfers) {
    found.push(...differencesOfOne(laterRows.get(one.subject) ?? rows.get(one.subject), one));
  }
  const { lives, dayOf, problems } = livesOf(reports, truth);
  found.push(...problems, ...truth.transfers.flatMap((one) => earlyWarnings(one, truth)));
  for (const [index, report] of reports.entries()) {
    found.push(...sumDifferences({ report, day: index + 1, lives, dayOf }));
    found.push(...rowDifferences({ report, day: index + 1, lives, dayOf }));
    found.push(...exceptionDifferences({ report, day: index + 1, lives, dayOf, truth }));
  }
  return found;
}

/** What a report itself says is wrong. No log was lost here, and none was set back. */
function ownProblems({ day, checks, notes }: Report): string[] {
  return [
    ...checks.filter(({ ok }) => !ok).map(({ text }) => `${day}: ${text}`),
    ...notes.filter((note) => /^\d{4}-\d{2}-\d{2}T/.test(note)).map((note) => `${day}: ${note}`),
  ];
}

function rowsOf(report: Report): Map<string, ReportRow> {
  return new Map(report.transfers.map((row) => [row.subject.toLowerCase(), row]));
}

/** The first event that told of an end. */
function endOf({ told }: TrueTransfer): ToldEvent | undefined {
  return told.find(({ status }) => ENDED.has(status));
}

/** What the newest row of a transfer says otherwise than what was made. */
function differencesOfOne(row: ReportRow | undefined, transfer: TrueTransfer): string[] {
  const { subject, statuses, saidMs, source, destination, told } = transfer;
  if (row === undefined) return [`${subject} is not in the books`];
  const found: string[] = [];
  const differ = (what: string, was: unknown, has: unknown): void => {
    if (was !== has) found.push(`${subject}: ${what} was ${was}, in the books ${has}`);
  };
  differ('its last status', statuses.at(-1)?.status, told.at(-1)?.status ?? row.status);
  const times = new Set([...statuses.map(({ atMs }) => atMs), ...saidMs]);
  const fundedMs = Date.parse(row.fundedAt ?? '');
  if (told[0]?.status === 'pending') differ('its funding', statuses[0]?.atMs, fundedMs);
  else if (!times.has(fundedMs)) found.push(`${subject} was not funded at ${row.fundedAt}`);
  const end = endOf(transfer);
  if (end !== undefined && !times.has(end.happenedMs)) found.push(`${subject} did not end at ${row.endedAt}`);
  differ('its end', end?.happenedMs, row.endedAt === null ? undefined : Date.parse(row.endedAt));
  if (source !== null) differ('what it sent', String(source.amount), row.sent?.amount);
  if (row.phase === 'delivered' && destination !== null)
    differ('what it delivered', String(destination.amount), row.delivered?.amount);
  return found;
}

/** What was told as overdue before its time, by its first second. */
function earlyWarnings({ subject, statuses, told }: TrueTransfer, { overdueAfterMs }: BooksTruth): string[] {
  const dueMs = (statuses[0]?.atMs ?? 0) + overdueAfterMs;
  const early = told.some(({ type, happenedMs }) => type.endsWith('.overdue') && happenedMs < dueMs);
  return early ? [`${subject} was told as overdue before its time`] : [];
}

/**
 * The days of all transfers. What happened in the first day and is booked in the second must have been told after the first
 * was closed, and whatever was told later than that must be booked there too.
 */
function livesOf(
  [first, second]: readonly [Report, Report],
  { transfers, closeAfterMs }: BooksTruth,
): { lives: Life[]; dayOf: DayOf; problems: string[] } {
  const midnightMs = Date.parse(first.to);
  const [rows, laterRows] = [rowsOf(first), rowsOf(second)];
  const onTime: ToldEvent[] = [];
  const late: ToldEvent[] = [];
  const lives = transfers.map((transfer): Life => {
    const [row, later] = [rows.get(transfer.subject), laterRows.get(transfer.subject)];
    const [start, end] = [transfer.told[0], endOf(transfer)];
    const fundedMs = Date.parse((later ?? row)?.fundedAt ?? '');
    const bookedDay = (isIn: boolean, happenedMs: number, event: ToldEvent | undefined): number => {
      if (happenedMs >= midnightMs) return 2;
      if (event !== undefined) (isIn ? onTime : late).push(event);
      return isIn ? 1 : 2;
    };
    const startDay = bookedDay(row !== undefined, fundedMs, start);
    const isEndIn = row !== undefined && row.phase !== 'open';
    return {
      transfer,
      startDay,
      endDay: end === undefined ? NEVER : bookedDay(isEndIn, end.happenedMs, end),
    };
  });
  const lastOnTimeMs = Math.max(midnightMs, ...onTime.map(({ appendedMs }) => appendedMs));
  const firstLateMs = Math.min(Number.POSITIVE_INFINITY, ...late.map(({ appendedMs }) => appendedMs));
  const problems = late
    .filter(({ appendedMs }) => appendedMs < Math.max(midnightMs + closeAfterMs, lastOnTimeMs))
    .map(({ id, type }) => `${type} ${id} is booked late, and was told before the day was closed`);
  const isMarked = new Set(
    second.transfers.filter(({ late: is }) => is).map(({ subject }) => subject.toLowerCase()),
  );
  for (const { subject, told } of transfers) {
    const isLate = told.some((event) => late.includes(event));
    if (isLate !== isMarked.has(subject))
      problems.push(`${subject} is ${isLate ? 'late, and not marked' : 'marked as late'}`);
  }
  const dayOf: DayOf = ({ happenedMs, appendedMs }) => {
    if (happenedMs >= midnightMs || appendedMs >= firstLateMs) return 2;
    return appendedMs <= lastOnTimeMs || appendedMs < midnightMs + closeAfterMs ? 1 : null;
  };
  return { lives, dayOf, problems };
}

type Account = { report: Report; day: number; lives: readonly Life[]; dayOf: DayOf };

/** Every sum of a day, against the same sum over what was made. */
function sumDifferences({ report, day, lives, dayOf }: Account): string[] {
  const made = {
    opening: new Sums(),
    started: new Sums(),
    ended: new Sums(),
    closing: new Sums(),
    delivered: new Sums(),
    refunded: new Sums(),
  };
  const row = rowsOf(report);
  for (const { transfer, startDay, endDay } of lives) {
    const { source, destination, subject, told } = transfer;
    const add = (name: keyof typeof made, money: Money | null, isSo: boolean): void => {
      if (isSo && money !== null) made[name].add(money);
    };
    add('opening', source, startDay < day && endDay >= day);
    add('started', source, startDay === day);
    add('ended', source, endDay === day);
    add('closing', source, startDay <= day && endDay > day);
    const end = endOf(transfer);
    add('refunded', source, endDay === day && end?.status === 'refunded');
    if (end === undefined || end.status === 'refunded') continue;
    // It is delivered with the first answer that shows how much.
    const shown = told.slice(told.indexOf(end)).find(({ showsDestination }) => showsDestination);
    const shownDay =
      shown === undefined ? NEVER : (dayOf(shown) ?? (row.get(subject)?.delivered == null ? 2 : 1));
    add('delivered', destination, shownDay === day);
  }
  const has = {
    ...Object.fromEntries(
      (['opening', 'started', 'ended', 'closing'] as const).map((name) => [
        name,
        Sums.of(report.balances.map((balance) => ({ ...balance, ...balance[name] }))),
      ]),
    ),
    delivered: Sums.of(report.delivered),
    refunded: Sums.of(report.refunded),
    'started by routes': Sums.of(report.routes.filter(({ side }) => side === 'started')),
    'delivered by routes': Sums.of(report.routes.filter(({ side }) => side === 'delivered')),
  };
  const wanted = {
    ...made,
    'started by routes': made.started,
    'delivered by routes': made.delivered,
  };
  return Object.entries(has).flatMap(([name, sums]) =>
    sums
      .unlike(new Map(Object.entries(wanted)).get(name) ?? new Sums())
      .map((what) => `${report.day} ${name}: ${what}`),
  );
}

/**
 * A transfer has a row on each day in which it was under way, and where an exception of it is named; no other has. The row
 * says the status that was told last by then.
 */
function rowDifferences({ report, day, lives, dayOf }: Account): string[] {
  const rows = rowsOf(report);
  const named = new Set(report.exceptions.map(({ subject }) => subject.toLowerCase()));
  return lives.flatMap(({ transfer: { subject, told, statuses }, startDay, endDay }) => {
    const row = rows.get(subject);
    const isOfDay = (startDay <= day && day <= endDay) || named.has(subject);
    if (row === undefined) return isOfDay ? [`${report.day}: no row of ${subject}`] : [];
    if (!isOfDay) return [`${report.day}: a row of ${subject}, of which nothing was to be said`];
    const days = told.map(dayOf);
    if (days.includes(null)) return [];
    const last = told.findLast((_, at) => (days[at] ?? NEVER) <= day)?.status ?? statuses[0]?.status;
    // One that was under way when its wallet was subscribed is in the books before anything is told of it.
    if (row.status === last || (row.carried && told.length === 0)) return [];
    return [`${report.day}: ${subject} was ${last}, in the books ${row.status}`];
  });
}

/** How often an exception must be named at least, and at most. */
type Expected = Map<string, { least: number; most: number }>;

/** Every exception of a day by what was made and told, and nothing else. */
function exceptionDifferences(account: Account & { truth: BooksTruth }): string[] {
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

function expectedExceptions({ report, day, lives, dayOf, truth }: Account & { truth: BooksTruth }): Expected {
  const expected: Expected = new Map();
  const expect = (key: string, isCertain: boolean): void => {
    const { least, most } = expected.get(key) ?? { least: 0, most: 0 };
    expected.set(key, { least: least + (isCertain ? 1 : 0), most: most + 1 });
  };
  const isBy = (event: ToldEvent): boolean => (dayOf(event) ?? NEVER) <= day;
  const mayBeBy = (event: ToldEvent): boolean => (dayOf(event) ?? 1) <= day;
  for (const { transfer, startDay, endDay } of lives) {
    const { subject, told } = transfer;
    if (startDay <= day && endDay > day) {
      expect(keyOf('in-flight', subject), true);
      const isRefundable = (list: readonly ToldEvent[]) => list.at(-1)?.status === 'refundable';
      const [sure, perhaps] = [isRefundable(told.filter(isBy)), isRefundable(told.filter(mayBeBy))];
      if (sure || perhaps) expect(keyOf('refundable', subject), sure && perhaps);
      const overdue = told.filter(({ type }) => type.endsWith('.overdue'));
      if (overdue.some(mayBeBy)) expect(keyOf('overdue', subject), overdue.some(isBy));
    }
    const end = endOf(transfer);
    if (endDay === day && end !== undefined && end.status !== 'refunded') {
      // Details may come after the end: until then it is not known how much was paid out.
      const shown = told.slice(told.indexOf(end)).filter(({ showsDestination }) => showsDestination);
      if (!shown.some(isBy)) expect(keyOf('amount-unknown', subject), !shown.some(mayBeBy));
    }
    for (const event of told) {
      const eventDay = dayOf(event);
      if (eventDay !== null && eventDay !== day) continue;
      for (const [receiver, accepted] of truth.receivers) {
        const verdict = wasAccepted(accepted.get(event.id), { report, closeAfterMs: truth.closeAfterMs });
        if (verdict === true) continue;
        const text = `${event.type} was not delivered to ${receiver} by then`;
        expect(keyOf('undelivered', subject, text), verdict === false && eventDay === day);
      }
    }
  }
  return expected;
}

/** Whether a receiver had accepted an event when the report of its day looked; null where that cannot be told. */
function wasAccepted(
  accepted: Accepted | undefined,
  { report, closeAfterMs }: { report: Report; closeAfterMs: number },
): boolean | null {
  const byMs = Math.min(Date.parse(report.madeAt), Date.parse(report.to) + closeAfterMs);
  if (accepted === undefined || accepted.firstMs > byMs) return false;
  const isDayOver = Date.parse(report.madeAt) > byMs;
  return isDayOver && accepted.lastMs > byMs - NOTED_WITHIN_MS ? null : true;
}

function keyOfException({ kind, subject, text }: BookException): string {
  return keyOf(kind, subject.toLowerCase(), kind === 'undelivered' ? text : '');
}

function keyOf(kind: string, subject: string, text = ''): string {
  return [kind, subject, text].filter((part) => part !== '').join(' ');
}

/** What is left out or altered of right books without being noticed: the account would be blind to it. */
export function blindSpots(
  reports: readonly [Report, Report],
  truth: BooksTruth,
): { tried: number; unnoticed: string[] } {
  const unnoticed: string[] = [];
  let tried = 0;
  const attempt = (what: string, day: number, alter: (report: Report) => Report): void => {
    tried += 1;
    const [first, second] = reports;
    const altered: readonly [Report, Report] = day === 1 ? [alter(first), second] : [first, alter(second)];
    if (differencesOf(altered, truth).length === 0) unnoticed.push(`${day}: ${what}`);
  };
  const { lives, dayOf } = livesOf(reports, truth);
  for (const [index, report] of reports.entries()) {
    const day = index + 1;
    const expected = expectedExceptions({ report, day, lives, dayOf, truth });
    for (const [at, exception] of report.exceptions.entries()) {
      const { kind, subject } = exception;
      const { least, most } = expected.get(keyOfException(exception)) ?? { least: 0, most: 0 };
      // What may be named and need not is no test.
      if (least !== most) continue;
      attempt(`${kind} ${subject} left out`, day, (one) => ({
        ...one,
        exceptions: one.exceptions.toSpliced(at, 1),
      }));
      attempt(`${kind} ${subject} named twice`, day, (one) => ({
        ...one,
        exceptions: [...one.exceptions, ...one.exceptions.slice(at, at + 1)],
      }));
    }
    for (const [at, { subject }] of report.transfers.entries()) {
      attempt(`${subject} left out`, day, (one) => ({ ...one, transfers: one.transfers.toSpliced(at, 1) }));
    }
    for (const name of ['opening', 'started', 'ended', 'closing'] as const) {
      for (const at of report.balances.keys()) {
        attempt(`${name} off by one unit`, day, (one) => ({
          ...one,
          balances: one.balances.map((balance, place) =>
            place === at
              ? { ...balance, [name]: { ...balance[name], amount: plusOne(balance[name].amount) } }
              : balance,
          ),
        }));
      }
    }
    for (const name of ['delivered', 'refunded'] as const) {
      for (const at of report[name].keys()) {
        attempt(`${name} off by one unit`, day, (one) => ({
          ...one,
          [name]: one[name].map((sum, place) =>
            place === at ? { ...sum, amount: plusOne(sum.amount) } : sum,
          ),
        }));
      }
    }
  }
  return { tried, unnoticed };
}

function plusOne(amount: string): string {
  return String(BigInt(amount) + 1n);
}
