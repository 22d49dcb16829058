import { expect, test } from 'vitest';
import { factsRun } from '../support/facts-run.ts';

// The other seeds are in test/long.
test('short deliveries, expiring quotes and vaults and failing steps are each told once, and nothing else, with faults of seed 2', async () => {
  const { code, said } = await factsRun(2);
  expect(said).toMatch(/each told once$/m);
  expect(code).toBe(0);
}, 1_800_000);
