import type { Reporter, TestModule } from 'vitest/node';

const NOTE = /\(skipped without ([^)]+)\)/g;

/** Reports in one line how many tests were skipped for lack of which part; null where none was. */
export function skippedLine(names: readonly string[]): string | null {
  const counts = new Map<string, number>();
  let skipped = 0;
  for (const name of names) {
    const parts = new Set([...name.matchAll(NOTE)].flatMap(([, listed = '']) => listed.split(' and ')));
    if (parts.size > 0) skipped += 1;
    for (const part of parts) counts.set(part, (counts.get(part) ?? 0) + 1);
  }
  if (skipped === 0) return null;
  const sorted = [...counts].toSorted(([a], [b]) => a.localeCompare(b));
  const listed = sorted.map(([part, count]) => `${part} (${count})`).join(', ');
  return `Tests skipped for lack of a part: ${skipped}. Missing: ${listed}. To install the parts, type: npm run setup:all`;
}

/** Prints that line at the end of the run. With `REQUIRE_ALL=1` a skipped test fails the run. */
export default class SkippedReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules.flatMap((module) =>
      [...module.children.allTests('skipped')].map((test) => test.fullName),
    );
    const line = skippedLine(skipped);
    // After the summary, which the default reporter prints in the same step.
    if (line !== null) process.once('exit', () => process.stdout.write(`${line}\n`));
    if (process.env.REQUIRE_ALL !== '1' || skipped.length === 0) return;
    process.exitCode = 1;
    process.stderr.write(`REQUIRE_ALL=1, but these tests were skipped:\n${skipped.join('\n')}\n`);
  }
}
