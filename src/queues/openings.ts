import { parseClaimRoot } from '../domain/claim.ts';
import type { Event } from '../domain/event.ts';
import { passesFilter } from '../domain/filter.ts';
import { wantsType } from '../domain/glob.ts';
import type { EventLog, LogEntry } from '../store/event-log.ts';
import { operatorSubject } from '../store/operator-event.ts';
import type { Registry, StoredReceiver, StoredSubscription } from '../store/registry.ts';

/** An event that a receiver is entitled to: its place in the log, and the claims that lead to the receiver. */
export type Entitlement = { event: Event; entry: string; roots: string[] };

/** What entitlement is read from. */
type EntitlementParts = { events: EventLog; registry: Registry };

/** The events that some entries of the log mean for a receiver, in order. */
export async function entitledTo(
  receiver: StoredReceiver,
  entries: readonly LogEntry[],
  { events, registry }: EntitlementParts,
): Promise<Entitlement[]> {
  const roots = entries.flatMap((entry) => (entry.kind === 'operator' ? [] : entry.roots));
  const subscriptions = await registry.subscriptions(roots);
  const entitled: Entitlement[] = [];
  for (const entry of entries) {
    const found = await entitlement(receiver, entry, { events, subscriptions });
    if (found !== null) entitled.push(found);
  }
  return entitled;
}

async function entitlement(
  receiver: StoredReceiver,
  entry: LogEntry,
  parts: { events: EventLog; subscriptions: ReadonlyMap<string, StoredSubscription> },
): Promise<Entitlement | null> {
  const place = entry.kind === 'audience' ? entry.entry : entry.id;
  const event = entry.kind === 'audience' ? await parts.events.at(entry.entry) : entry.event;
  // A late audience of an event that has left the log: there is nothing to deliver any more.
  if (event === null || !wantsType(receiver.events, event.type)) return null;
  if (entry.kind === 'operator') {
    // What happened to a receiver is told to the others.
    const isItself = event.data.subject.id === operatorSubject('receiver', receiver.name);
    return isItself ? null : { event, entry: place, roots: [] };
  }
  const roots = entry.roots.filter((root) =>
    parts.subscriptions.get(parseClaimRoot(root).subscription)?.receivers.includes(receiver.name),
  );
  const wanted = roots.length > 0 && passesFilter(receiver.filter, { record: event.data.record, roots });
  return wanted ? { event, entry: place, roots } : null;
}
