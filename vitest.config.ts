import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that take longest, in the order in which they begin, so that none is left over for the end: those that run whole
 * systems and burn processors each between some that wait. All others follow by their size.
 */
const LONGEST = [
  ...['integration/quiet-hours', 'e2e/chaos', 'integration/wallet-pages', 'integration/routes'],
  ...['integration/partner-routes', 'integration/check-live', 'e2e/facts', 'integration/discovery'],
  ...['integration/clock-ahead', 'integration/upstream-outage', 'e2e/crash', 'integration/by-transaction'],
  ...['integration/gateway-records', 'integration/sent-once', 'e2e/whole-flow', 'integration/digest'],
  ...['integration/short-deliveries', 'integration/quote-expiry', 'integration/crash-poll', 'e2e/round-trip'],
  ...['integration/handed-quotes', 'integration/server-limits', 'integration/replay', 'e2e/one-daemon'],
  ...['integration/enabling-crash', 'integration/handing-back', 'integration/interleavings', 'e2e/package'],
  ...['integration/receiver-pace', 'integration/finished', 'integration/repair', 'e2e/refusals'],
  ...['property/upstream-mutations', 'conformance/interface', 'integration/dispatcher', 'e2e/npm-start'],
  ...['integration/plan', 'integration/commands-deliveries', 'integration/plan-limits', 'e2e/shutdown'],
  ...['integration/schema-version', 'integration/redis-monitor', 'integration/guarantees', 'e2e/demo'],
  ...['long/never-dark', 'long/facts', 'long/lying-chains', 'long/books-chaos', 'long/reload'],
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const found = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return found === -1 ? LONGEST.length : found;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/redis-server.ts'],
    // Nothing of what tests promise: only an end, also on a machine that is many times slower than a quiet one.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 170_000 } },
    pool: 'forks',
    // Each test has servers, folders and Redis keys of its own: files can share a process, which saves its start each time.
    isolate: false,
    // Most tests wait for something to happen most of the time: more of them than processors run at once.
    maxWorkers: 8,
    sequence: { sequencer: LongestFirst },
  },
});
