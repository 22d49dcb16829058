import { randomInt } from 'node:crypto';
import fc from 'fast-check';

/** The seed of every property in `npm test`, so that all runs try the same cases. */
const FIXED_SEED = 20_261_124;

/** Reads `FUZZ_SEED`: a whole number repeats a run, `fresh` draws a new seed. */
function chosenSeed(wanted: string | undefined): number {
  if (wanted === undefined) return FIXED_SEED;
  if (wanted === 'fresh') return randomInt(2 ** 31);
  if (/^-?\d{1,10}$/.test(wanted)) return Number(wanted);
  throw new Error(`found FUZZ_SEED=${wanted}, expected a whole number or fresh`);
}

/** The seed of this process. fast-check prints it with each counterexample. */
export const SEED = chosenSeed(process.env.FUZZ_SEED);

/** Reads `FUZZ_RUNS`: the number of cases of each property that does not set its own. */
function chosenRuns(wanted: string | undefined): { numRuns?: number } {
  if (wanted === undefined) return {};
  if (/^[1-9]\d{0,6}$/.test(wanted)) return { numRuns: Number(wanted) };
  throw new Error(`found FUZZ_RUNS=${wanted}, expected a whole number from 1 to 9,999,999`);
}

fc.configureGlobal({ seed: SEED, ...chosenRuns(process.env.FUZZ_RUNS) });
