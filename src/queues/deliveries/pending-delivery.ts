import type { RenderedEvent } from '../../domain/events/event.ts';
import { renderEvent, withSuspended } from '../../domain/events/make-event.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import type { StoredSubscription } from '../../store/definitions.ts';
import type { ClaimedDelivery, DeliveryFact, DeliveryStore } from '../../store/deliveries.ts';
import type { EventLog } from '../../store/event-log.ts';
import { compareEntries, eventOf, isOfNewerVersion, type LogEntry } from '../../store/log-entry.ts';
import type { Registry } from '../../store/registry.ts';

/**
 * An open delivery with its event as the receiver gets it. The event is null where it has expired from the log (`isGone`) or
 * cannot be read; `missing` states why. `waits`: a newer version can read it.
 */
export type PendingDelivery = {
  id: string;
  fact: DeliveryFact;
  event: RenderedEvent | null;
  missing: string | null;
  isGone: boolean;
  waits: boolean;
};

type DeliverySources = {
  deliveries: DeliveryStore;
  events: EventLog;
  registry: Registry;
  directory: Directory;
};

/** Builds a pending delivery from a claimed one and its log entry. */
export function pendingDelivery(
  { id, fact, entry }: ClaimedDelivery,
  subscriptions: ReadonlyMap<string, StoredSubscription>,
  { events, directory }: DeliverySources,
): PendingDelivery {
  const stored = entry === null ? null : events.read(fact.entry, entry);
  return withEvent({ id, fact, entry: stored }, subscriptions, directory);
}

/** Reads the deliveries of one message, in the order of the log. Omits those that have ended. */
export async function readPending(
  receiver: string,
  ids: readonly string[],
  { deliveries, events, registry, directory }: DeliverySources,
): Promise<PendingDelivery[]> {
  const read = await Promise.all(
    ids.map(async (id): Promise<PendingDelivery | null> => {
      const fact = await deliveries.fact(receiver, id);
      if (fact?.outcome !== 'pending') return null;
      const [entry, subscriptions] = await Promise.all([
        events.at(fact.entry),
        registry.subscriptions(fact.roots),
      ]);
      return withEvent({ id, fact, entry }, subscriptions, directory);
    }),
  );
  return read
    .filter((delivery) => delivery !== null)
    .sort((one, other) => compareEntries(one.fact.entry, other.fact.entry));
}

function withEvent(
  { id, fact, entry }: { id: string; fact: DeliveryFact; entry: LogEntry | null },
  subscriptions: ReadonlyMap<string, StoredSubscription>,
  directory: Directory,
): PendingDelivery {
  const event = eventOf(entry);
  if (event !== null) {
    const rendered = renderEvent(event, fact.roots, subscriptions, directory);
    const shown = fact.suspended === '' ? rendered : withSuspended(rendered);
    return { id, fact, event: shown, missing: null, isGone: false, waits: false };
  }
  const isUnreadable = entry?.kind === 'unreadable';
  const missing = isUnreadable ? `the event's entry in the log cannot be read: ${entry.reason}` : null;
  return { id, fact, event, missing, isGone: !isUnreadable, waits: isUnreadable && isOfNewerVersion(entry) };
}
