import { expect, test } from 'vitest';
import { factsRun } from '../support/facts-run.ts';

test.each([
  1, 2, 3,
])('short deliveries, expiring quotes and vaults and failing steps are each reported once, and nothing else, with faults of seed %i', async (seed) => {
  const { code, output } = await factsRun(seed);
  expect(output).toMatch(/each reported once$/m);
  expect(code).toBe(0);
}, 1_800_000);
