import type { Directory } from '../domain/chains.ts';
import { parseClaimRoot } from '../domain/claim.ts';
import type { Event } from '../domain/event.ts';
import { passesFilter } from '../domain/filter.ts';
import { wantsType } from '../domain/glob.ts';
import { operatorSubject } from '../store/operator-event.ts';
import type { Registry, StoredReceiver, StoredSubscription } from '../store/registry.ts';
import type { Fact } from './log-batch.ts';

/** An event that a receiver is entitled to: its place in the log, and the claims that lead to the receiver. */
export type Entitlement = { event: Event; entry: string; roots: string[] };

/** What says who is entitled to what: subscriptions, and the decimals of tokens for `minAmount`. */
export type EntitlementParts = { registry: Registry; directory: Directory };

/** The events among some of the log that a receiver is entitled to, in order. */
export async function entitledTo(
  receiver: StoredReceiver,
  facts: readonly Fact[],
  { registry, directory }: EntitlementParts,
): Promise<Entitlement[]> {
  const subscriptions = await registry.subscriptions(facts.flatMap(({ roots }) => roots ?? []));
  return facts.flatMap((fact) => entitlement(receiver, fact, { subscriptions, directory }) ?? []);
}

function entitlement(
  receiver: StoredReceiver,
  { event, place, roots: claims }: Fact,
  {
    subscriptions,
    directory,
  }: { subscriptions: ReadonlyMap<string, StoredSubscription>; directory: Directory },
): Entitlement | null {
  if (!wantsType(receiver.events, event.type)) return null;
  if (claims === null) {
    // What happened to a receiver is told to the others.
    const isItself = event.data.subject.id === operatorSubject('receiver', receiver.name);
    return isItself ? null : { event, entry: place, roots: [] };
  }
  const roots = claims.filter((root) =>
    subscriptions.get(parseClaimRoot(root).subscription)?.receivers.includes(receiver.name),
  );
  const filtered = { record: event.data.record, roots };
  const wanted = roots.length > 0 && passesFilter(receiver.filter, filtered, directory);
  return wanted ? { event, entry: place, roots } : null;
}
