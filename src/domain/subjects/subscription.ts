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

type NamedSubjects = {
  wallets: readonly string[];
  intents: readonly string[];
  sourceTxs: readonly string[];
  destinationTxs: readonly string[];
  quotes: readonly string[];
  gaslessJobs: readonly { id: string; endpoint: 'status' | 'gateway' }[];
  vaults: readonly { address: string; chainId: number }[];
  routes: readonly { name: string; service: RouteService }[];
};

/** Unique ids of the subjects that a subscription names. */
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

/** Unique routes of some subscriptions: a name is one route everywhere. */
export function routesOf(
  subscriptions: readonly { routes: readonly RouteDefinition[] }[],
): RouteDefinition[] {
  const routes = subscriptions.flatMap((subscription) => subscription.routes);
  return [...new Map(routes.map((route) => [route.name, route])).values()];
}

/**
 * Reason why a subscription gets the events of a subject: the subscription, and the subject it names (both: the key)
 * through which this one was found. `order-1042|intent:0x…` is direct; `treasury|wallet:0x…` on a transfer was found
 * on a page of that wallet. The intents that a quote names inherit the claims of the quote.
 *
 * `atMs`: time at which the subscription began to name the subject (Redis time), anew after a removal.
 * `historyBefore`: earlier changes are history for this claim (Unix seconds on the upstream's clock); null for named
 * subjects, and when the subscription wants history. `served`: the state was reported, or found to be history.
 */
export type Claim = { key: string; atMs: number; historyBefore: number | null; served: boolean };

/** Represents a subscription in the subscription key of a subject tracked by itself. No subscription has this name. */
const BY_ITSELF = '~';

/** Subscription key of a subject that is tracked by itself. */
export function trackedKey(subject: SubjectId): string {
  return `${BY_ITSELF}|${subject}`;
}

/** True for the subscription key of a subject tracked by itself, which is also the name of its definition. */
export function isTrackedKey(key: string): boolean {
  return key.startsWith(`${BY_ITSELF}|`);
}

/**
 * Subscription key of a subject that a subscription names. With `receivers` it counts only for those of its receivers, as in
 * `treasury>backend,desk|wallet:0x…`: their start is earlier than that of the others (see suspended-keys.ts).
 */
export function claimKey(subscription: string, subject: SubjectId, receivers?: readonly string[]): string {
  const narrowed = receivers === undefined ? '' : `>${receivers.join(',')}`;
  return `${subscription}${narrowed}|${subject}`;
}

/** The parts of a claim's subscription key. `receivers` is null when it counts for all receivers of the subscription. */
type ParsedKey = { subscription: string; receivers: readonly string[] | null; subject: string };

/** Parses a claim's subscription key. A subject tracked by itself has its own definition, stored under this key. */
export function parseClaimKey(key: string): ParsedKey {
  const bar = key.indexOf('|');
  const subject = key.slice(bar + 1);
  if (isTrackedKey(key)) return { subscription: key, receivers: null, subject };
  const [subscription = '', narrowed] = key.slice(0, bar).split('>');
  const receivers = narrowed === undefined ? null : narrowed.split(',').filter((name) => name !== '');
  return { subscription, receivers, subject };
}

/** True when a record of this time is history for a claim. A record without time is not. */
export function isHistoryFor(claim: Claim, updatedAt: number | null): boolean {
  return claim.historyBefore !== null && updatedAt !== null && updatedAt < claim.historyBefore;
}

/** Unique wallets among the subscription keys of some claims, in order. */
export function walletsOf(claimKeys: readonly string[]): string[] {
  const wallets = claimKeys
    .map((key) => parseClaimKey(key).subject)
    .filter((subject) => subject.startsWith('wallet:'))
    .map((subject) => subject.slice('wallet:'.length));
  return [...new Set(wallets)];
}

/** Returns the claims of a subject after an event for all of them: those that it served first are served then. */
export function claimsAfterEvent(before: readonly Claim[], fresh: readonly Claim[]): Claim[] {
  const all = [...before, ...fresh.map((claim) => ({ ...claim, served: true }))];
  return [...new Map(all.map((claim) => [claim.key, claim])).values()];
}
