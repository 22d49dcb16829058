import { bodyOf, requestOpenly } from './call.ts';
import { list, read } from './expectation.ts';
import type { Target } from './rule.ts';

export const OPEN_QUOTES = /^\/api\/v3\/quotes\/exactIn/;

/** A request to the open quoting service for the route of the material. */
export function openRequest(target: Target): Record<string, unknown> {
  const { source, destination, amount } = target.material.route;
  return {
    dAppID: 'conformance',
    quoteRequest: {
      sourceChainID: source.chainId,
      destinationChainID: destination.chainId,
      sourceToken: source.token,
      destinationToken: destination.token,
      sourceAmount: amount,
      funder: source.funder,
      recipient: destination.recipient,
    },
  };
}

/** The solvers' entries, for both kinds of execution. */
export async function openEntries(target: Target): Promise<unknown[]> {
  const body = { ...openRequest(target), intentExecutionTypes: ['SELF_PUBLISH', 'GASLESS'] };
  return list(bodyOf(await requestOpenly(target, body), 201), 'data');
}

/** The `quoteResponse` of every entry. */
export async function openQuotes(target: Target): Promise<unknown[]> {
  return (await openEntries(target)).map((entry) => read(entry, 'quoteData.quoteResponse'));
}
