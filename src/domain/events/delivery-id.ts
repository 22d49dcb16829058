/** Between the event and the replay of a delivery's id: neither of them, nor a queue, has a meaning for it. */
const SEPARATOR = '~';

/** The id of a delivery to a receiver: the event's, and for a replay the replay's behind it. */
export function deliveryId(eventId: string, replay: string | null): string {
  return replay === null ? eventId : `${eventId}${SEPARATOR}${replay}`;
}

/** The event and the replay that a delivery's id names. */
export function parseDeliveryId(id: string): { eventId: string; replay: string | null } {
  const [eventId = '', replay = null] = id.split(SEPARATOR);
  return { eventId, replay };
}
