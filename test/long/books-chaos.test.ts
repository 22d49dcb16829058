import { join } from 'node:path';
import { expect, test } from 'vitest';
import { clockBender } from '../chaos/daemon.ts';
import { opening } from '../support/opening.ts';
import { postgresFolder } from '../support/postgres-process.ts';
import { Program } from '../support/program.ts';

const { later } = opening();

const RUN = join(import.meta.dirname, '../chaos/books.ts');

test.skipIf(postgresFolder() === null || clockBender() === null)(
  'the books of two days agree with what was made, with all faults around midnight (skipped without Debian’s postgresql and faketime)',
  async () => {
    const run = await Program.start(RUN, ['--seconds', '24', '--starting', '20', '--seed', '1']);
    // It ends all that it started, also where this test is out of time.
    later(() => run.end('SIGTERM'));
    const { code } = await run.ending();
    expect(run.said()).toMatch(/the books balance and agree\.$/m);
    expect(code).toBe(0);
  },
  1_800_000,
);
