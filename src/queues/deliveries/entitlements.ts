import type { Event } from '../../domain/events/event.ts';
import { passesFilter, wantsType } from '../../domain/events/filter.ts';
import { parseClaimRoot } from '../../domain/subjects/claim.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import type { StoredReceiver, StoredSubscription } from '../../store/definitions.ts';
import { operatorSubject } from '../../store/operator-event.ts';
import type { Registry } from '../../store/registry.ts';
import type { Fact } from './log-batch.ts';

/**
 * An event that a receiver is entitled to: its place in the log, the claims that lead to the receiver, and the entry
 * that says so, which for an audience stands behind the event's. `isSuspended`: it waited until they were back.
 */
export type Entitlement = { event: Event; entry: string; roots: string[]; at: string; isSuspended: boolean };

/** What says who is entitled to what: subscriptions, and the decimals of tokens for `minAmount`. */
export type EntitlementParts = { registry: Registry; directory: Directory };

/** Tells which of some events of the log a receiver is entitled to, in order. */
export type Entitled = (receiver: StoredReceiver) => Entitlement[];

/** Reads once who the receivers of some events are, by `known` where that was read already; what it returns asks nobody. */
export async function entitlements(
  facts: readonly Fact[],
  { registry, directory }: EntitlementParts,
  known?: ReadonlyMap<string, StoredSubscription>,
): Promise<Entitled> {
  const subscriptions = known ?? (await registry.subscriptions(facts.flatMap(({ roots }) => roots ?? [])));
  const receivers = new Map(
    [...subscriptions].map(([name, subscription]) => [name, new Set(subscription.receivers)] as const),
  );
  // Most events of a batch are named by few claims: each is taken apart once.
  const claimed = facts.map(({ roots }) =>
    roots === null
      ? null
      : roots.map((root) => {
          const { subscription, receivers: narrowed } = parseClaimRoot(root);
          const all = receivers.get(subscription);
          return {
            root,
            has: (name: string) => all?.has(name) === true && narrowed?.includes(name) !== false,
          };
        }),
  );
  return (receiver) =>
    facts.flatMap((fact, index) => {
      const claims = claimed[index] ?? null;
      const roots = claims?.flatMap(({ root, has }) => (has(receiver.name) ? [root] : [])) ?? null;
      return entitlement({ receiver, fact, roots }, directory) ?? [];
    });
}

/** The events among some of the log that one receiver is entitled to, in order. */
export async function entitledTo(
  receiver: StoredReceiver,
  facts: readonly Fact[],
  { registry, directory }: EntitlementParts,
): Promise<Entitlement[]> {
  return (await entitlements(facts, { registry, directory }))(receiver);
}

/** What one receiver is entitled to of a fact; null for nothing. `roots` are the claims that lead to it; null for an operator's event. */
export function entitlement(
  { receiver, fact, roots }: { receiver: StoredReceiver; fact: Fact; roots: string[] | null },
  directory: Directory,
): Entitlement | null {
  const { event, place, at, withheld } = fact;
  if (roots?.length === 0 || !wantsType(receiver.events, event.type)) return null;
  if (roots === null) {
    // What happened to a receiver is told to the others.
    const isItself = event.data.subject.id === operatorSubject('receiver', receiver.name);
    return isItself ? null : { event, entry: place, roots: [], at, isSuspended: false };
  }
  const wanted = passesFilter(receiver.filter, { record: event.data.record, roots }, directory);
  const isSuspended = fact.isSuspended || roots.every((root) => withheld.includes(root));
  return wanted ? { event, entry: place, roots, at, isSuspended } : null;
}
