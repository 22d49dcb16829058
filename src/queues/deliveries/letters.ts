import type { RenderedEvent } from '../../domain/events/event.ts';
import { renderEvent } from '../../domain/events/render.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import type { Claimed, DeliveryFact, DeliveryStore } from '../../store/deliveries.ts';
import type { EventLog } from '../../store/event-log.ts';
import { compareEntries, eventOf, isOfNewerVersion, type LogEntry } from '../../store/log-entry.ts';
import type { Registry, StoredSubscription } from '../../store/registry.ts';

/**
 * An open delivery with its event as the receiver gets it; null when there is none, and `missing` says why. `waits`: a
 * newer version has it.
 */
export type Letter = {
  id: string;
  fact: DeliveryFact;
  event: RenderedEvent | null;
  missing: string | null;
  waits: boolean;
};

/** What letters are read from. */
type LetterParts = {
  deliveries: DeliveryStore;
  events: EventLog;
  registry: Registry;
  directory: Directory;
};

/** The letter of a delivery that was handed out with its entry of the log. */
export function letterOf(
  { id, fact, entry }: Claimed,
  subscriptions: ReadonlyMap<string, StoredSubscription>,
  { events, directory }: Pick<LetterParts, 'events' | 'directory'>,
): Letter {
  const stored = entry === null ? null : events.read(fact.entry, entry);
  return letter({ id, fact, entry: stored }, subscriptions, directory);
}

/** Reads the deliveries of one message, in the order of the log; those that have ended are left out. */
export async function readLetters(
  receiver: string,
  ids: readonly string[],
  { deliveries, events, registry, directory }: LetterParts,
): Promise<Letter[]> {
  const letters = await Promise.all(
    ids.map(async (id): Promise<Letter | null> => {
      const fact = await deliveries.fact(receiver, id);
      if (fact?.outcome !== 'pending') return null;
      const [entry, subscriptions] = await Promise.all([
        events.at(fact.entry),
        registry.subscriptions(fact.roots),
      ]);
      return letter({ id, fact, entry }, subscriptions, directory);
    }),
  );
  return letters
    .filter((letter) => letter !== null)
    .sort((one, other) => compareEntries(one.fact.entry, other.fact.entry));
}

function letter(
  { id, fact, entry }: { id: string; fact: DeliveryFact; entry: LogEntry | null },
  subscriptions: ReadonlyMap<string, StoredSubscription>,
  directory: Directory,
): Letter {
  const event = eventOf(entry);
  if (event !== null) {
    const rendered = renderEvent(event, fact.roots, subscriptions, directory);
    return { id, fact, event: rendered, missing: null, waits: false };
  }
  const isUnreadable = entry?.kind === 'unreadable';
  const missing = isUnreadable
    ? `the event's entry in the log cannot be read: ${entry.reason}`
    : 'the event has left the log: its retention is over';
  return { id, fact, event, missing, waits: isUnreadable && isOfNewerVersion(entry) };
}
