import type { Day, DayTransfer } from './day.ts';
import { amountOf, type BookNames, linesOf, Sums, type TokenPlace, unitsOf } from './postings.ts';
import type { Balance, BookCheck } from './report-schema.ts';

/** Stored balance of a closed day. */
export type Closing = TokenPlace & { count: number; amount: bigint };

/** Running sums of a day, per source token. `underWay` follows from the transfers' states, not from their postings. */
export type BalanceSums = Record<
  'opening' | 'started' | 'ended' | 'late' | 'corrections' | 'underWay',
  Sums<TokenPlace>
>;

/** Empty sums. */
export function noBalances(): BalanceSums {
  return {
    opening: new Sums(),
    started: new Sums(),
    ended: new Sums(),
    late: new Sums(),
    corrections: new Sums(),
    underWay: new Sums(),
  };
}

/** Adds a transfer to the sums of a day. */
export function addToBalances(
  { opening, started, ended, late, corrections, underWay }: BalanceSums,
  { postings, state, openAfter }: DayTransfer,
  day: Day,
): void {
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
  if (openAfter <= 0) return;
  for (const line of linesOf(state)) {
    if (line.side === 'started') underWay.add({ chainId: line.chainId, token: line.token }, 1, line.amount);
  }
}

/** Opening, started, ended and closing per source token, with the checks against other sources. */
export function balancesOf(
  { opening, started, ended, late, corrections, underWay }: BalanceSums,
  {
    names,
    closings,
  }: { names: BookNames; closings: { from: readonly Closing[] | null; to: readonly Closing[] | null } },
): { balances: Balance[]; checks: BookCheck[] } {
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
