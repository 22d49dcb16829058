import type { Load } from './workload.ts';

/** One row of the table: number of wallets, budget, load, and skew. */
export type Cell = { name: string; wallets: number; budget: number; busy: boolean; zipf: number };

const WALLETS = [1, 5, 20, 40, 200, 5_000];
const BUDGETS = [1, 5, 10, 50];
const ZIPF = 1.1;

/** Transfers per second in a wallet, and at most for each request of the budget. */
const BUSY = { perWallet: 0.015, perRequest: 0.12 };
const QUIET = { perWallet: 1 / 900, perRequest: 0.02 };

/** All cells. A single wallet cannot be unlike the others. */
export function allCells(): Cell[] {
  return WALLETS.flatMap((wallets) =>
    BUDGETS.flatMap((budget) =>
      [true, false].flatMap((busy) =>
        (wallets === 1 ? [0] : [0, ZIPF]).map((zipf) => ({
          name: `${wallets}/${budget} ${busy ? 'busy' : 'quiet'} ${zipf === 0 ? 'even' : 'skewed'}`,
          wallets,
          budget,
          busy,
          zipf,
        })),
      ),
    ),
  );
}

export function roundSeconds({ wallets, budget }: Cell): number {
  return wallets / budget;
}

/** Least number of the loop's rounds in a run, and the least and, apart from rounds, the largest length of a run. */
const ROUNDS = 6;
const LEAST_SECONDS = 480;
const MOST_SECONDS = 3_600;

/** A run is long enough for this number of births in all runs together, where possible. */
const WANTED_BIRTHS = 400;

const SHORT_SECONDS = 240;
const WANTED_FIRST_BIRTHS = 100;
const MOST_SHORT = 60;

/** Loads of a cell: one for each seed, and short ones where little happens in the first two minutes. */
export function loadsOf(cell: Cell, seeds: number): Load[] {
  const { perWallet, perRequest } = cell.busy ? BUSY : QUIET;
  const perSecond = Math.min(perWallet * cell.wallets, perRequest * cell.budget);
  const wanted = Math.min(MOST_SECONDS, WANTED_BIRTHS / seeds / perSecond);
  const seconds = Math.ceil(Math.max(LEAST_SECONDS, ROUNDS * roundSeconds(cell), wanted));
  const base = { wallets: cell.wallets, zipf: cell.zipf, perSecond };
  const short = Math.min(MOST_SHORT, Math.ceil(WANTED_FIRST_BIRTHS / (120 * perSecond)) - seeds);
  return [
    ...Array.from({ length: seeds }, (_, index) => ({ ...base, seconds, seed: `${cell.name} ${index}` })),
    ...Array.from({ length: Math.max(0, short) }, (_, index) => ({
      ...base,
      seconds: SHORT_SECONDS,
      seed: `${cell.name} short ${index}`,
    })),
  ];
}
