import { type Money, placeOf } from './books-truth.ts';

/** Counts and amounts by place, for the account of the books. */
export class Sums {
  readonly #sums = new Map<string, { count: number; amount: bigint }>();

  /** Sums as a report shows them. */
  static of(list: readonly { chainId: string; token: string; count: number; amount: string }[]): Sums {
    const sums = new Sums();
    for (const { chainId, token, count, amount } of list) {
      sums.add({ place: placeOf(chainId, token), amount: BigInt(amount) }, count);
    }
    return sums;
  }

  add({ place, amount }: Money, count = 1): void {
    const sum = this.#get(place);
    this.#sums.set(place, { count: sum.count + count, amount: sum.amount + amount });
  }

  #get(place: string): { count: number; amount: bigint } {
    return this.#sums.get(place) ?? { count: 0, amount: 0n };
  }

  /** Where these, of the books, are not as the others, of what was made. */
  unlike(made: Sums): string[] {
    return [...new Set([...this.#sums.keys(), ...made.#sums.keys()])].flatMap((place) => {
      const [has, wants] = [this.#get(place), made.#get(place)];
      if (has.amount === wants.amount && has.count === wants.count) return [];
      return [
        `${has.amount} of ${has.count} in the books, ${wants.amount} of ${wants.count} by what was made (${place})`,
      ];
    });
  }
}
