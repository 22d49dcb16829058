import { type Outcome, type Summary, summarize } from './delays.ts';

/** A span of a run, by the number of fills seen in it: from one to another. */
export type Span = { name: string; from: number; to: number };

/** A number that was to be reached. */
export type Target = { what: string; found: number; most: number };

const NAME_WIDTH = 58;

/** The delays of fills that were seen in a span. */
export function fillsIn(outcome: Outcome, { from, to }: Span): Summary {
  return summarize(outcome.fills.slice(from, to));
}

/** Prints the head of a table. */
export function printHead(title: string): void {
  const columns = ['mean', 'p50', 'p95', 'p99'].map((name) => name.padStart(8)).join('');
  console.log(`${title.padEnd(NAME_WIDTH)}${columns}   mean/fixed  p99/fixed  requests/s`);
}

/** Prints one way of polling: delays in seconds, and mean and p99 as shares of the fixed interval's. */
export function printRow(
  name: string,
  row: { delays: Summary; fixed: Summary; requestsPerSecond: number },
): void {
  const { delays, fixed, requestsPerSecond } = row;
  const columns = [delays.mean, delays.p50, delays.p95, delays.p99].map((value) =>
    value.toFixed(2).padStart(8),
  );
  const mean = (delays.mean / fixed.mean).toFixed(3).padStart(13);
  const p99 = (delays.p99 / fixed.p99).toFixed(3).padStart(11);
  console.log(
    `${`    ${name}`.padEnd(NAME_WIDTH)}${columns.join('')}${mean}${p99}${requestsPerSecond.toFixed(3).padStart(12)}`,
  );
}

/** Prints every target with what was found. Returns whether all of them are met. */
export function printTargets(targets: readonly Target[]): boolean {
  console.log('targets');
  for (const { what, found, most } of targets) {
    const verdict = found <= most ? 'met   ' : 'MISSED';
    console.log(`  ${verdict}  ${what}: ${found.toFixed(3)}, at most ${most}`);
  }
  const missed = targets.filter(({ found, most }) => !(found <= most)).length;
  console.log(missed === 0 ? `all ${targets.length} met` : `${missed} of ${targets.length} missed`);
  return missed === 0;
}
