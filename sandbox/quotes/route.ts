import type { FieldError, ProblemCode } from '../endpoints/problem.ts';
import { CHAINS, type Chain, type Token, tokensOf } from '../world/chains.ts';
import { isAddress, lookupKey } from '../world/identifiers.ts';

/** One end of a route as a client names it; each `address` is a field of the request and its value. */
export type RouteEnd = {
  chainId: number;
  token: string;
  addresses: readonly { field: string; value: string }[];
};

/** A chain and a token of it. */
export type Place = { chain: Chain; token: Token };

/** A route between two chains, or the reason for none. */
export type Route =
  | { type: 'route'; source: Place; destination: Place }
  | { type: 'invalid'; errors: FieldError[] }
  | { type: 'refused'; code: ProblemCode; detail: string };

/** A refusal of an amount. */
export type AmountRefusal = { code: ProblemCode; detail: string };

const LEAST_AMOUNT = 100_000n;
const MOST_AMOUNT = 1_000_000_000_000n;
/** Liquidity for a chain that is not EVM, in base units. */
const NON_EVM_LIQUIDITY = 250_000_000_000n;

/** Source and destination of a transfer. */
export type RouteEnds = { source: RouteEnd; destination: RouteEnd };

/** Finds the chains and tokens of a route. Tron only receives, and source and destination are never one chain. */
export function findRoute({ source, destination }: RouteEnds): Route {
  const sourceChain = chainOf(source.chainId);
  const destinationChain = chainOf(destination.chainId);
  if (sourceChain === undefined) return unsupported(source.chainId);
  if (destinationChain === undefined) return unsupported(destination.chainId);
  const errors = [...wrongAddresses(source, sourceChain), ...wrongAddresses(destination, destinationChain)];
  if (errors.length > 0) return { type: 'invalid', errors };
  if (sourceChain === destinationChain || sourceChain.kind === 'tron') {
    const detail = `no transfers from ${sourceChain.name} to ${destinationChain.name}`;
    return { type: 'refused', code: 'chain-pair-unsupported', detail };
  }
  const sourceToken = tokenOf(sourceChain, source.token);
  const destinationToken = tokenOf(destinationChain, destination.token);
  if (sourceToken === undefined || destinationToken === undefined) {
    return { type: 'refused', code: 'solver-error', detail: 'no solver returned a usable quote' };
  }
  return {
    type: 'route',
    source: { chain: sourceChain, token: sourceToken },
    destination: { chain: destinationChain, token: destinationToken },
  };
}

/** Refuses an amount (of the source, in base units) that the route cannot send; null when it can. */
export function refuseAmount(amount: bigint, destination: Chain): AmountRefusal | null {
  if (amount < LEAST_AMOUNT) {
    return { code: 'amount-too-low', detail: `found ${amount}, expected at least ${LEAST_AMOUNT}` };
  }
  if (amount > MOST_AMOUNT) {
    return { code: 'amount-too-high', detail: `found ${amount}, expected at most ${MOST_AMOUNT}` };
  }
  if (destination.kind !== 'evm' && amount > NON_EVM_LIQUIDITY) {
    const detail = `found ${amount}, but ${destination.name} has liquidity for ${NON_EVM_LIQUIDITY}`;
    return { code: 'insufficient-liquidity', detail };
  }
  return null;
}

function chainOf(chainId: number): Chain | undefined {
  return CHAINS.find((chain) => chain.chainId === chainId);
}

function tokenOf(chain: Chain, token: string): Token | undefined {
  return tokensOf(chain).find(({ address }) => lookupKey(address) === lookupKey(token));
}

function unsupported(chainId: number): Route {
  return { type: 'refused', code: 'chain-not-supported', detail: `chain ${chainId} is not supported` };
}

function wrongAddresses({ addresses }: RouteEnd, { kind, name }: Chain): FieldError[] {
  return addresses
    .filter(({ value }) => !isAddress(value, kind))
    .map(({ field, value }) => ({
      field,
      detail: `found ${JSON.stringify(value)}, expected an address of ${name}`,
    }));
}
