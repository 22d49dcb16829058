import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Program } from '../support/program.ts';

const RUN = join(import.meta.dirname, '../chaos/facts.ts');

test.each([
  1, 2, 3,
])('short deliveries, expiring quotes and vaults and failing steps are each told once, and nothing else, with faults of seed %i', async (seed) => {
  const run = await Program.start(RUN, ['--seed', String(seed)]);
  const { code } = await run.ending();
  expect(run.said()).toMatch(/each told once$/m);
  expect(code).toBe(0);
}, 600_000);
