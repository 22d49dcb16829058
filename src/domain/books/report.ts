import type { BookState } from './book-state.ts';
import type { Day } from './day.ts';
import type { DayTransfer, ReportTransfer } from './day-transfer.ts';
import { exceptionsOf } from './exceptions.ts';
import { linesOf } from './postings.ts';
import {
  type Balance,
  type BookCheck,
  type BookException,
  EXCEPTION_KINDS,
  type Report,
  type ReportRow,
} from './report-schema.ts';
import { rowOf } from './row.ts';
import { amountOf, type BookNames, Sums, sumsOf, type TokenPlace, unitsOf } from './sums.ts';

/** What was written down when a day was closed. */
export type Closing = TokenPlace & { count: number; amount: bigint };

/** What a report is made from: transfers under way when the day began, and all that were touched since. */
export type ReportData = {
  day: Day;
  nowMs: number;
  openedMs: number;
  closedMs: number;
  readMs: number;
  closeAfterMs: number;
  transfers: readonly ReportTransfer[];
  /** Null where no day was closed at that moment. */
  closings: { from: readonly Closing[] | null; to: readonly Closing[] | null };
  breaks: readonly { atMs: number; kind: string; detail: string }[];
  /** The chains whose payments are checked. */
  checked: ReadonlySet<string>;
  names: BookNames;
};

/** How long a delivery may take before a day that is not closed names it. */
const USUAL_DELIVERY_MS = 60_000;

/** The books of a day. Pure: what it says follows from the rows alone. */
export function makeReport(data: ReportData): Report {
  const { day, nowMs, names } = data;
  const isClosed = data.closedMs >= day.toMs;
  // What was not delivered by then is named, whatever became of it later.
  const tellByMs = Math.min(nowMs, day.toMs + data.closeAfterMs);
  const context = { ...data, tellByMs, graceMs: isClosed ? 0 : USUAL_DELIVERY_MS };
  const named = data.transfers
    .map((transfer) => asOfDay(transfer, day))
    .filter(isTouched)
    .map((transfer) => ({ transfer, exceptions: exceptionsOf(transfer, context) }))
    .filter(({ transfer, exceptions }) => exceptions.length > 0 || isOfDay(transfer));
  const transfers = named.map(({ transfer }) => transfer);
  const { balances, checks } = balance(transfers, data);
  const [delivered, refunded, fees] = [
    new Sums<TokenPlace>(),
    new Sums<TokenPlace>(),
    new Sums<TokenPlace>(),
  ];
  const routes = new Sums<
    TokenPlace & { source: string; destination: string; side: 'started' | 'delivered' }
  >();
  for (const { inDay, state } of transfers) {
    const source = state.transfer.source?.chainId ?? '';
    const destination = state.transfer.destination?.chainId ?? '';
    for (const { side, chainId, token, count, amount } of inDay) {
      const place = { chainId, token };
      if (side === 'delivered') delivered.add(place, count, amount);
      if (side === 'refunded') refunded.add(place, count, amount);
      if (side === 'fee') fees.add(place, count, amount);
      if (side === 'started' || side === 'delivered')
        routes.add({ ...place, source, destination, side }, count, amount);
    }
  }
  return {
    day: day.day,
    zone: day.zone,
    from: iso(day.fromMs),
    to: iso(day.toMs),
    state: isClosed ? 'closed' : 'open',
    madeAt: iso(nowMs),
    readUntil: data.readMs === 0 ? null : iso(data.readMs),
    notes: notesOf(data, isClosed),
    checks,
    balances,
    delivered: sumsOf(delivered, names),
    refunded: sumsOf(refunded, names),
    fees: sumsOf(fees, names),
    routes: routes.list().map(({ key, count, amount }) => ({
      ...amountOf(amount, key, names),
      count,
      side: key.side,
      source: names.chain(key.source) ?? key.source,
      destination: names.chain(key.destination) ?? key.destination,
    })),
    exceptions: named.flatMap(({ exceptions }) => exceptions).sort(worstFirst),
    transfers: transfers.map((transfer) => rowOf(transfer, context)).sort(byTime),
  };
}

function asOfDay(transfer: ReportTransfer, { fromMs, toMs }: Day): DayTransfer {
  const { postings, events } = transfer;
  const openAt = (ms: number): number =>
    postings.reduce((sum, one) => {
      if (one.bookedMs >= ms) return sum;
      return sum + (one.side === 'started' ? one.count : one.side === 'ended' ? -one.count : 0);
    }, 0);
  const known = events.filter(({ bookedMs }) => bookedMs < toMs);
  return {
    ...transfer,
    state: known.at(-1)?.state ?? beforeSeen(events[0]?.state),
    openBefore: openAt(fromMs),
    openAfter: openAt(toMs),
    inDay: postings.filter(({ bookedMs }) => bookedMs >= fromMs && bookedMs < toMs),
    eventsInDay: events.filter(({ bookedMs }) => bookedMs >= fromMs && bookedMs < toMs),
  };
}

/** A transfer that was first seen after the day, in which it was funded: then it was under way. */
function beforeSeen(state: BookState | undefined): BookState {
  const { delivered: _, refund: __, ...transfer } = state?.transfer ?? {};
  return {
    ...(state ?? { wallets: [], subscriptions: [], metadata: {}, fundedAtMs: null }),
    transfer,
    phase: 'open',
    status: 'pending',
    endedAtMs: null,
    isOverdue: false,
    isGone: false,
    isCountedElsewhere: false,
    proofs: [],
  };
}

const PROOF_TYPE = /\.(verified|disputed|unproven)$/;

/** Whether anything is to be said of a transfer on a day: what ended before may still be told, or go. */
function isTouched({ openBefore, inDay, eventsInDay }: DayTransfer): boolean {
  return openBefore > 0 || inDay.length > 0 || eventsInDay.length > 0;
}

function isOfDay({ openBefore, inDay, eventsInDay }: DayTransfer): boolean {
  return openBefore > 0 || inDay.length > 0 || eventsInDay.some(({ type }) => PROOF_TYPE.test(type));
}

/** Opening, started, ended and closing per source token, and whether they agree with what is known otherwise. */
function balance(
  transfers: readonly DayTransfer[],
  data: ReportData,
): { balances: Balance[]; checks: BookCheck[] } {
  const { day, names, closings } = data;
  const opening = new Sums<TokenPlace>();
  const started = new Sums<TokenPlace>();
  const ended = new Sums<TokenPlace>();
  const late = new Sums<TokenPlace>();
  const corrections = new Sums<TokenPlace>();
  const underWay = new Sums<TokenPlace>();
  for (const { postings, state, openAfter } of transfers) {
    for (const { side, chainId, token, count, amount, bookedMs, isLate, isCorrection } of postings) {
      if ((side !== 'started' && side !== 'ended') || bookedMs >= day.toMs) continue;
      const place = { chainId, token };
      const sign = side === 'started' ? 1 : -1;
      if (bookedMs < day.fromMs) opening.add(place, sign * count, BigInt(sign) * amount);
      else {
        (side === 'started' ? started : ended).add(place, count, amount);
        if (isLate && side === 'started') late.add(place, count, amount);
        if (isCorrection) corrections.add(place, 1, 0n);
      }
    }
    if (openAfter <= 0) continue;
    for (const line of linesOf(state)) {
      if (line.side === 'started') underWay.add({ chainId: line.chainId, token: line.token }, 1, line.amount);
    }
  }
  const places = new Sums<TokenPlace>();
  for (const sums of [opening, started, ended, underWay, corrections])
    for (const { key } of sums.list()) places.add(key, 1, 0n);
  const closing = new Sums<TokenPlace>();
  const balances = places.list().map(({ key }) => {
    const parts = { opening: opening.get(key), started: started.get(key), ended: ended.get(key) };
    const count = parts.opening.count + parts.started.count - parts.ended.count;
    const amount = parts.opening.amount + parts.started.amount - parts.ended.amount;
    closing.add(key, count, amount);
    const shown = (sum: { count: number; amount: bigint }) => ({
      count: sum.count,
      amount: String(sum.amount),
      units: unitsOf(sum.amount, key, names),
    });
    const { amount: _, units: __, ...token } = amountOf(0n, key, names);
    return {
      ...token,
      opening: shown(parts.opening),
      started: shown(parts.started),
      ended: shown(parts.ended),
      closing: shown({ count, amount }),
      late: shown(late.get(key)),
      corrections: corrections.get(key).count,
    };
  });
  const checks = [
    agreement('the closing', 'the transfers under way when the day ended', closing, underWay),
    ...(closings.from === null
      ? []
      : [
          agreement(
            'the opening',
            'what was written down when the day before was closed',
            opening,
            asSums(closings.from),
          ),
        ]),
    ...(closings.to === null
      ? []
      : [
          agreement(
            'the closing',
            'what was written down when the day was closed',
            closing,
            asSums(closings.to),
          ),
        ]),
  ];
  return { balances, checks };
}

function asSums(closings: readonly Closing[]): Sums<TokenPlace> {
  const sums = new Sums<TokenPlace>();
  for (const { chainId, token, count, amount } of closings) sums.add({ chainId, token }, count, amount);
  return sums;
}

/** Whether two sums are the same in every token. */
function agreement(one: string, other: string, ones: Sums<TokenPlace>, others: Sums<TokenPlace>): BookCheck {
  const text = (sums: Sums<TokenPlace>): string[] =>
    sums
      .list()
      .map(
        ({ key, count, amount }) => `${count} of ${amount} of ${key.token || '?'} on ${key.chainId || '?'}`,
      );
  const [found, expected] = [new Set(text(ones)), new Set(text(others))];
  const differences = [
    ...[...found.difference(expected)].map((what) => `${one} has ${what}`),
    ...[...expected.difference(found)].map((what) => `${other}: ${what}`),
  ];
  const ok = differences.length === 0;
  return { ok, text: ok ? `${one} is ${other}` : `${one} is not ${other}: ${differences.join('; ')}` };
}

function notesOf(
  { day, nowMs, openedMs, readMs, breaks, closedMs, closeAfterMs }: ReportData,
  isClosed: boolean,
): string[] {
  const notes = [
    'A transfer is in the day in which the upstream says that its status changed; where that day was closed when it was seen, in the day that was open then.',
  ];
  if (day.toMs <= openedMs) notes.push(`The books begin at ${iso(openedMs)}: nothing before is in them.`);
  else if (day.fromMs <= openedMs) {
    notes.push('This is the first day of the books: what was under way when it began is its opening.');
  }
  if (nowMs < day.fromMs) notes.push('The day has not begun.');
  else if (nowMs < day.toMs) notes.push('The day is not over.');
  else if (!isClosed) {
    const dueMs = Math.max(closedMs, day.toMs + closeAfterMs);
    notes.push(
      nowMs < dueMs
        ? `The day is over and not closed before ${iso(dueMs)}.`
        : `The day is over and not closed, for the event log was read until ${readMs === 0 ? 'nowhere' : iso(readMs)}.`,
    );
  }
  return [...notes, ...breaks.map(({ atMs, detail }) => `${iso(atMs)}: ${detail}.`)];
}

/** A dispute is not hidden behind what is merely under way; of one kind they stay in their order. */
function worstFirst(one: BookException, other: BookException): number {
  return EXCEPTION_KINDS.indexOf(one.kind) - EXCEPTION_KINDS.indexOf(other.kind);
}

function byTime(one: ReportRow, other: ReportRow): number {
  const [a, b] = [one.fundedAt ?? '', other.fundedAt ?? ''];
  return a < b ? -1 : a > b ? 1 : one.subject < other.subject ? -1 : 1;
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
