import { address } from '../world/identifiers.ts';
import { randomStream } from '../world/random.ts';

/** A fulfiller of intents, for a share of the amount (in millionths). */
export type Solver = { name: string; address: string; feeMillionths: bigint; fillSeconds: number };

/** Price of a transfer, in base units: `sourceAmount` is `destinationAmount` and both fees together. */
export type Price = {
  sourceAmount: bigint;
  destinationAmount: bigint;
  solverFee: bigint;
  protocolFee: bigint;
};

/** A requested price, in base units of tokens with equal decimals. */
export type Wanted =
  | { type: 'exact-in'; amount: bigint }
  | { type: 'exact-out'; amountOut: bigint }
  | { type: 'custom'; amount: bigint; amountOut: bigint };

const PROTOCOL_FEE_MILLIONTHS = 100n;
/** Fee of a solver for any amount, in base units. */
const FLAT_FEE = 20_000n;

/** The solvers that quote, cheapest first. */
export function createSolvers({ seed }: { seed: number }): readonly Solver[] {
  const terms = [
    { name: 'Alder', feeMillionths: 300n, fillSeconds: 25 },
    { name: 'Birch', feeMillionths: 500n, fillSeconds: 20 },
    { name: 'Cedar', feeMillionths: 900n, fillSeconds: 12 },
  ];
  return terms.map((term) => ({ ...term, address: address(randomStream(seed, 'solver', term.name), 'evm') }));
}

/** A solver's price; null when the amount does not cover its fees. */
export function price(solver: Solver, wanted: Wanted): Price | null {
  switch (wanted.type) {
    case 'exact-in': {
      const fees = feesOn(solver, wanted.amount);
      const destinationAmount = wanted.amount - fees.solverFee - fees.protocolFee;
      return destinationAmount > 0n ? { sourceAmount: wanted.amount, destinationAmount, ...fees } : null;
    }
    case 'exact-out': {
      const fees = feesOn(solver, wanted.amountOut);
      const sourceAmount = wanted.amountOut + fees.solverFee + fees.protocolFee;
      return { sourceAmount, destinationAmount: wanted.amountOut, ...fees };
    }
    case 'custom': {
      // The solver takes the difference of the two amounts, when that is enough.
      const least = feesOn(solver, wanted.amount);
      const solverFee = wanted.amount - wanted.amountOut - least.protocolFee;
      if (solverFee < least.solverFee) return null;
      return {
        sourceAmount: wanted.amount,
        destinationAmount: wanted.amountOut,
        solverFee,
        protocolFee: least.protocolFee,
      };
    }
    default:
      return wanted satisfies never;
  }
}

function feesOn(solver: Solver, amount: bigint): Pick<Price, 'solverFee' | 'protocolFee'> {
  return {
    solverFee: FLAT_FEE + share(amount, solver.feeMillionths),
    protocolFee: share(amount, PROTOCOL_FEE_MILLIONTHS),
  };
}

function share(amount: bigint, millionths: bigint): bigint {
  return (amount * millionths) / 1_000_000n;
}
