import type { RouteDefinition, RouteQuote } from '../../src/domain/quotes/route.ts';

/** USDC on Base and on Optimism, as the sandbox and well-known tables have it. */
export const USDC_BASE = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
export const USDC_OPTIMISM = '0x0b2c639c533813f4aa9d7837caf62653d097ff85';

const WALLET = '0x52908400098527886e0f7030069857d2e4169ee7';

/** A route as a config file writes it. */
export const ROUTE_ITEM = {
  name: 'base-to-optimism',
  source: { chainId: 8453, token: USDC_BASE },
  destination: { chainId: 10, token: USDC_OPTIMISM },
  amount: '100000000',
  funder: WALLET,
  recipient: WALLET,
  movedBy: 0.01,
  every: '1s',
};

const { every: _, ...same } = ROUTE_ITEM;

/** The same route as the program sees it. */
export const ROUTE: RouteDefinition = {
  ...same,
  service: 'open',
  executions: ['SELF_PUBLISH'],
  everyMs: 1_000,
};

/** A solver's quote; each has an id and an expiry of its own, as real ones have. */
export function quoteOf(output: string, facts: Partial<RouteQuote> & { id?: string } = {}): RouteQuote {
  const { id = `quote:${output}`, ...rest } = facts;
  return {
    solver: '0x1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a',
    output,
    minimumOutput: null,
    fees: [],
    fillEstimateSeconds: 25,
    raw: {
      quoteID: id,
      quoteData: { quoteResponse: { destinationAmount: output, encodedRoute: `0x${'ab'.repeat(128)}` } },
    },
    ...rest,
  };
}

/** A quote as the open quoting service writes it. */
export function openEntry(output: string, more: object = {}): object {
  return {
    quoteID: `quote:${output}`,
    quoteResponseID: `quoteResponse:${output}`,
    solverID: '0x1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a',
    quoteData: { quoteResponse: { sourceAmount: ROUTE.amount, destinationAmount: output, ...more } },
  };
}
