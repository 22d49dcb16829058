import type { Target } from '../detection/targets.ts';
import type { Arrival } from './endpoint.ts';
import { subjectOf } from './stage.ts';

/** Delay of each event from its upstream's answer to the receiver, ms; and lost, repeated or invented events. */
export type Account = { delaysMs: number[]; lost: number; twice: number; invented: number };

/** Compares all transfers below `to` with their deliveries. Delays are those of transfers from `from` on. */
export function account({
  shown,
  came,
  from,
  to,
}: {
  shown: ReadonlyMap<number, number>;
  came: readonly Arrival[];
  from: number;
  to: number;
}): Account {
  const arrivals = Map.groupBy(came, ([, , subject]) => subject);
  const found: Account = { delaysMs: [], lost: 0, twice: 0, invented: 0 };
  for (let number = 0; number < to; number += 1) {
    const [first, ...again] = arrivals.get(subjectOf(number)) ?? [];
    arrivals.delete(subjectOf(number));
    if (first === undefined) found.lost += 1;
    found.twice += again.length;
    const shownMs = shown.get(number);
    if (first !== undefined && shownMs !== undefined && number >= from)
      found.delaysMs.push(first[1] - shownMs);
  }
  for (const [, unknown] of arrivals) found.invented += unknown.length;
  return found;
}

/** Targets that every benchmark of deliveries has. */
export function exactness(name: string, accounts: readonly Account[]): Target[] {
  const sum = (pick: (found: Account) => number): number =>
    accounts.reduce((total, found) => total + pick(found), 0);
  return [
    { what: `${name}: lost`, found: sum(({ lost }) => lost), most: 0 },
    { what: `${name}: delivered twice`, found: sum(({ twice }) => twice), most: 0 },
    { what: `${name}: invented`, found: sum(({ invented }) => invented), most: 0 },
  ];
}
