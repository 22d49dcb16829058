import { join } from 'node:path';
import { expect, test } from 'vitest';
import { needs, PARTS } from '../support/optional-parts.ts';
import { Program } from '../support/program.ts';

const run = join(import.meta.dirname, '../chaos/operator.ts');
const { skip, note } = needs(PARTS.gcc);

// Four lives in about three minutes; each once found an error. `npm run operator -- --virtual` has more.
test.skipIf(skip).each([
  { seed: 2, acts: 40 },
  { seed: 67, acts: 60 },
  { seed: 88, acts: 60 },
  { seed: 77020, acts: 60 },
])(`an operator’s life in virtual time adds up, by seed $seed${note}`, async ({ seed, acts }) => {
  const life = await Program.start(run, ['--virtual', '--seed', String(seed), '--acts', String(acts)]);
  const { code } = await life.ending();
  expect(life.output()).toMatch(/it all adds up/);
  expect(code).toBe(0);
});
