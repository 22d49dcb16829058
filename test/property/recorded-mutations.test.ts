import { describeRecorded } from '../support/recorded-properties.ts';

// A share of the 10,000 of test/long/recorded-mutations.test.ts.
describeRecorded(Number(process.env.FUZZ_RUNS ?? 1_000));
