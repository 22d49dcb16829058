import type { Expectation } from '../../src/domain/cadence/hazard.ts';
import { exponential, logNormal, type Random, randomStream, zipf } from '../../src/sandbox/random.ts';

/** A route of the workload: its share of the transfers, and how they really fill and settle. */
type Route = { share: number; fill: Expectation; settlement: Expectation };

/** A transfer as it really goes, in seconds of the virtual clock; Infinity for what never comes. */
export type Transfer = {
  id: number;
  wallet: number;
  route: number;
  bornAt: number;
  filledAt: number;
  settledAt: number;
  expiresAt: number;
};

/** Which wallets the transfers come from. */
export type Wallets = { name: string; count: number; zipf: number };

/** A span in which so many times more transfers are born. Seconds. */
export type Burst = { from: number; to: number; factor: number };

/** What a run is about: the wallets, whether a settlement is waited for after a fill, and bursts of births. */
export type Load = {
  wallets: Wallets;
  settlements: boolean;
  seconds: number;
  seed: string;
  bursts: readonly Burst[];
};

export const ARRIVALS_PER_SECOND = 0.5;
const LIFETIME_SECONDS = 3_600;

/** Two in three settlements take between 5 and 20 minutes. */
const SETTLEMENT: Expectation = { medianSeconds: 600, sigma: 0.7, neverShare: 0 };

export const ROUTES: readonly Route[] = [
  { share: 0.7, fill: { medianSeconds: 25, sigma: 0.5, neverShare: 0.02 }, settlement: SETTLEMENT },
  { share: 0.2, fill: { medianSeconds: 35, sigma: 0.7, neverShare: 0.03 }, settlement: SETTLEMENT },
  { share: 0.1, fill: { medianSeconds: 120, sigma: 0.8, neverShare: 0.04 }, settlement: SETTLEMENT },
];

/** When the first transfer is born: long enough before 0 that as much is in flight at 0 as ever after. */
const BEGINS_AT = -3 * LIFETIME_SECONDS;

/** The transfers of a load in order of birth, those in flight at 0 included. The same for the same seed. */
export function makeTransfers(load: Load): Transfer[] {
  const usual = bear(load, {
    stream: [],
    span: { from: BEGINS_AT, to: load.seconds },
    perSecond: ARRIVALS_PER_SECOND,
  });
  const more = load.bursts.flatMap((span, index) =>
    bear(load, { stream: ['burst', index], span, perSecond: (span.factor - 1) * ARRIVALS_PER_SECOND }),
  );
  return [...usual, ...more]
    .toSorted((a, b) => a.bornAt - b.bornAt)
    .map((transfer, id) => ({ ...transfer, id }));
}

type Births = { stream: (string | number)[]; span: { from: number; to: number }; perSecond: number };

/** The transfers that are born in a span at a rate, without their ids. */
function bear(load: Load, { stream, span, perSecond }: Births): Omit<Transfer, 'id'>[] {
  const random = randomStream(load.seed, load.wallets.name, ...stream);
  const walletOf = zipf(load.wallets.count, load.wallets.zipf);
  const transfers: Omit<Transfer, 'id'>[] = [];
  for (let bornAt = span.from; ; ) {
    bornAt += exponential(random) / perSecond;
    if (bornAt >= span.to) return transfers;
    const route = pickRoute(random);
    const { fill, settlement } = routeAt(route);
    const fills = random() >= fill.neverShare;
    const tookToFill = draw(random, fill);
    const tookToSettle = draw(random, settlement);
    const filledAt = fills && tookToFill < LIFETIME_SECONDS ? bornAt + tookToFill : Number.POSITIVE_INFINITY;
    transfers.push({
      wallet: walletOf(random),
      route,
      bornAt,
      filledAt,
      settledAt: load.settlements ? filledAt + tookToSettle : Number.POSITIVE_INFINITY,
      expiresAt: bornAt + LIFETIME_SECONDS,
    });
  }
}

/** The truth about a route. */
export function routeAt(index: number): Route {
  const route = ROUTES[index];
  if (route === undefined) throw new Error(`no route ${index}; there are ${ROUTES.length}`);
  return route;
}

/** What the upstream says of a transfer at a moment. */
export function statusAt(transfer: Transfer, at: number): 'pending' | 'filled' | 'settled' | 'expired' {
  if (at >= transfer.settledAt) return 'settled';
  if (at >= transfer.filledAt) return 'filled';
  return at >= transfer.expiresAt ? 'expired' : 'pending';
}

/** When nothing more is waited for: seen to be finished from then on. */
export function finishedAt(transfer: Transfer, load: Pick<Load, 'settlements'>): number {
  if (transfer.filledAt === Number.POSITIVE_INFINITY) return transfer.expiresAt;
  return load.settlements ? transfer.settledAt : transfer.filledAt;
}

function draw(random: Random, { medianSeconds, sigma }: Expectation): number {
  return logNormal(random, { median: medianSeconds, sigma });
}

function pickRoute(random: Random): number {
  let left = random();
  const index = ROUTES.findIndex(({ share }) => {
    left -= share;
    return left < 0;
  });
  return index === -1 ? ROUTES.length - 1 : index;
}
