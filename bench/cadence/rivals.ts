import { type Detection, type Outcome, summarize } from './delays.ts';
import { finishedAt, type Load, ROUTES, statusAt, type Transfer } from './workload.ts';

/**
 * What users could run instead. Each has one knob, in seconds or as a factor, that is turned until it makes as many
 * requests on average as the cadence did. Nothing holds them to the budget at any moment: they may burst, the cadence
 * may not.
 */
export type Rival = { name: string; knob: { least: number; most: number }; run: RivalRun };

type RivalRun = (transfers: readonly Transfer[], load: Load, knob: number) => Outcome;

/** The wait before the next look at a transfer of an age: when it was born, or when it was last looked at. */
type Wait = (look: { ageSeconds: number; route: number; looks: number; id: number }) => number;

/** A share of 1 that is spread evenly over transfers: where in its round a loop comes by one that is new. */
function phase(id: number): number {
  return (id * 0.618_033_988_749_895) % 1;
}

function alone(name: string, knob: Rival['knob'], waitFor: (knob: number) => Wait): Rival {
  return {
    name,
    knob,
    run: (transfers, load, value) => lookAtEach({ transfers, load, wait: waitFor(value) }),
  };
}

/** In the order of the table. The first is what the targets are held against, in the better of its two forms. */
export const RIVALS: readonly Rival[] = [
  alone('fixed interval, each from its birth', { least: 0.5, most: 3_000 }, (seconds) => () => seconds),
  alone(
    'fixed interval, one loop',
    { least: 0.5, most: 3_000 },
    (seconds) =>
      ({ looks, id }) =>
        looks === 0 ? phase(id) * seconds : seconds,
  ),
  alone(
    'exponential backoff by age',
    { least: 0.005, most: 30 },
    (factor) =>
      ({ ageSeconds }) =>
        Math.max(1, factor * ageSeconds),
  ),
  alone(
    'ETA: from half of it at an interval, rarer after four',
    { least: 0.2, most: 3_000 },
    (seconds) =>
      ({ ageSeconds, route, looks }) => {
        const eta = ROUTES[route]?.fill.medianSeconds ?? 0;
        if (looks === 0) return eta / 2;
        return ageSeconds > 4 * eta ? 10 * seconds : seconds;
      },
  ),
  { name: 'fixed wallet pages', knob: { least: 0.5, most: 3_000 }, run: lookAtPages },
];

/** Looks at every transfer by itself until it is finished. */
function lookAtEach(run: { transfers: readonly Transfer[]; load: Load; wait: Wait }): Outcome {
  const { transfers, load, wait } = run;
  const tally = new OutcomeTally(load);
  for (const transfer of transfers) {
    const { id, route, bornAt } = transfer;
    const end = finishedAt(transfer, load);
    let seenAt = bornAt;
    for (let looks = 0; seenAt < end; looks++) {
      const at = seenAt + wait({ ageSeconds: seenAt - bornAt, route, looks, id });
      if (at >= load.seconds) break;
      tally.request(at);
      tally.show(transfer, { from: seenAt, at });
      seenAt = at;
    }
  }
  return tally.outcome();
}

const PAGE_SIZE = 50;

/** Reads the narrowed pages of each wallet that has something in flight at an interval, and looks up what left them. */
function lookAtPages(transfers: readonly Transfer[], load: Load, seconds: number): Outcome {
  const tally = new OutcomeTally(load);
  const byWallet = Map.groupBy(transfers, (transfer) => transfer.wallet);
  for (const [wallet, own] of byWallet) {
    let inFlight: Transfer[] = [];
    let next = 0;
    let seenAt = Number.NEGATIVE_INFINITY;
    const first = own[0]?.bornAt ?? 0;
    for (let at = first + phase(wallet) * seconds; at < load.seconds; at += seconds) {
      for (let born = own[next]; born !== undefined && born.bornAt <= at; born = own[++next])
        inFlight.push(born);
      if (inFlight.length === 0) {
        // Nothing to look at: the loop comes by again in its own rhythm once something is born.
        const idle = (own[next]?.bornAt ?? load.seconds) - at;
        at += Math.max(0, Math.floor(idle / seconds)) * seconds;
        continue;
      }
      for (const status of ['pending', 'filled'] as const) {
        const were = inFlight.filter(
          (transfer) => statusAt(transfer, Math.max(seenAt, transfer.bornAt)) === status,
        );
        if (were.length === 0) continue;
        const left = were.filter((transfer) => statusAt(transfer, at) !== status);
        tally.request(at, Math.max(1, Math.ceil((were.length - left.length) / PAGE_SIZE)) + left.length);
      }
      for (const transfer of inFlight) {
        tally.show(transfer, { from: Math.max(seenAt, transfer.bornAt), at });
      }
      inFlight = inFlight.filter((transfer) => finishedAt(transfer, load) > at);
      seenAt = at;
    }
  }
  return tally.outcome();
}

/** What counts: requests from 0 on, and changes from 0 on, once each. */
class OutcomeTally {
  readonly #load: Load;
  readonly #fills: Detection[] = [];
  readonly #settlements: Detection[] = [];
  #requests = 0;

  constructor(load: Load) {
    this.#load = load;
  }

  request(at: number, count = 1): void {
    if (at >= 0) this.#requests += count;
  }

  show({ filledAt, settledAt }: Transfer, look: { from: number; at: number }): void {
    const { from, at } = look;
    if (filledAt > 0 && filledAt > from && filledAt <= at) this.#fills.push({ at, delay: at - filledAt });
    if (settledAt > 0 && settledAt > from && settledAt <= at) {
      this.#settlements.push({ at, delay: at - settledAt });
    }
  }

  outcome(): Outcome {
    const inOrder = (list: Detection[]): Detection[] => list.toSorted((a, b) => a.at - b.at);
    return {
      fills: inOrder(this.#fills),
      settlements: inOrder(this.#settlements),
      requestsPerSecond: this.#requests / this.#load.seconds,
    };
  }
}

/** Turns a rival's knob until it makes as many requests per second. */
export function atRate(
  rival: Rival,
  world: { transfers: readonly Transfer[]; load: Load; requestsPerSecond: number },
): Outcome {
  const { transfers, load, requestsPerSecond } = world;
  let { least, most } = rival.knob;
  let best = rival.run(transfers, load, most);
  for (let round = 0; round < 40; round++) {
    const knob = Math.sqrt(least * most);
    const outcome = rival.run(transfers, load, knob);
    const off = (candidate: Outcome): number => Math.abs(candidate.requestsPerSecond - requestsPerSecond);
    if (off(outcome) < off(best)) best = outcome;
    if (off(best) < 0.002 * requestsPerSecond) break;
    if (outcome.requestsPerSecond > requestsPerSecond) least = knob;
    else most = knob;
  }
  return best;
}

/** The better of two, by the mean delay of fills. */
export function better(a: Outcome, b: Outcome): Outcome {
  return summarize(a.fills).mean <= summarize(b.fills).mean ? a : b;
}
