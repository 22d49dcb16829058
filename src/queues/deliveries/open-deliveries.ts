import { deliveryId } from '../../domain/events/delivery-id.ts';
import type { StoredReceiver } from '../../store/definitions.ts';
import type { Match } from './matches.ts';
import type { RelayParts } from './relay-parts.ts';

/**
 * Whose deliveries are opened, under which fencing token, for which replay if it is one, and where the receiver's cursor
 * is then (null: where it was).
 */
export type OpeningOrder = {
  token: string;
  receiver: StoredReceiver;
  matched: readonly Match[];
  replay: string | null;
  cursor: string | null;
};

/**
 * Opens deliveries of a receiver in the order of the log, and moves its cursor, in one step. What stands is absorbed: it
 * can be done again. False when another process relays now.
 */
export async function openDeliveries(
  { token, receiver, matched, replay, cursor }: OpeningOrder,
  { stores: { deliveries }, sender, signals }: RelayParts,
): Promise<boolean> {
  const { name, ordering } = receiver;
  const results = await deliveries.open(token, {
    receiver: name,
    deliveries: matched.map(({ event, entry, roots, isSuspended }) => ({
      id: deliveryId(event.id, replay),
      entry,
      roots,
      isSuspended,
      subject: ordering === 'subject' ? event.data.subject.id : null,
    })),
    replay,
    cursor,
    process: sender.id,
  });
  if (results === null) return false;
  for (const [index, { event }] of matched.entries()) {
    if (results[index]?.startsWith('opened') !== true) continue;
    signals.emit('delivery.opened', { receiver: name, eventId: event.id, eventType: event.type });
  }
  if (results.some((result) => result === 'opened' || result === 'open')) sender.wake(name);
  return true;
}
