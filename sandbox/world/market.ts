import { z } from 'zod';
import type { Solver } from '../quotes/pricing.ts';

/** Market conditions: a share of the amount that every solver adds to its fee, and the number of solvers, cheapest first. */
export type Market = { extraFee: number; solvers: number };

export const USUAL_MARKET: Market = { extraFee: 0, solvers: 3 };

const extraFee = 'expected a share from 0 to 0.9';
const solvers = 'expected a whole number from 0 to 3';

/** Body of `POST /market`; a missing member stays unchanged. */
export const marketSchema = z.strictObject({
  extraFee: z
    .number({ error: extraFee })
    .min(0, { error: extraFee })
    .max(0.9, { error: extraFee })
    .optional(),
  solvers: z.int({ error: solvers }).min(0, { error: solvers }).max(3, { error: solvers }).optional(),
});

/** Solvers that quote in this market, with their fees in it. */
export function solversIn(market: Market, all: readonly Solver[]): Solver[] {
  const extra = BigInt(Math.round(market.extraFee * 1_000_000));
  return all
    .slice(0, market.solvers)
    .map((solver) => ({ ...solver, feeMillionths: solver.feeMillionths + extra }));
}
