import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take longest, in the order in which they begin, so that none is left over for the end. The others follow by size. */
const LONGEST = `
  integration/wallet-pages
  integration/clocks
  conformance/sandbox-authorizations
  property/config-secrets
  integration/tracking
  unit/quote-signature-vectors
  integration/renamed-subscription
  integration/suspension
  integration/commands-daemon
  integration/added-receivers
  integration/partner-routes
  integration/checks
  integration/routes
  integration/receiver-pace
  integration/plan
  integration/check-live
  integration/short-deliveries
  integration/checks-daemon
  integration/answers
  integration/discovery
  integration/quote-expiry
  integration/api-routes
  integration/by-transaction
  integration/checks-recovery
  conformance/sandbox-fuzz
  integration/api-desk
  integration/imported-quotes
  integration/reload-files
  integration/reload-held
  integration/digest
  e2e/console
  integration/reload
  integration/input-limits
  integration/terminal
  integration/gateway-records
  integration/api-receiver-limits
  integration/verify-examples
  integration/receiver-disabled
  integration/verify-claims
  e2e/demo
  integration/server-connections
  integration/server-limits
  integration/schema-version
  integration/commands-deliveries
  long/operator
  long/operator-virtual
  long/second-deployment
  long/recorded-daemon
  long/recorded-mutations
  long/retention
  long/documentation-blocks
  long/clocks-together
  long/never-dark
  long/plan-limits
  long/books-chaos
  long/package
  long/facts
  long/inbox-kills
  long/faults
  long/reload
  long/postgres-kills
  long/books-kills
  long/cursor-lifetime
  long/crash
  long/lying-chains
  long/wallet-orders
  long/hostile
  long/redis-frozen
  long/benchmarks
  long/storms
  long/expected-times
  long/too-large-pages
  long/console-faults
  long/postgres-receiver
  long/handle-once-examples
  long/dashboard-alerts
  long/short-delivery-kills
`
  .trim()
  .split(/\s+/);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const found = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return found === -1 ? LONGEST.length : found;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

/*
 * Two tiers. `npm test` has all that runs in the test's process, and one quick case of each way to run the shipped program
 * and of each optional part. test/long has what runs whole programs or optional parts again and again, under faults, or for
 * long; test/long/** is left out by `npm test`. A command that only has to be run is run by test/support/command.ts.
 */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/optional-parts.ts', 'test/support/redis-server.ts'],
    reporters: ['default', './test/support/skipped-reporter.ts'],
    setupFiles: ['test/support/fast-check-seed.ts'],
    // Nothing of what tests promise: only an end, also on a machine that is many times slower than a quiet one.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 170_000 } },
    pool: 'forks',
    // Each test has servers, folders and Redis keys of its own: files can share a process, which saves its start each time.
    isolate: false,
    // Most tests wait for something to happen most of the time: more of them than processors run at once. `npm test`, whose
    // files start fewer programs, takes 12.
    maxWorkers: 8,
    sequence: { sequencer: LongestFirst },
  },
});
