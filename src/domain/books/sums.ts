import { toUnits } from '../transfers/amounts.ts';
import type { BookAmount, BookSum } from './report-schema.ts';

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
