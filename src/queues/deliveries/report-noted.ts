import type { Logger } from 'pino';
import { parseDeliveryId } from '../../domain/events/delivery-id.ts';
import { loggedType } from '../../log.ts';
import type { Signals } from '../../signals.ts';
import type { Noted, Noting } from '../../store/deliveries.ts';
import type { PendingDelivery } from './pending-delivery.ts';

/** An attempt that was noted, with the deliveries that it was about, the one that leads among them. */
type Attempted = {
  receiver: string;
  deliveries: readonly PendingDelivery[];
  lead: PendingDelivery;
  attempt: Noting['attempt'];
  /** Redis time. */
  nowMs: number;
};

/** Says how an attempt went, what became of its deliveries, and of their receiver. */
export function reportNoted(
  { receiver, deliveries, lead, attempt, nowMs }: Attempted,
  { outcome, moved }: Noted,
  { signals, log }: { signals: Signals; log: Logger },
): void {
  const { outcome: result, durationMs, httpStatus, smtpCode, reason } = attempt;
  const number = lead.fact.tries + 1;
  const about = aboutOf(receiver, lead);
  const durationSeconds = durationMs / 1_000;
  signals.emit('delivery.attempted', {
    ...about,
    attempt: number,
    outcome: result,
    durationSeconds,
    reason,
  });
  const level = outcome === 'dead' ? 'error' : result === 'delivered' ? 'info' : 'warn';
  const line = {
    ...about,
    eventType: loggedType(about.eventType, lead.event?.data.status ?? null),
    attempt: number,
    result,
    httpStatus,
    smtpCode,
    durationMs,
    reason,
  };
  const { replay, turn } = lead.fact;
  const more = {
    ...(turn === null ? {} : { openedAt: new Date(Math.floor(turn / 1_000)).toISOString() }),
    ...(replay === null ? {} : { replay }),
    ...(deliveries.length === 1 ? {} : { events: deliveries.length }),
  };
  log[level]({ ...line, ...more, outcome }, 'delivery.attempted');
  if (moved !== null) {
    signals.emit('receiver.moved', { receiver, move: moved, reason });
    const how = moved === 'recovered' ? 'info' : 'error';
    log[how]({ receiver, move: moved, reason }, 'receiver.moved');
  }
  if (outcome === 'pending') return;
  for (const delivery of deliveries) {
    const delaySeconds = outcome === 'delivered' ? delayOf(delivery, nowMs) : null;
    signals.emit('delivery.ended', { ...aboutOf(receiver, delivery), outcome, delaySeconds });
  }
}

/** From an event to its acceptance. A replay sends what was accepted before, or was missed. */
function delayOf({ event, fact }: PendingDelivery, nowMs: number): number | null {
  if (event === null || fact.replay !== null) return null;
  return Math.max(0, nowMs - Date.parse(event.timestamp)) / 1_000;
}

function aboutOf(
  receiver: string,
  { id, event }: PendingDelivery,
): { receiver: string; subject: string | null; eventId: string; eventType: string } {
  const subject = event?.data.subject.id ?? null;
  return { receiver, subject, eventId: parseDeliveryId(id).eventId, eventType: event?.type ?? 'unknown' };
}
