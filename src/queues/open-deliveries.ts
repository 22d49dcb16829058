import { deliveryId } from '../domain/delivery-id.ts';
import type { Signals } from '../signals.ts';
import type { DeliveryStore } from '../store/deliveries.ts';
import type { StoredReceiver } from '../store/registry.ts';
import type { DeliveryQueues } from './delivery-queues.ts';
import type { Entitlement } from './openings.ts';

/** What opening works with. */
export type OpeningParts = { deliveries: DeliveryStore; queues: DeliveryQueues; signals: Signals };

/** Whose deliveries are opened, under which fencing token, and for which replay if it is one. */
export type OpeningOrder = {
  token: string;
  receiver: StoredReceiver;
  entitled: readonly Entitlement[];
  replay: string | null;
};

/**
 * Opens deliveries and queues those that wait for no other, in the order of the log. Facts come first, and both are
 * absorbed when they stand: it can be done again after a crash. False when another process relays now.
 */
export async function openDeliveries(
  { token, receiver, entitled, replay }: OpeningOrder,
  { deliveries, queues, signals }: OpeningParts,
): Promise<boolean> {
  const openings = entitled.map(({ event, entry, roots }) => ({
    id: deliveryId(event.id, replay),
    eventId: event.id,
    eventType: event.type,
    entry,
    roots,
    subject: receiver.ordering === 'subject' ? event.data.subject.id : null,
    replay,
  }));
  const results = await deliveries.open(token, receiver.name, openings);
  if (results.includes('fenced')) return false;
  const ready = openings.filter((_, index) => results[index] === 'opened' || results[index] === 'open');
  await queues.add(
    receiver.name,
    ready.map(({ id }) => ({ id, afterMs: 0 })),
  );
  const fresh = openings.filter((_, index) => results[index]?.startsWith('opened'));
  for (const { eventId, eventType } of fresh) {
    signals.emit('delivery.opened', { receiver: receiver.name, eventId, eventType });
  }
  return true;
}
