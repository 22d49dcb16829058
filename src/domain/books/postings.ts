import { storableText } from '../json.ts';
import { foldHex } from '../subjects/subject.ts';
import { toUnits } from '../transfers/money.ts';
import { type BookState, believableMs, happenedMs, type Observation } from './book-state.ts';
import type { BookAmount, BookSum } from './report-schema.ts';

/**
 * Sides of the books. `started` and `ended` are in the source token; the difference is under way. `refunded` is the
 * refunded part of `ended`. `delivered` and `fee` are separate sums, in other tokens.
 */
export const SIDES = ['started', 'ended', 'refunded', 'delivered', 'fee'] as const;

type Side = (typeof SIDES)[number];

/** An amount on a side; base units. `token` is empty when unknown, and the amount is 0 then. */
type Line = { side: Side; chainId: string; token: string; count: number; amount: bigint };

/** A line with its time, ms. `isLate`: its day was closed already; `isCorrection`: its side had been posted. */
export type Posting = Line & { bookedMs: number; happenedMs: number; isLate: boolean; isCorrection: boolean };

/** Lines of a state: the postings of a transfer add up to these. */
export function linesOf({ phase, transfer, isCountedElsewhere }: BookState): Line[] {
  if (isCountedElsewhere) return [];
  const source = transfer.sent ?? transfer.toSend;
  const line = (side: Side, money: Partial<PostedAmount> | undefined): Line => ({
    side,
    chainId: storableText(money?.chainId ?? (side === 'fee' ? '' : (transfer.source?.chainId ?? ''))),
    token: storableText(foldHex(money?.token ?? '')),
    count: 1,
    amount: BigInt(money?.amount ?? 0),
  });
  const lines = [line('started', source)];
  if (phase !== 'open') lines.push(line('ended', source));
  if (phase === 'refunded') lines.push(line('refunded', source));
  if (phase === 'delivered') {
    if (transfer.delivered !== undefined) lines.push(line('delivered', transfer.delivered));
    lines.push(...(transfer.fees ?? []).map((fee) => line('fee', fee)));
  }
  return lines;
}

type PostedAmount = { chainId?: string | undefined; token?: string | undefined; amount: string };

/** Bounds of a booking: not before `closedMs` (earlier days are closed), nor before the transfer's last one. */
type BookTimes = { openedMs: number; closedMs: number; lastBookedMs: number | null };

/** Booking time of a change, ms: its own; the first open ms in a closed day; the opening for one before the books began. */
export function bookedMs(happened: number, { openedMs, closedMs, lastBookedMs }: BookTimes): number {
  const floor = closedMs <= openedMs ? openedMs - 1 : closedMs;
  return Math.max(happened, floor, lastBookedMs ?? 0);
}

/** Postings that bring a transfer to its new state; none when it has not changed. */
export function postingsBetween(
  before: BookState | null,
  after: BookState,
  { observation, times }: { observation: Observation; times: BookTimes },
): Posting[] {
  const posted = sumByPlace(before === null ? [] : linesOf(before));
  const wanted = sumByPlace(linesOf(after));
  const postedSides = new Set([...posted.values()].map(({ side }) => side));
  const postings: Posting[] = [];
  for (const [place, line] of [...posted, ...[...wanted].filter(([place]) => !posted.has(place))]) {
    const [had, has] = [posted.get(place), wanted.get(place)];
    const count = (has?.count ?? 0) - (had?.count ?? 0);
    const amount = (has?.amount ?? 0n) - (had?.amount ?? 0n);
    if (count === 0 && amount === 0n) continue;
    const isCorrection = postedSides.has(line.side);
    const isStart = line.side === 'started' && !isCorrection;
    const seenMs = Date.parse(observation.event.timestamp);
    const statedMs = isStart ? (after.fundedAtMs ?? seenMs) : happenedMs(observation.event);
    const happened = believableMs(statedMs, seenMs);
    const booked = bookedMs(happened, times);
    const isLate = happened < times.closedMs && times.closedMs > times.openedMs;
    postings.push({ ...line, count, amount, bookedMs: booked, happenedMs: happened, isLate, isCorrection });
  }
  // An end is booked no earlier than its start.
  const startedMs = Math.max(
    0,
    ...postings.filter(({ side }) => side === 'started').map((one) => one.bookedMs),
  );
  return postings.map((one) => ({ ...one, bookedMs: Math.max(one.bookedMs, startedMs) }));
}

/** Merges lines of one side, chain and token, so that the transfer counts once. */
function sumByPlace(lines: readonly Line[]): Map<string, Line> {
  const sums = new Map<string, Line>();
  for (const line of lines) {
    const place = JSON.stringify([line.side, line.chainId, line.token]);
    const sum = sums.get(place);
    sums.set(place, sum === undefined ? line : { ...sum, amount: sum.amount + line.amount });
  }
  return sums;
}

/** Names of tokens and chains in a report. */
export type BookNames = {
  token(chainId: string, token: string): { symbol: string; decimals: number } | null;
  chain(chainId: string): string | null;
};

/** Key of a sum: a token on a chain. */
export type TokenPlace = { chainId: string; token: string };

/** Signed base units in token units; null when the decimals are unknown. */
export function unitsOf(amount: bigint, place: TokenPlace, names: BookNames): string | null {
  const listed = names.token(place.chainId, place.token);
  if (listed === null) return null;
  const units = toUnits(String(amount < 0n ? -amount : amount), listed.decimals);
  return units === null || amount >= 0n ? units : `-${units}`;
}

/** Formats an amount for a report. */
export function amountOf(amount: bigint, { chainId, token }: TokenPlace, names: BookNames): BookAmount {
  return {
    chainId,
    chain: chainId === '' ? null : names.chain(chainId),
    token,
    symbol: names.token(chainId, token)?.symbol ?? null,
    amount: String(amount),
    units: unitsOf(amount, { chainId, token }, names),
  };
}

/** Counts and amounts by key. */
export class Sums<K extends TokenPlace> {
  readonly #sums = new Map<string, { key: K; count: number; amount: bigint }>();

  add(key: K, count: number, amount: bigint): void {
    const text = JSON.stringify(Object.values(key));
    const sum = this.#sums.get(text);
    if (sum === undefined) this.#sums.set(text, { key, count, amount });
    else {
      sum.count += count;
      sum.amount += amount;
    }
  }

  /** Nonzero sums, in the order of their keys. */
  list(): { key: K; count: number; amount: bigint }[] {
    return [...this.#sums]
      .filter(([, { count, amount }]) => count !== 0 || amount !== 0n)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([, sum]) => sum);
  }

  get(place: K): { count: number; amount: bigint } {
    return this.#sums.get(JSON.stringify(Object.values(place))) ?? { count: 0, amount: 0n };
  }
}

/** Formats sums for a report. */
export function sumsOf(sums: Sums<TokenPlace>, names: BookNames): BookSum[] {
  return sums.list().map(({ key, count, amount }) => ({ ...amountOf(amount, key, names), count }));
}
