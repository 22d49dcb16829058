import { z } from 'zod';
import { parseClaimKey } from '../domain/subjects/subscription.ts';
import { eventOf } from '../store/log-entry.ts';
import type { Settled } from '../store/suspensions.ts';
import { type OperationContext, UnknownError } from './operation.ts';
import { isoTime, isoTimeOrNull } from './time.ts';

/** A subject that was removed from the config and may come back. */
export const SUSPENDED = z
  .object({
    subject: z.string().describe('What was named, such as `wallet:0x…`.'),
    subscription: z.string().describe('The subscription that named it.'),
    receivers: z
      .array(z.string())
      .nullable()
      .describe('For which of its receivers alone; null: for all of them.'),
    state: z
      .enum(['suspended', 'back'])
      .describe('`back`: it is in the config again, and its events are being delivered.'),
    since: z.iso.datetime(),
    until: z.iso
      .datetime()
      .nullable()
      .describe('When it is removed, by `removal.graceSpan` as it is now; null for what is back.'),
    events: z.int().describe('How many events wait for it.'),
  })
  .meta({ id: 'Suspended' });

export type Suspended = z.infer<typeof SUSPENDED>;

/** An event that waited for a suspended subject and was dropped. */
export const DROPPED = z
  .object({
    event: z.string().describe('The id of the event.'),
    type: z.string().nullable().describe('Null where the event has left the log.'),
    subject: z.string().nullable().describe('Likewise.'),
    subscription: z.string().describe('The subscription that led to it.'),
    named: z.string().describe('What that had named.'),
    at: z.iso.datetime().nullable().describe('When the event was made; null where it has left the log.'),
    droppedAt: z.iso.datetime(),
  })
  .meta({ id: 'DroppedEvent' });

export type Dropped = z.infer<typeof DROPPED>;

/** Places in the lists: the subscription key before the next suspensions, and the member before the next dropped events. */
export const SUSPENDED_PLACE = z.object({ after: z.string().max(500) });
export const DROPPED_PLACE = z.object({ before: z.string().max(600) });

/** Lists a page of suspensions, by name. */
export async function listSuspended(
  { from, limit }: { from: z.infer<typeof SUSPENDED_PLACE> | null; limit: number },
  { stores: { registry }, graceSpanMs }: OperationContext,
): Promise<{ suspended: Suspended[]; next: z.infer<typeof SUSPENDED_PLACE> | null }> {
  const { suspensions } = registry;
  const found = await suspensions.list({ after: from?.after ?? null, count: limit });
  const waiting = await suspensions.waiting.countOf(new Set(found.map(({ key }) => key)));
  const last = found.at(-1);
  return {
    suspended: found.map(({ key, state, sinceMs }) => {
      const { subject, subscription, receivers } = parseClaimKey(key);
      return {
        subject,
        subscription,
        receivers: receivers === null ? null : [...receivers],
        state: state === 'out' ? 'suspended' : 'back',
        since: isoTime(sinceMs),
        until: state === 'out' ? isoTime(sinceMs + graceSpanMs) : null,
        events: waiting.get(key) ?? 0,
      };
    }),
    next: found.length < limit || last === undefined ? null : { after: last.key },
  };
}

/** Lists a page of dropped events, the last dropped first. */
export async function listDropped(
  { from, limit }: { from: z.infer<typeof DROPPED_PLACE> | null; limit: number },
  { stores: { registry, events } }: OperationContext,
): Promise<{ dropped: Dropped[]; next: z.infer<typeof DROPPED_PLACE> | null }> {
  const found = await registry.suspensions.waiting.dropped({ before: from?.before ?? null, count: limit });
  const entries = await events.readAllAt(found.map(({ entry }) => entry));
  const last = found.at(-1);
  return {
    dropped: found.map(({ eventId, key, droppedMs }, index) => {
      const event = eventOf(entries[index] ?? null);
      const { subject, subscription } = parseClaimKey(key);
      return {
        event: eventId,
        type: event?.type ?? null,
        subject: event?.data.subject.id ?? null,
        subscription,
        named: subject,
        at: isoTimeOrNull(event === null ? null : Date.parse(event.timestamp)),
        droppedAt: isoTime(droppedMs),
      };
    }),
    next: found.length < limit || last === undefined ? null : { before: last.place },
  };
}

/** Result of a removal: subjects, each once per subscription, and the events that waited for them. */
export const REMOVED = z
  .object({
    subjects: z
      .int()
      .describe('How many subjects were removed, each once per subscription that had named it.'),
    events: z.int().describe('How many events waited for them and are dropped.'),
  })
  .meta({ id: 'Removed' });

/** Ends suspensions at once by an id, an address, or a subscription's name. Throws an UnknownError where none match. */
export async function removeSuspended(
  id: string,
  end: (isMeant: (key: string) => boolean) => Promise<Settled[]>,
): Promise<z.infer<typeof REMOVED>> {
  const folded = id.toLowerCase();
  const settled = await end((key) => {
    const { subject, subscription } = parseClaimKey(key);
    const own = subject.toLowerCase();
    return subscription === id || own === folded || own.slice(own.indexOf(':') + 1) === folded;
  });
  if (settled.length === 0) {
    throw new UnknownError(
      'found nothing suspended by that name, expected the id of a subject or the name of a subscription that has left the config: GET /suspended lists them',
    );
  }
  const ended = settled.filter((one) => one.move === 'ended');
  return {
    subjects: ended.reduce((sum, { claimKeys }) => sum + claimKeys, 0),
    events: ended.reduce((sum, { events }) => sum + events, 0),
  };
}
