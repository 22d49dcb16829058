import type { Seen } from './simulate.ts';
import type { Load, Transfer } from './workload.ts';

/** Results of a plain loop at the same budget: the first page of every wallet in turn, from 0 on. */
export function loop(transfers: readonly Transfer[], load: Load, budget: number): Seen {
  const roundSeconds = load.wallets / budget;
  const nextPoll = (wallet: number, at: number): number => {
    const first = wallet / budget;
    return first + Math.max(0, Math.ceil((at - first) / roundSeconds)) * roundSeconds;
  };
  return {
    bornAt: Float64Array.from(transfers, ({ wallet, bornAt }) => nextPoll(wallet, bornAt)),
    filledAt: Float64Array.from(transfers, ({ wallet, filledAt }) => nextPoll(wallet, filledAt)),
    requestsPerSecond: budget,
  };
}
