import { inject, test } from 'vitest';
import { underLies } from '../support/lying-run.ts';

// LYING_SEEDS=1,2,3 and LYING_FILLS=1000 enlarge the test, and print the result of each; with LYING_HOUR=1 an hour passes on the
// chains, after which a missing payment is unproven.
const SEEDS = (process.env.LYING_SEEDS ?? '1').split(',').map(Number);
const FILLS = Number(process.env.LYING_FILLS ?? '120');

test.concurrent.for(SEEDS)(
  'every lie about a payment is disputed with its reason or not decided, and no truth is, with seed %i',
  {
    timeout: 7_200_000,
  },
  async (seed, { onTestFinished, expect }) => {
    const outcome = await underLies({
      onTestFinished,
      redisUrl: inject('redisUrl'),
      seed,
      fills: FILLS,
      passesHour: process.env.LYING_HOUR === '1',
    });
    const { counts, ...figures } = outcome;
    if (process.env.LYING_FILLS !== undefined) {
      const shown = { ...figures, counts: Object.fromEntries(counts) };
      process.stdout.write(`seed ${seed} ${JSON.stringify(shown)}\n`);
    }
    expect(outcome.problems).toEqual([]);
    expect(outcome.kills).toBe(2);
    expect(outcome.reorganised).toBeGreaterThan(0);
  },
);
