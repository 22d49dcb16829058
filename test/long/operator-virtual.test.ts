import { join } from 'node:path';
import { expect, test } from 'vitest';
import { needs, PARTS } from '../support/optional-parts.ts';
import { Program } from '../support/program.ts';

const run = join(import.meta.dirname, '../chaos/operator.ts');

// Seeds by which the model once did not add up are added here.
const { skip, note } = needs(PARTS.gcc);

test.skipIf(skip).each([1, 2, 3, 13, 14].map((seed) => ({ seed })))(
  `an operator’s life in virtual time adds up, by seed $seed${note}`,
  async ({ seed }) => {
    const life = await Program.start(run, ['--virtual', '--seed', String(seed)]);
    const { code } = await life.ending();
    expect(life.said()).toMatch(/it all adds up/);
    expect(code).toBe(0);
  },
);
