import { join } from 'node:path';
import { expect, test } from 'vitest';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { Program } from '../support/program.ts';

const OPTIONAL = needs(PARTS.postgres, PARTS.faketime);

const { later } = opening();

const RUN = join(import.meta.dirname, '../chaos/books.ts');

test.skipIf(OPTIONAL.skip)(
  `the books of two days agree with the generated transfers, with all faults around midnight${OPTIONAL.note}`,
  async () => {
    const run = await Program.start(RUN, ['--seconds', '24', '--starting', '20', '--seed', '1']);
    // It ends all processes that it started, also where this test times out.
    later(() => run.end('SIGTERM'));
    const { code } = await run.ending();
    expect(run.output()).toMatch(/the books balance and agree\.$/m);
    expect(code).toBe(0);
  },
  1_800_000,
);
