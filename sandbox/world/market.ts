import { z } from 'zod';
import type { Solver } from '../quotes/pricing.ts';

/**
 * What moves prices: a share of the amount that every solver takes on top of its usual fee, and how many of them quote
 * at all, the cheapest first.
 */
export type Market = { extraFee: number; solvers: number };

/** The market with which a sandbox begins. */
export const USUAL_MARKET: Market = { extraFee: 0, solvers: 3 };

const extraFee = 'expected a share from 0 to 0.9';
const solvers = 'expected a whole number from 0 to 3';

/** What `POST /market` takes; what is left out stays as it is. */
export const marketSchema = z.strictObject({
  extraFee: z
    .number({ error: extraFee })
    .min(0, { error: extraFee })
    .max(0.9, { error: extraFee })
    .optional(),
  solvers: z.int({ error: solvers }).min(0, { error: solvers }).max(3, { error: solvers }).optional(),
});

/** The solvers that quote in this market, with what they take in it. */
export function solversIn(market: Market, all: readonly Solver[]): Solver[] {
  const extra = BigInt(Math.round(market.extraFee * 1_000_000));
  return all
    .slice(0, market.solvers)
    .map((solver) => ({ ...solver, feeMillionths: solver.feeMillionths + extra }));
}
