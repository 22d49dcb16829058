import { storableText } from '../json.ts';
import { foldHex } from '../subjects/subject.ts';
import { toUnits } from '../transfers/money.ts';
import { type BookState, believableMs, happenedMs, type Observation } from './book-state.ts';
import type { BookAmount, BookSum } from './report-schema.ts';

/**
 * Sides of the books. `started` and `ended` are in the source token, and what has started and not ended is under way;
 * `refunded` is the part of `ended` that was paid back. `delivered` and `fee` are sums of their own, in other tokens.
 */
export const SIDES = ['started', 'ended', 'refunded', 'delivered', 'fee'] as const;

type Side = (typeof SIDES)[number];

/** An amount on a side; base units. `token` is empty where it is not known, and the amount is 0 then. */
type Line = { side: Side; chainId: string; token: string; count: number; amount: bigint };

/** A line with its time, ms. `isLate`: it happened in a day that was closed by then; `isCorrection`: its side had been posted. */
export type Posting = Line & { bookedMs: number; happenedMs: number; isLate: boolean; isCorrection: boolean };

/** The lines that a state comes to: whatever was posted of a transfer adds up to these. */
export function linesOf({ phase, transfer, isCountedElsewhere }: BookState): Line[] {
  if (isCountedElsewhere) return [];
  const source = transfer.sent ?? transfer.toSend;
  const line = (side: Side, money: Partial<Money> | undefined): Line => ({
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

type Money = { chainId?: string | undefined; token?: string | undefined; amount: string };

/** When a posting may be booked: not before `closedMs` (all before is closed), nor before the transfer's last one. */
type BookTimes = { openedMs: number; closedMs: number; lastBookedMs: number | null };

/**
 * When something is booked: when it happened; where that lies in a closed day, at the first moment that is open. What
 * happened before the books were opened is carried into their first day as its opening.
 */
export function bookedMs(happened: number, { openedMs, closedMs, lastBookedMs }: BookTimes): number {
  const floor = closedMs <= openedMs ? openedMs - 1 : closedMs;
  return Math.max(happened, floor, lastBookedMs ?? 0);
}

/** What has to be posted so that a transfer's postings add up to its new state. Nothing where they do. */
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
    const said = isStart ? (after.fundedAtMs ?? seenMs) : happenedMs(observation.event);
    const happened = believableMs(said, seenMs);
    const booked = bookedMs(happened, times);
    const isLate = happened < times.closedMs && times.closedMs > times.openedMs;
    postings.push({ ...line, count, amount, bookedMs: booked, happenedMs: happened, isLate, isCorrection });
  }
  // What ends is booked no earlier than what starts.
  const startedMs = Math.max(
    0,
    ...postings.filter(({ side }) => side === 'started').map((one) => one.bookedMs),
  );
  return postings.map((one) => ({ ...one, bookedMs: Math.max(one.bookedMs, startedMs) }));
}

/** Lines of one side, chain and token as one, which counts the transfer once. */
function sumByPlace(lines: readonly Line[]): Map<string, Line> {
  const sums = new Map<string, Line>();
  for (const line of lines) {
    const place = JSON.stringify([line.side, line.chainId, line.token]);
    const sum = sums.get(place);
    sums.set(place, sum === undefined ? line : { ...sum, amount: sum.amount + line.amount });
  }
  return sums;
}

/** What tokens and chains are called in a report. */
export type BookNames = {
  token(chainId: string, token: string): { symbol: string; decimals: number } | null;
  chain(chainId: string): string | null;
};

/** A place where amounts are added up. */
export type TokenPlace = { chainId: string; token: string };

/** Signed base units in token units; null where the decimals are not known. */
export function unitsOf(amount: bigint, place: TokenPlace, names: BookNames): string | null {
  const known = names.token(place.chainId, place.token);
  if (known === null) return null;
  const units = toUnits(String(amount < 0n ? -amount : amount), known.decimals);
  return units === null || amount >= 0n ? units : `-${units}`;
}

/** An amount as a report shows it. */
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

/** Counts and amounts by some key. */
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

  /** Those that do not come to nothing, in the order of their keys. */
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

/** Sums as a report shows them. */
export function sumsOf(sums: Sums<TokenPlace>, names: BookNames): BookSum[] {
  return sums.list().map(({ key, count, amount }) => ({ ...amountOf(amount, key, names), count }));
}
