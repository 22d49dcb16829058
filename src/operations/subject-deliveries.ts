import { z } from 'zod';
import { deliveryId } from '../domain/events/event.ts';
import { compareEntries, eventOf, placeAfter } from '../store/log-entry.ts';
import { DELIVERY, deliveryOf } from './deliveries.ts';
import { ENTRY } from './events.ts';
import { type OperationContext, relatedTo, watchedSubject } from './operation.ts';
import { TIMELINE_PLACE, type TimelinePlace } from './timeline.ts';

/** A delivery of an event of a subject. */
export const SUBJECT_DELIVERY = DELIVERY.omit({})
  .extend({ event: z.string().describe('The id of the event.') })
  .meta({ id: 'SubjectDelivery' });

export type SubjectDelivery = z.infer<typeof SUBJECT_DELIVERY>;

/** The deliveries of one event to one receiver, replays included; with `replay` only those of the replays after it. */
const SLOT_PLACE = z.strictObject({
  entry: ENTRY,
  receiver: z.string().max(63),
  replay: z.string().max(40).nullable(),
});

/** Progress of a list of deliveries: at a place of the timeline, or at one event and receiver. */
export const DELIVERIES_PLACE = z.union([TIMELINE_PLACE, SLOT_PLACE]);

export type DeliveriesPlace = z.infer<typeof DELIVERIES_PLACE>;

type Slot = z.infer<typeof SLOT_PLACE> & { event: string };

/**
 * Lists deliveries of a subject's events in the order of its timeline, those of one event by receiver; `until` is the place in
 * the timeline at which the list ends. One request reads `limit` pairs of event and receiver: a page may be short, or empty, and
 * there are still more. It makes at most four reads per pair, and a fixed number beside them.
 */
export async function listSubjectDeliveries(
  {
    id,
    after,
    until,
    limit,
  }: { id: string; after: DeliveriesPlace | null; until: TimelinePlace | null; limit: number },
  deps: OperationContext,
): Promise<{ deliveries: SubjectDelivery[]; next: DeliveriesPlace | null }> {
  const { subject, entry } = await watchedSubject(id, deps);
  const { registry, subjects, events } = deps.stores;
  const receivers = (await registry.receivers()).map(({ name }) => name).sort();
  if (receivers.length === 0) return { deliveries: [], next: null };
  // The first event may be begun already, and one more shows the start of the next page.
  const count = Math.ceil(limit / receivers.length) + 2;
  const places = await subjects.entries.list([subject, ...relatedTo(subject, entry)], {
    before: after === null ? null : 'before' in after ? after.before : placeAfter(after.entry),
    from: until?.before ?? null,
    count,
  });
  const stored = await events.readSomeAt(places);
  const entries = places.slice(0, stored.length);
  const begun = after !== null && 'entry' in after ? after : null;
  const slots = stored.flatMap((entry, index) => {
    const event = eventOf(entry);
    const place = entries[index];
    return event === null || place === undefined
      ? []
      : slotsOf({ entry: place, event: event.id, receivers, begun });
  });
  const { deliveries, rest } = await deliveriesOf(slots.slice(0, limit), limit, deps);
  const last = entries.at(-1);
  const isLast = places.length < count && entries.length === places.length;
  const behind = isLast || last === undefined ? null : { before: last };
  const following = rest ?? slots[limit];
  return { deliveries, next: following === undefined ? behind : placeOf(following) };
}

function placeOf({ entry, receiver, replay }: Slot): DeliveriesPlace {
  return { entry, receiver, replay };
}

function slotsOf({
  entry,
  event,
  receivers,
  begun,
}: {
  entry: string;
  event: string;
  receivers: readonly string[];
  begun: z.infer<typeof SLOT_PLACE> | null;
}): Slot[] {
  const from = begun !== null && compareEntries(begun.entry, entry) === 0 ? begun : null;
  return receivers.flatMap((receiver) => {
    if (from !== null && receiver < from.receiver) return [];
    return [{ entry, event, receiver, replay: receiver === from?.receiver ? from.replay : null }];
  });
}

/** Reads at most `limit` deliveries of some slots, in their order. `rest` is the slot of the first omitted one. */
async function deliveriesOf(
  slots: readonly Slot[],
  limit: number,
  { stores }: OperationContext,
): Promise<{ deliveries: SubjectDelivery[]; rest: Slot | undefined }> {
  const found = await Promise.all(
    slots.map(async (slot) => {
      const { event, receiver, replay } = slot;
      const [own, replays] = await Promise.all([
        replay === null ? stores.deliveries.fact(receiver, event) : null,
        stores.replays.of(event, { receiver, after: replay ?? '', count: limit + 1 }),
      ]);
      return { slot, own, replays };
    }),
  );
  const wanted = found.flatMap(({ slot, own, replays }) => [
    ...(own === null ? [] : [{ slot, replay: null, own }]),
    ...replays.map((replay) => ({ slot, replay, own: null })),
  ]);
  const shown = wanted.slice(0, limit);
  const read = await Promise.all(
    shown.map(async ({ slot: { event, receiver }, replay, own }): Promise<SubjectDelivery[]> => {
      const id = deliveryId(event, replay);
      const fact = own ?? (await stores.deliveries.fact(receiver, id));
      return fact === null ? [] : [{ ...deliveryOf(receiver, id, fact), event }];
    }),
  );
  return { deliveries: read.flat(), rest: restOf(shown.at(-1), wanted[limit]) };
}

type SlotReplay = { slot: Slot; replay: string | null };

function restOf(last: SlotReplay | undefined, leftOut: SlotReplay | undefined): Slot | undefined {
  if (leftOut === undefined) return undefined;
  if (leftOut.slot !== last?.slot) return leftOut.slot;
  return { ...leftOut.slot, replay: last.replay ?? '' };
}
