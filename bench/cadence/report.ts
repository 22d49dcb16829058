import { type Target as Promised, printTargets } from '../detection/targets.ts';
import { type Cell, roundSeconds } from './cells.ts';
import type { Delays, Summary } from './delays.ts';
import { MISS_REASONS } from './miss-reasons.ts';

/** Result of one cell. `beside`: ours over those runs that `truth` has, too. */
export type CellResult = { cell: Cell; ours: Delays; loop: Delays; truth: Delays; beside: Delays };

/** A target: a ratio to the loop's value, or seconds. */
type Target = { what: string; found: number; most: number; unit: 'x' | 's' };

/** Least number of changes for a mean, and for a p99. */
const ENOUGH = 50;
const ENOUGH_FOR_P99 = 100;

const SPANS = ['after', 'first'] as const;
const CHANGES = ['fills', 'births'] as const;

export function printHead(): void {
  console.log('Seconds from a change to the poll that showed it: ours/loop/ours when it knows the truth.');
  console.log(
    'p99 is that of fills. The first two minutes of a cold start are separate. Of the budget, ours used the last column.\n',
  );
  const columns = ['fills', 'p99', 'births', 'fills < 2 min', 'births < 2 min'];
  console.log(
    `${'wallets/requests a second'.padEnd(26)}${columns.map((name) => name.padStart(19)).join('')}  used`,
  );
}

export function printRow(result: CellResult): void {
  const { cell, ours, loop, truth } = result;
  const three = (pick: (delays: Delays) => number): string =>
    [ours, loop, truth]
      .map((delays) => shown(pick(delays)))
      .join('/')
      .padStart(19);
  const columns = [
    three((delays) => delays.of('fills', 'after').mean),
    three((delays) => delays.of('fills', 'after').p99),
    three((delays) => delays.of('births', 'after').mean),
    three((delays) => delays.of('fills', 'first').mean),
    three((delays) => delays.of('births', 'first').mean),
  ];
  const missed = missedOf(result);
  const used = (ours.requestsPerSecond / cell.budget).toFixed(2);
  console.log(
    `${cell.name.padEnd(26)}${columns.join('')}  ${used}${missed.length > 0 ? `  ${missed.map(textOf).join(', ')}` : ''}`,
  );
}

function shown(seconds: number): string {
  if (Number.isNaN(seconds)) return '-';
  return seconds.toFixed(seconds < 10 ? 2 : seconds < 100 ? 1 : 0);
}

function textOf({ what, found, most, unit }: Target): string {
  return `${what} ${found.toFixed(2)} > ${most}${unit === 's' ? ' s' : ''}`;
}

function missedOf(result: CellResult): Target[] {
  return targetsOf(result, result.ours).filter(({ found, most }) => !(found <= most));
}

/** The targets of a cell that has enough changes for them. */
function targetsOf({ cell, loop }: CellResult, delays: Delays): Target[] {
  const round = roundSeconds(cell);
  const targets: Target[] = [];
  for (const span of SPANS) {
    for (const change of CHANGES) {
      const found = delays.of(change, span);
      const plain = loop.of(change, span);
      if (found.count < ENOUGH) continue;
      const what = `${change}${span === 'first' ? ' < 2 min' : ''}`;
      for (const key of ['mean', 'p99'] as const) {
        const most = mostOf({ cell, round, change, span, key });
        if (most === null || (key === 'p99' && found.count < ENOUGH_FOR_P99)) continue;
        const isAbsolute = round < 2;
        targets.push({
          what: `${what} ${key}`,
          found: isAbsolute ? found[key] : found[key] / plain[key],
          most,
          unit: isAbsolute ? 's' : 'x',
        });
      }
    }
  }
  return targets;
}

function mostOf(of: {
  cell: Cell;
  round: number;
  change: 'fills' | 'births';
  span: 'first' | 'after';
  key: keyof Omit<Summary, 'count'>;
}): number | null {
  const { cell, round, change, span, key } = of;
  if (round < 2) return key === 'mean' ? 1 : 3;
  if (round > 60) return key === 'mean' ? 1.1 : null;
  if (span === 'first') return key === 'mean' ? 1.3 : null;
  if (change === 'births') return key === 'mean' ? 1.25 : null;
  return key === 'p99' ? 1.7 : cell.busy ? 0.5 : 1;
}

/** Prints missed targets, with the reason where it is known. True when none was missed for an unknown reason, and fills are as promised. */
export function printVerdict(results: readonly CellResult[]): boolean {
  let [met, explained, missed] = [0, 0, 0];
  console.log('\nmissed:');
  for (const result of results) {
    const all = targetsOf(result, result.ours);
    const truth = new Map(targetsOf(result, result.truth).map((target) => [target.what, target.found]));
    const bad = missedOf(result);
    met += all.length - bad.length;
    for (const target of bad) {
      const reason = MISS_REASONS.find(
        ({ cells, what }) => cells.test(result.cell.name) && what.test(target.what),
      )?.reason;
      if (reason === undefined) missed++;
      else explained++;
      const limit = truth.get(target.what);
      const beside = limit === undefined ? '' : ` (knowing the truth ${limit.toFixed(2)})`;
      console.log(
        `  ${reason === undefined ? 'MISSED' : 'reason'}  ${result.cell.name}: ${textOf(target)}${beside}${reason === undefined ? '' : `: ${reason}`}`,
      );
    }
  }
  console.log(`\n${met} targets met, ${explained} missed for known reasons, ${missed} missed\n`);
  return printTargets(results.flatMap(fillsOf)) && missed === 0;
}

/** The promise of fills: their mean delay beside that of the loop, and beside that of a planner that knows the truth. */
function fillsOf({ cell, ours, loop, truth, beside }: CellResult): Promised[] {
  const meanOf = (delays: Delays): number => delays.of('fills', 'after').mean;
  if (ours.of('fills', 'after').count < ENOUGH) return [];
  return [
    { what: `${cell.name}: mean delay of fills, of the loop's`, found: meanOf(ours) / meanOf(loop) },
    {
      what: `${cell.name}: mean delay of fills, of that with the true times`,
      found: meanOf(beside) / meanOf(truth),
      most: 1.15,
      goal: 1.05,
    },
  ];
}
