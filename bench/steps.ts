import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { WATCH_RULES } from '../src/domain/cadence/watch-rules.ts';
import { apprenticeship, truth } from './cadence/knowledge.ts';
import { type Steering, simulate } from './cadence/simulate.ts';
import { ARRIVALS_PER_SECOND, type Load, makeTransfers, type Transfer } from './cadence/workload.ts';
import { drawSteps } from './steps/chart.ts';
import { MOST_SECONDS, SETTLED, type Settling, type Step, settling } from './steps/settling.ts';

const CHART = join(import.meta.dirname, '../docs/price-steps.svg');

const END = 3_000;

/** Ten times more transfers for a minute, then a budget that is halved, doubled, and doubled again. */
const BURST = { from: 600, to: 660, factor: 10 };
const STEPS: readonly Step[] = [
  {
    at: BURST.from,
    of: 'load',
    name: `${BURST.factor} times more transfers`,
    budgetPerSecond: 5,
    until: BURST.to,
  },
  { at: BURST.to, of: 'load', name: 'as few as before', budgetPerSecond: 5, until: 1_500 },
  { at: 1_500, of: 'budget', name: 'half the budget', budgetPerSecond: 2.5, until: 2_000 },
  { at: 2_000, of: 'budget', name: 'twice the budget', budgetPerSecond: 5, until: 2_500 },
  { at: 2_500, of: 'budget', name: 'twice the budget again', budgetPerSecond: 10, until: END },
];

const RUNS = 8;

/**
 * Shows what sudden changes of the load and of the budget do to the price, with the cadence's own code under a virtual
 * clock. Prints when the price has settled after each, draws docs/price-steps.svg, and returns 0 when it always had
 * within 30 s.
 */
export async function run(): Promise<number> {
  console.log(`200 wallets by Zipf 1.1, ${ARRIVALS_PER_SECOND} transfers/s, ${RUNS} runs.\n${SETTLED}\n`);
  let isMet = true;
  for (const settlements of [false, true]) {
    const runs = Array.from({ length: RUNS }, (_, index) =>
      runAll(loadOf({ settlements, seed: `steps ${index}` })),
    );
    console.log(settlements ? 'fills with settlements' : 'fills');
    for (const step of STEPS) {
      const pairs = runs.map(({ steerings, controls }) => ({
        steerings,
        control: controls.get(step.budgetPerSecond) ?? [],
      }));
      const result = settling(pairs, step);
      console.log(line(step, result));
      if ((result.settledSeconds ?? Number.POSITIVE_INFINITY) > MOST_SECONDS) isMet = false;
    }
    const [shown] = runs;
    if (settlements && shown !== undefined)
      await writeFile(CHART, drawSteps({ ...shown, steps: STEPS, end: END }));
  }
  console.log(`\nsettled within ${MOST_SECONDS} s after every step: ${isMet ? 'met' : 'MISSED'}`);
  console.log('drawn: docs/price-steps.svg (the first run of fills with settlements)');
  return isMet ? 0 : 1;
}

function loadOf({ settlements, seed }: { settlements: boolean; seed: string }): Load {
  const wallets = { name: '200 wallets by Zipf 1.1', count: 200, zipf: 1.1 };
  return { wallets, settlements, seconds: END, seed, bursts: [BURST] };
}

/** A run with the steps, and by budget one that always had it. */
function runAll(load: Load): { steerings: readonly Steering[]; controls: Map<number, readonly Steering[]> } {
  const transfers = makeTransfers(load);
  const budgets = new Set(STEPS.map((step) => step.budgetPerSecond));
  return {
    steerings: steered({ transfers, load, budgetAt }),
    controls: new Map(
      [...budgets].map((budget) => [budget, steered({ transfers, load, budgetAt: () => budget })]),
    ),
  };
}

function budgetAt(at: number): number {
  return STEPS.findLast((step) => step.at <= at)?.budgetPerSecond ?? 5;
}

function steered(run: {
  transfers: readonly Transfer[];
  load: Load;
  budgetAt: (at: number) => number;
}): readonly Steering[] {
  const knowledge = apprenticeship((route, stage) => ({
    ...WATCH_RULES[stage].expectation,
    medianSeconds: truth(route, stage).medianSeconds,
  }));
  return simulate({ ...run, knowledge }).steerings;
}

function line(step: Step, { settledSeconds, shortSeconds, laterOff }: Settling): string {
  const after = (seconds: number | null): string =>
    seconds === null ? 'not within 150 s' : `after ${seconds} s`;
  const what = `${step.name}, ${step.budgetPerSecond} requests/s`;
  const off = laterOff === null ? '' : `, rate later off by ${(100 * laterOff).toFixed(0)} % at most`;
  const at = `at ${step.at} s`.padStart(9);
  return `  ${at}  ${what.padEnd(38)} settled ${after(settledSeconds).padEnd(12)} queue short ${after(shortSeconds)}${off}`;
}
