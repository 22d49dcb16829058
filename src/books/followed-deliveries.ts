import type { DeliveryFact, DeliveryStore } from '../store/deliveries.ts';
import type { BookStore, FollowedDelivery, Place } from './book-store.ts';

/** The number of deliveries that are looked at together, and how often one round does that: others are served meanwhile. */
const LOOKED_AT_TOGETHER = 200;
const MOST_LOOKS = 10;

/** The waits between two looks at a delivery that is not done. */
const LEAST_MS = 1_000;
const MOST_MS = 3_600_000;

/** A delivery whose event is older, and of which nothing is known any more, is looked at no longer. */
const GONE_AFTER_MS = 86_400_000;

/**
 * Looks at deliveries whose turn it is, and notes when they were done. One that stays undone is looked at ever more seldom, but
 * again when the day is closed (`closesMs`): the report of that moment names what is undone. Returns whether all that was due
 * has been looked at.
 */
export async function lookAtDeliveries(
  books: BookStore,
  parts: { place: Place; deliveries: DeliveryStore; nowMs: number; closesMs: number },
): Promise<boolean> {
  for (let look = 0; look < MOST_LOOKS; look += 1) {
    const due = await books.dueDeliveries(parts.nowMs, LOOKED_AT_TOGETHER);
    if (due.length > 0) await lookAt(books, due, parts);
    if (due.length < LOOKED_AT_TOGETHER) return true;
  }
  return false;
}

async function lookAt(
  books: BookStore,
  due: readonly FollowedDelivery[],
  {
    place,
    deliveries,
    nowMs,
    closesMs,
  }: { place: Place; deliveries: DeliveryStore; nowMs: number; closesMs: number },
): Promise<void> {
  const facts = await Promise.all(due.map(({ receiver, eventId }) => deliveries.fact(receiver, eventId)));
  const noted = due.map((one, index) => {
    const fact = facts[index] ?? null;
    const ageMs = Math.max(0, nowMs - one.eventMs);
    if (fact?.outcome === 'delivered') {
      const deliveredMs = fact.deliveredAt ?? fact.attempts.at(-1)?.atMs ?? nowMs;
      return { ...one, state: 'delivered', deliveredMs, checkMs: null };
    }
    const isGone = fact === null && ageMs > GONE_AFTER_MS;
    const waitMs = Math.min(MOST_MS, Math.max(LEAST_MS, ageMs / 4));
    const nextMs = Math.round(nowMs + waitMs);
    const checkMs = isGone ? null : nowMs < closesMs ? Math.min(nextMs, closesMs) : nextMs;
    return { ...one, state: isGone ? 'gone' : stateOf(fact), deliveredMs: null, checkMs };
  });
  await books.move({ from: place, to: place }, (writer) => writer.noteDeliveries(noted));
}

function stateOf(fact: DeliveryFact | null): string {
  if (fact === null || (fact.outcome === 'pending' && fact.tries === 0)) return 'waiting';
  return fact.outcome === 'dead' ? 'dead' : 'retrying';
}
