import type { RouteDefinition } from '../quotes/route.ts';
import {
  gaslessId,
  gatewayJobId,
  intentId,
  quoteId,
  type RouteService,
  routeId,
  type SubjectId,
  txId,
  vaultId,
  walletId,
} from './subject.ts';

/** The subjects that a subscription names, as a user writes them. */
export type NamedSubjects = {
  wallets: readonly string[];
  intents: readonly string[];
  sourceTxs: readonly string[];
  destinationTxs: readonly string[];
  quotes: readonly string[];
  gaslessJobs: readonly { id: string; endpoint: 'status' | 'gateway' }[];
  vaults: readonly { address: string; chainId: number }[];
  routes: readonly { name: string; service: RouteService }[];
};

/** The ids of the subjects that a subscription names, each once. */
export function subjectsOf(named: NamedSubjects): SubjectId[] {
  const subjects = [
    ...named.wallets.map(walletId),
    ...named.intents.map(intentId),
    ...named.sourceTxs.map((hash) => txId('source', hash)),
    ...named.destinationTxs.map((hash) => txId('destination', hash)),
    ...named.quotes.map(quoteId),
    ...named.gaslessJobs.map((job) =>
      job.endpoint === 'gateway' ? gatewayJobId(job.id) : gaslessId(job.id),
    ),
    ...named.vaults.map(vaultId),
    ...named.routes.map(routeId),
  ];
  return [...new Set(subjects)];
}

/** The routes of some subscriptions, each once: a name is one route wherever it stands. */
export function routesOf(
  subscriptions: readonly { routes: readonly RouteDefinition[] }[],
): RouteDefinition[] {
  const routes = subscriptions.flatMap((subscription) => subscription.routes);
  return [...new Map(routes.map((route) => [route.name, route])).values()];
}
