import { MOST_PAGES, sweepEveryMs } from '../../domain/cadence/wallet.ts';
import type { JsonValue } from '../../domain/json.ts';
import { type Finding, valueAt } from '../file/tree.ts';
import type { ParsedConfig } from '../schema.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** The time that nobody may have looked: a day without the daemon, from the end of one sweep to that of the next. */
function leastMs(fullSweepEveryMs: number): number {
  const sweepMs = sweepEveryMs({ leastMs: fullSweepEveryMs, pages: MOST_PAGES, newestFirst: true });
  return Math.ceil((DAY_MS + 2 * sweepMs) / DAY_MS) * DAY_MS;
}

/** What cannot work with so short a `retention`. `tree` is the file as it stands: a default has no place in it. */
export function checkRetention(config: ParsedConfig, tree: JsonValue): Finding[] {
  const { retention, polling, receivers } = config;
  const least = leastMs(polling.fullSweepEvery);
  const findings: Finding[] = [];
  if (retention < least) {
    const why =
      'a day without the daemon and two sweeps of a wallet of many pages, or what a sweep still shows is removed';
    const found = `${text(retention)} beside a fullSweepEvery of ${text(polling.fullSweepEvery)}`;
    findings.push({ path: ['retention'], found, expected: `${text(least)} or more: ${why}` });
  }
  for (const [index, { name, disableAfter, retries }] of receivers.entries()) {
    const path = ['receivers', index];
    if (disableAfter > retention) {
      findings.push({
        ...place(tree, [...path, 'disableAfter']),
        found: `a disableAfter of ${text(disableAfter)} for ${name} beside a retention of ${text(retention)}`,
        expected: 'a retention as long or longer: events are gone before the receiver is disabled',
      });
    }
    const retriesMs = retries.delays.reduce((sum, delayMs) => sum + delayMs, 0);
    if (retriesMs > retention) {
      findings.push({
        ...place(tree, [...path, 'retries', 'delays']),
        found: `retries for ${text(retriesMs)} for ${name} beside a retention of ${text(retention)}`,
        expected: 'a retention as long or longer: the event is gone before its last attempt',
      });
    }
  }
  return findings;
}

/** The place where a field is written, or `retention` where it has its default. */
function place(tree: JsonValue, path: (string | number)[]): Pick<Finding, 'path'> {
  return { path: valueAt(tree, path) === undefined ? ['retention'] : path };
}

const UNITS = [
  ['d', DAY_MS],
  ['h', HOUR_MS],
  ['m', MINUTE_MS],
  ['s', 1_000],
] as const;

/** A duration as one writes it; a long one to the hour. */
function text(ms: number): string {
  const roundedMs = ms > DAY_MS ? Math.ceil(ms / HOUR_MS) * HOUR_MS : ms;
  const [unit, unitMs] = UNITS.find(([, one]) => roundedMs % one === 0) ?? ['ms', 1];
  return `${roundedMs / unitMs}${unit}`;
}
