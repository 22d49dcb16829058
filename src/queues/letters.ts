import type { RenderedEvent } from '../domain/event.ts';
import { renderEvent } from '../domain/render.ts';
import type { DeliveryFact, DeliveryStore } from '../store/deliveries.ts';
import { compareEntries } from '../store/entry-order.ts';
import type { EventLog } from '../store/event-log.ts';
import { eventOf, isOfNewerVersion } from '../store/log-entry.ts';
import type { Registry } from '../store/registry.ts';

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
type LetterParts = { deliveries: DeliveryStore; events: EventLog; registry: Registry };

/** Reads the deliveries of one message, in the order of the log; those that have ended are left out. */
export async function readLetters(
  receiver: string,
  ids: readonly string[],
  { deliveries, events, registry }: LetterParts,
): Promise<Letter[]> {
  const letters = await Promise.all(
    ids.map(async (id): Promise<Letter | null> => {
      const fact = await deliveries.fact(receiver, id);
      if (fact?.outcome !== 'pending') return null;
      const entry = await events.at(fact.entry);
      const event = eventOf(entry);
      if (event !== null) {
        const subscriptions = await registry.subscriptions(fact.roots);
        const rendered = renderEvent(event, fact.roots, subscriptions);
        return { id, fact, event: rendered, missing: null, waits: false };
      }
      const isUnreadable = entry?.kind === 'unreadable';
      const missing = isUnreadable
        ? `the event's entry in the log cannot be read: ${entry.reason}`
        : 'the event has left the log: its retention is over';
      return { id, fact, event, missing, waits: isUnreadable && isOfNewerVersion(entry) };
    }),
  );
  return letters
    .filter((letter) => letter !== null)
    .sort((one, other) => compareEntries(one.fact.entry, other.fact.entry));
}
