import { exponential, logNormal, type Random, randomStream, zipf } from '../../sandbox/world/random.ts';
import type { Expectation } from '../../src/domain/cadence/hazard.ts';

/** A corridor of the workload: its share of the transfers, and their true fill and settlement times. */
type Route = { name: string; share: number; fill: Expectation; settlement: Expectation };

/** True times of a transfer, in seconds of the virtual clock; Infinity for never. */
export type Transfer = {
  id: number;
  wallet: number;
  route: Route;
  bornAt: number;
  filledAt: number;
  settledAt: number;
};

/** Number of wallets, their skew (0: all alike), and the number of transfers born in them a second. */
export type Load = { wallets: number; zipf: number; perSecond: number; seconds: number; seed: string };

/** A transfer that has not filled by then never does. */
const LIFETIME_SECONDS = 3_600;

const SETTLEMENT: Expectation = { medianSeconds: 600, sigma: 0.7, neverShare: 0 };

export const ROUTES: readonly Route[] = [
  {
    name: '8453:10',
    share: 0.7,
    fill: { medianSeconds: 25, sigma: 0.5, neverShare: 0.02 },
    settlement: SETTLEMENT,
  },
  {
    name: '1:10',
    share: 0.2,
    fill: { medianSeconds: 35, sigma: 0.7, neverShare: 0.03 },
    settlement: SETTLEMENT,
  },
  {
    name: '1:137',
    share: 0.1,
    fill: { medianSeconds: 120, sigma: 0.8, neverShare: 0.04 },
    settlement: SETTLEMENT,
  },
];

/** Birth of the first transfer: so long before 0 that the number in flight at 0 is about that of later. */
const BEGINS_AT = -900;

/** Transfers of a load in order of birth, including those in flight at 0. The same for the same seed. */
export function makeTransfers(load: Load): Transfer[] {
  const random = randomStream(load.seed, 'transfers');
  const walletOf = zipf(load.wallets, load.zipf);
  const transfers: Transfer[] = [];
  for (let bornAt = BEGINS_AT; ; ) {
    bornAt += exponential(random) / load.perSecond;
    if (bornAt >= load.seconds) return transfers;
    const route = pickRoute(random);
    const fills = random() >= route.fill.neverShare;
    const tookToFill = draw(random, route.fill);
    const tookToSettle = draw(random, route.settlement);
    const filledAt = fills && tookToFill < LIFETIME_SECONDS ? bornAt + tookToFill : Number.POSITIVE_INFINITY;
    const wallet = walletOf(random);
    transfers.push({
      id: transfers.length,
      wallet,
      route,
      bornAt,
      filledAt,
      settledAt: filledAt + tookToSettle,
    });
  }
}

/** Number of transfers a second that are born in each wallet. */
export function ratesOf({ wallets, zipf: exponent, perSecond }: Load): number[] {
  const weights = Array.from({ length: wallets }, (_, index) => (index + 1) ** -exponent);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => (perSecond * weight) / sum);
}

/** The upstream's status of a transfer at a time, seconds. */
export function statusAt(transfer: Transfer, at: number): string {
  if (at >= transfer.settledAt) return 'settled';
  if (at >= transfer.filledAt) return 'filled';
  return at >= transfer.bornAt + LIFETIME_SECONDS ? 'expired' : 'pending';
}

/** Time at which a transfer reached its status, seconds. */
export function sinceAt(transfer: Transfer, status: string): number {
  if (status === 'pending') return transfer.bornAt;
  if (status === 'expired') return transfer.bornAt + LIFETIME_SECONDS;
  return status === 'filled' ? transfer.filledAt : transfer.settledAt;
}

function draw(random: Random, { medianSeconds, sigma }: Expectation): number {
  return logNormal(random, { median: medianSeconds, sigma });
}

function pickRoute(random: Random): Route {
  let left = random();
  const found = ROUTES.find(({ share }) => {
    left -= share;
    return left < 0;
  });
  const route = found ?? ROUTES[0];
  if (route === undefined) throw new Error('no routes');
  return route;
}
