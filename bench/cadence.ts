import { parseArgs } from 'node:util';
import { WATCH_RULES } from '../src/domain/cadence/watch-rules.ts';
import { type Outcome, summarize } from './cadence/delays.ts';
import { apprenticeship, type Knowledge, omniscience, truth } from './cadence/knowledge.ts';
import { fillsIn, printHead, printRow, printTargets, type Span, type Target } from './cadence/report.ts';
import { atRate, better, RIVALS } from './cadence/rivals.ts';
import { type CadenceOutcome, simulate } from './cadence/simulate.ts';
import { ARRIVALS_PER_SECOND, type Load, makeTransfers, type Wallets } from './cadence/workload.ts';

const FEW: Wallets = { name: '200 wallets by Zipf 1.1', count: 200, zipf: 1.1 };
const MANY: Wallets = { name: '5,000 wallets, uniform', count: 5_000, zipf: 0 };
const BUDGETS_PER_SECOND = [2, 5];

/** After so many fills seen, what was learned counts. */
const LEARNED_FILLS = 1_000;
const WHOLE: Span = { name: 'from the first transfer', from: 0, to: Number.POSITIVE_INFINITY };
const BEFORE: Span = { name: `the first ${LEARNED_FILLS} fills`, from: 0, to: LEARNED_FILLS };
const AFTER: Span = {
  name: `after ${LEARNED_FILLS} fills`,
  from: LEARNED_FILLS,
  to: Number.POSITIVE_INFINITY,
};

const LEAST_SECONDS = (2 * LEARNED_FILLS) / ARRIVALS_PER_SECOND;

/**
 * Holds the cadence, the code that the daemon runs, against what users could run instead, at equal budgets under a
 * virtual clock. Prints tables and targets; returns 0 when every target is met.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { seconds: { type: 'string', default: '14000' }, seed: { type: 'string', default: 'cadence' } },
  });
  const seconds = Number(values.seconds);
  if (!(seconds >= LEAST_SECONDS && Number.isFinite(seconds))) {
    console.error(`--seconds: found "${values.seconds}", expected a number of ${LEAST_SECONDS} or more`);
    return 1;
  }
  console.log(
    `${ARRIVALS_PER_SECOND} transfers/s for ${seconds} s, seed "${values.seed}". Delays of fills, in seconds.`,
  );
  console.log(
    'Everybody is told of a transfer at its birth. Rivals may burst; the cadence keeps its budget always.\n',
  );
  const targets: Target[] = [];
  for (const wallets of [FEW, MANY]) {
    for (const settlements of [false, true]) {
      const load = { wallets, settlements, seconds, seed: values.seed, bursts: [] };
      for (const budgetPerSecond of BUDGETS_PER_SECOND) targets.push(...compare(load, budgetPerSecond));
    }
  }
  return printTargets(targets) ? 0 : 1;
}

type Row = { name: string; outcome: Outcome };

/** Runs everybody on one load at one budget, prints the table, and gives what the targets are held against. */
function compare(load: Load, budgetPerSecond: number): Target[] {
  const transfers = makeTransfers(load);
  const cadence = (name: string, knowledge: Knowledge): { name: string; outcome: CadenceOutcome } => ({
    name,
    outcome: simulate({ transfers, load, knowledge, budgetAt: () => budgetPerSecond }),
  });
  const right = cadence('cadence, right prior', beginner(1));
  const high = cadence('cadence, prior 2 times too high', beginner(2));
  const low = cadence('cadence, prior 2 times too low', beginner(0.5));
  const limit = cadence('cadence that knows the truth: the limit', omniscience());
  const { requestsPerSecond } = right.outcome;
  const rivals: Row[] = RIVALS.map((rival) => ({
    name: rival.name,
    outcome: atRate(rival, { transfers, load, requestsPerSecond }),
  }));
  const fixed = { name: 'fixed interval', outcome: betterOf(rivals.slice(0, 2)) };

  const title = `${load.wallets.name}, ${load.settlements ? 'fills with settlements' : 'fills'}, ${budgetPerSecond} requests/s`;
  printHead(title);
  printSpan(WHOLE, { rows: [...rivals, right, limit], fixed });
  printSpan(BEFORE, { rows: [fixed, right, high, low, limit], fixed });
  printSpan(AFTER, { rows: [fixed, right, high, low, limit], fixed });
  if (load.settlements) printSettlements([...rivals, right, high, low, limit], fixed);
  printSteering(right.outcome, budgetPerSecond);

  const everybody = [...rivals, right, high, low, limit].map(({ outcome }) => outcome.requestsPerSecond);
  const budget = {
    what: `${title}: most over least requests/s`,
    found: Math.max(...everybody) / Math.min(...everybody),
    most: 1.04,
  };
  const held = (row: Row, span: Span, mosts: { mean?: number; p99?: number }): Target[] => {
    const [found, reference] = [fillsIn(row.outcome, span), fillsIn(fixed.outcome, span)];
    return (['mean', 'p99'] as const).flatMap((key) => {
      const most = mosts[key];
      const what = `${title}: ${row.name}, ${span.name}, ${key} of the fixed interval's`;
      return most === undefined ? [] : [{ what, found: found[key] / reference[key], most }];
    });
  };
  if (load.wallets === MANY)
    return [
      budget,
      ...held(right, WHOLE, { mean: 0.4 }),
      ...[high, low].flatMap((row) => held(row, AFTER, { mean: 0.4 })),
    ];
  const most = { mean: 0.25, p99: 0.5 };
  return [
    budget,
    ...held(right, WHOLE, most),
    ...held(high, BEFORE, { p99: 0.65 }),
    ...held(high, AFTER, most),
    ...held(low, AFTER, most),
  ];
}

/** Begins with medians that are off by a factor, and the spread and never-ending share of the built-in rules. */
function beginner(factor: number): Knowledge {
  return apprenticeship((route, stage) => ({
    ...WATCH_RULES[stage].expectation,
    medianSeconds: factor * truth(route, stage).medianSeconds,
  }));
}

function betterOf(rows: readonly Row[]): Outcome {
  return rows.map(({ outcome }) => outcome).reduce(better);
}

function printSpan(span: Span, { rows, fixed }: { rows: readonly Row[]; fixed: Row }): void {
  console.log(`  ${span.name}`);
  const reference = fillsIn(fixed.outcome, span);
  for (const { name, outcome } of rows) {
    const { requestsPerSecond } = outcome;
    printRow(name, { delays: fillsIn(outcome, span), fixed: reference, requestsPerSecond });
  }
}

function printSettlements(rows: readonly Row[], fixed: Row): void {
  console.log(`  settlements, which weigh ${WATCH_RULES.filled.weight} of a fill`);
  const reference = summarize(fixed.outcome.settlements);
  for (const { name, outcome } of rows) {
    const { settlements, requestsPerSecond } = outcome;
    printRow(name, { delays: summarize(settlements), fixed: reference, requestsPerSecond });
  }
}

/** What steering and deciding came to: price, share of the budget used, wait for a turn, cost of a decision. */
function printSteering(outcome: CadenceOutcome, budgetPerSecond: number): void {
  const prices = outcome.steerings.map(({ price }) => price).toSorted((a, b) => a - b);
  const at = (share: number): string =>
    (prices[Math.floor(share * prices.length)] ?? Number.NaN).toPrecision(3);
  const used = (100 * outcome.requestsPerSecond) / budgetPerSecond;
  console.log(
    `  price ${at(0.5)} (p5 ${at(0.05)}, p95 ${at(0.95)}), ${used.toFixed(1)} % of the budget used, ` +
      `${outcome.turnSeconds.toFixed(2)} s from due to asked, ${outcome.decisionMicroseconds.toFixed(1)} µs a decision\n`,
  );
}
