import { NOT_TIED } from '../proof/proof.ts';
import { addToBalances, type BalanceSums, balancesOf, type Closing, noBalances } from './balances.ts';
import type { BookState } from './book-state.ts';
import { type Day, type DayTransfer, deliveriesBy, type ReportEvent, type ReportTransfer } from './day.ts';
import { amountOf, type BookNames, linesOf, Sums, sumsOf, type TokenPlace } from './postings.ts';
import {
  type BookException,
  type BooksReport,
  EXCEPTION_KINDS,
  type ExceptionKind,
  type ReportRow,
} from './report-schema.ts';
import { proofOf, rowOf } from './row.ts';

/** Rules of a day's exceptions: grace of deliveries after its end, and the checked chains. A closed day retains its rules. */
export type DayRules = { closeAfterMs: number; checked: ReadonlySet<string> };

/** Input of a report: transfers under way at the start of the day and all touched since, in batches. */
type ReportData = {
  day: Day;
  nowMs: number;
  openedMs: number;
  closedMs: number;
  readMs: number;
  rules: DayRules;
  transfers: AsyncIterable<readonly ReportTransfer[]>;
  /** Null when no day was closed at that time. */
  closings: { from: readonly Closing[] | null; to: readonly Closing[] | null };
  breaks: readonly { atMs: number; kind: string; detail: string }[];
  names: BookNames;
};

/** Time that a delivery may take before an open day lists it. */
const USUAL_DELIVERY_MS = 60_000;

/** Makes the books of a day from the rows alone. Works on the transfers as they come, and retains only their rows. */
export async function makeReport(data: ReportData): Promise<BooksReport> {
  const { day, nowMs, names } = data;
  // Transfers under way when the books began are booked right before that, and are the opening of the first day of any zone.
  const counted = { ...day, fromMs: Math.max(day.fromMs, data.openedMs) };
  const isClosed = data.closedMs >= day.toMs;
  // A delivery missing by then is listed, whatever its later result.
  const reportByMs = Math.min(nowMs, day.toMs + data.rules.closeAfterMs);
  const { checked } = data.rules;
  const context = { ...data, checked, reportByMs, graceMs: isClosed ? 0 : USUAL_DELIVERY_MS };
  const sums = noSums();
  const exceptions: BookException[] = [];
  const rows: ReportRow[] = [];
  for await (const some of data.transfers) {
    for (const transfer of some.map((one) => asOfDay(one, counted)).filter(isTouched)) {
      const found = exceptionsOf(transfer, context);
      if (found.length === 0 && !isOfDay(transfer)) continue;
      exceptions.push(...found);
      rows.push(rowOf(transfer, context));
      addPostings(sums, transfer);
      addToBalances(sums, transfer, counted);
    }
  }
  const { balances, checks } = balancesOf(sums, data);
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
    delivered: sumsOf(sums.delivered, names),
    refunded: sumsOf(sums.refunded, names),
    fees: sumsOf(sums.fee, names),
    routes: sums.routes.list().map(({ key, count, amount }) => ({
      ...amountOf(amount, key, names),
      count,
      side: key.side,
      source: names.chain(key.source) ?? key.source,
      destination: names.chain(key.destination) ?? key.destination,
    })),
    exceptions: exceptions.sort(worstFirst),
    transfers: rows.sort(byTime),
  };
}

type RoutePlace = TokenPlace & { source: string; destination: string; side: 'started' | 'delivered' };

type DaySums = BalanceSums & {
  delivered: Sums<TokenPlace>;
  refunded: Sums<TokenPlace>;
  fee: Sums<TokenPlace>;
  routes: Sums<RoutePlace>;
};

function noSums(): DaySums {
  return {
    ...noBalances(),
    delivered: new Sums(),
    refunded: new Sums(),
    fee: new Sums(),
    routes: new Sums(),
  };
}

function addPostings(sums: DaySums, { inDay, state }: DayTransfer): void {
  const source = state.transfer.source?.chainId ?? '';
  const destination = state.transfer.destination?.chainId ?? '';
  for (const { side, chainId, token, count, amount } of inDay) {
    const place = { chainId, token };
    if (side === 'delivered' || side === 'refunded' || side === 'fee') sums[side].add(place, count, amount);
    if (side === 'started' || side === 'delivered')
      sums.routes.add({ ...place, source, destination, side }, count, amount);
  }
}

function asOfDay(transfer: ReportTransfer, { fromMs, toMs }: Day): DayTransfer {
  const { postings, events } = transfer;
  const openAt = (ms: number): number =>
    postings.reduce((sum, one) => {
      if (one.bookedMs >= ms) return sum;
      return sum + (one.side === 'started' ? one.count : one.side === 'ended' ? -one.count : 0);
    }, 0);
  const earlier = events.filter(({ bookedMs }) => bookedMs < toMs);
  return {
    ...transfer,
    state: withoutLaterProofs(earlier.at(-1)?.state ?? beforeSeen(events[0]?.state), events, toMs),
    openBefore: openAt(fromMs),
    openAfter: openAt(toMs),
    inDay: postings.filter(({ bookedMs }) => bookedMs >= fromMs && bookedMs < toMs),
    eventsInDay: events.filter(({ bookedMs }) => bookedMs >= fromMs && bookedMs < toMs),
  };
}

const PROOF_TYPE = /\.(verified|disputed|unproven)$/;

/** Removes proofs made after the day, even if the upstream's last change is of the day. */
function withoutLaterProofs(state: BookState, events: readonly ReportEvent[], toMs: number): BookState {
  const later = events.filter(({ type, bookedMs }) => bookedMs >= toMs && PROOF_TYPE.test(type));
  const reported = new Set(later.map((event) => JSON.stringify(event.state.proofs.at(-1))));
  return { ...state, proofs: state.proofs.filter((proof) => !reported.has(JSON.stringify(proof))) };
}

/** State of a transfer first seen after the day in which it was funded: under way. */
function beforeSeen(state: BookState | undefined): BookState {
  const { delivered: _, refund: __, ...transfer } = state?.transfer ?? {};
  return {
    ...(state ?? { wallets: [], subscriptions: [], metadata: {}, fundedAtMs: null, reportedMs: null }),
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

/** True when a transfer concerns a day. One that ended before may still be reported, or disappear. */
function isTouched({ openBefore, inDay, eventsInDay }: DayTransfer): boolean {
  return openBefore > 0 || inDay.length > 0 || eventsInDay.length > 0;
}

function isOfDay({ openBefore, inDay, eventsInDay }: DayTransfer): boolean {
  return openBefore > 0 || inDay.length > 0 || eventsInDay.some(({ type }) => PROOF_TYPE.test(type));
}

/** Time since the event log was read last after which a report states that it lacks later events. */
const UNREAD_MS = 60_000;

function notesOf(
  { day, nowMs, openedMs, readMs, breaks, closedMs, rules }: ReportData,
  isClosed: boolean,
): string[] {
  const notes = [
    'A transfer is in the day in which its status changed, as the upstream reports it; where that day was closed when it was seen, in the day that was open then.',
  ];
  if (day.fromMs <= openedMs) {
    const began = `what was under way when they began, at ${iso(openedMs)}, is its opening`;
    notes.push(`This is the first day of the books: ${began}.`);
  }
  if (nowMs < day.toMs) notes.push('The day is not over.');
  else if (!isClosed) {
    const dueMs = Math.max(closedMs, day.toMs + rules.closeAfterMs);
    notes.push(`The day is over and not closed${nowMs < dueMs ? ` before ${iso(dueMs)}` : ''}.`);
  }
  if (!isClosed && readMs === 0) notes.push('The event log was not read to its end yet: events are missing.');
  else if (!isClosed && readMs < Math.min(nowMs, day.toMs) - UNREAD_MS)
    notes.push(`The event log was read to its end at ${iso(readMs)} last: later events are missing.`);
  return [...notes, ...breaks.map(({ atMs, detail }) => `${iso(atMs)}: ${detail}.`)];
}

/** Sorts exceptions so that a dispute comes before a transfer under way; equal kinds stay in their order. */
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

/** Bounds of a delivery: `reportByMs` is its latest time; `graceMs` is allowed in an open day, 0 in a closed one. */
type ExceptionContext = { day: Day; reportByMs: number; graceMs: number; checked: ReadonlySet<string> };

function exceptionsOf(transfer: DayTransfer, context: ExceptionContext): BookException[] {
  const { subject, state, openAfter, inDay, eventsInDay } = transfer;
  const found: BookException[] = [];
  const add = (kind: ExceptionKind, text: string): void => void found.push({ kind, subject, text });
  const status = state.status.toLowerCase();
  if (openAfter > 0) {
    const since = state.fundedAtMs === null ? '' : ` since ${new Date(state.fundedAtMs).toISOString()}`;
    add('in-flight', `under way${since}, ${status || 'without a status'}`);
    if (state.isOverdue) add('overdue', 'it takes longer than expected');
    if (status === 'refundable') add('refundable', 'its funds can be claimed back, and were not');
  }
  const { proof, proofReason } = proofOf(state);
  if (proof === 'disputed')
    add('disputed', `the chain contradicts it: ${proofReason ?? 'no reason was given'}`);
  const chainId = state.transfer.destination?.chainId ?? '';
  const isDeliveredNow = state.phase === 'delivered' && inDay.some(({ side }) => side === 'ended');
  const isUnproven =
    proof === 'unproven' || (proof === 'not checked' && isDeliveredNow && context.checked.has(chainId));
  if (isUnproven) {
    const onChain =
      proofReason === NOT_TIED ? 'nothing on the chain ties a payment to it' : 'the chain does not have it';
    add('unproven', `delivered, and ${proof === 'unproven' ? onChain : 'not proved by then'}`);
  }
  for (const event of eventsInDay) {
    for (const text of undelivered(event, context)) add('undelivered', text);
  }
  if (state.isGone) add('gone', 'the service knew it, and does not any more');
  if (linesOf(state).some(({ side, token }) => side === 'started' && token === '')) {
    add('amount-unknown', 'no record states how much of which token was sent');
  }
  if (isDeliveredNow && state.transfer.delivered === undefined && !state.isCountedElsewhere) {
    add('amount-unknown', 'no record states how much of which token was paid out');
  }
  return found;
}

/** Receivers that did not accept an event in time. */
function undelivered(event: ReportEvent, { reportByMs, graceMs }: ExceptionContext): string[] {
  return deliveriesBy(event, reportByMs).flatMap(({ receiver, state, deliveredMs, eventMs }) => {
    if (deliveredMs !== null && deliveredMs <= reportByMs) return [];
    if (graceMs > 0 && state === 'waiting' && eventMs > reportByMs - graceMs) return [];
    return [`${event.type} was not delivered to ${receiver} by then`];
  });
}
