import type { Logger } from 'pino';
import type { Signals } from '../../signals.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Settled, Suspensions } from '../../store/suspensions.ts';
import type { UnmatchedStore } from '../../store/unmatched.ts';

/** What the moves of suspensions are reported with. */
export type SettleParts = {
  stores: { events: EventLog; unmatched: UnmatchedStore };
  signals: Signals;
  log: Logger;
};

/** Makes the moves of suspensions that are due (see store/suspensions.ts), and tells of them. */
export async function settleSuspensions(
  suspensions: Suspensions,
  due: { spanMs: number | null; confirmedMs: number; trimMs: number },
  parts: SettleParts,
): Promise<void> {
  for (const settled of await suspensions.settle(due)) await tellSettled(settled, parts);
}

/** Tells of a move of suspensions. Events that reach nobody for it are counted and listed as such. */
export async function tellSettled(settled: Settled, parts: SettleParts): Promise<void> {
  const { signals, log, stores } = parts;
  if (settled.move === 'released') {
    log.info({ events: settled.events }, 'suspension.released');
    return;
  }
  const { reason, roots, events, dropped } = settled;
  signals.emit('suspension.ended', { reason, events });
  log.warn({ reason, roots, events }, 'suspension.ended');
  const gone = new Map<string, Set<string>>();
  for (const { entry, root } of dropped) gone.set(entry, (gone.get(entry) ?? new Set()).add(root));
  const places = [...gone.keys()];
  const entries = await stores.events.atAll(places);
  const unmatched = places.filter((place, index) => {
    const stored = entries[index] ?? null;
    if (stored?.kind !== 'event' || stored.roots.length > 0) return false;
    return stored.withheld.every((root) => gone.get(place)?.has(root) === true);
  });
  await stores.unmatched.add(unmatched.map((entry) => ({ entry, reason: 'not-in-config' })));
  for (const _ of unmatched) signals.emit('event.unmatched', { reason: 'not-in-config' });
}
