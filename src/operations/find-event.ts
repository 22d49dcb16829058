import type { RenderedEvent } from '../domain/events/event.ts';
import { renderEvent, withSuspended } from '../domain/events/render.ts';
import { eventOf } from '../store/log-entry.ts';
import type { OperationParts } from './parts.ts';

/** An event as one receiver gets it, whole; null when that receiver has no delivery of it, or no longer. Rejects when nobody can tell. */
export type FindEvent = (wanted: { id: string; receiver: string }) => Promise<RenderedEvent | null>;

/** Finds events as receivers get them. */
export async function findEvent(
  { id, receiver }: { id: string; receiver: string },
  { stores: { deliveries, events, registry }, directory }: OperationParts,
): Promise<RenderedEvent | null> {
  const fact = await deliveries.fact(receiver, id);
  const event = fact === null ? null : eventOf(await events.at(fact.entry));
  if (fact === null || event === null) return null;
  const rendered = renderEvent(event, fact.roots, await registry.subscriptions(fact.roots), directory);
  return fact.suspended === '' ? rendered : withSuspended(rendered);
}
