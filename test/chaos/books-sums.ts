import { type Account, endOf, NEVER, rowsOf } from './books-lives.ts';
import { type Money, placeOf } from './books-truth.ts';

class Sums {
  readonly #sums = new Map<string, { count: number; amount: bigint }>();

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

  /** First place where these sums, of the books, differ from those of the transfers made. */
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

/** Compares every sum of a day with the same sum over the transfers made. */
export function sumDifferences({ report, day, lives, dayOf }: Account): string[] {
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
    const { source, destination, subject, reported } = transfer;
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
    // It is delivered with the first answer that shows the amount.
    const shown = reported.slice(reported.indexOf(end)).find(({ showsDestination }) => showsDestination);
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
