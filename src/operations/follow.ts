import {
  behindTrimmed,
  type EventFilter,
  type EventPage,
  entryBefore,
  entryOf,
  eventsAfter,
  type LogPlace,
} from './events.ts';
import type { LogTail } from './log-tail.ts';
import type { OperationParts } from './parts.ts';

/** How much is read for a stream at once, and how often one that is idle says that it is there. */
const STREAM_PAGE = 100;
const BEAT_MS = 15_000;

/** The place where following begins: at a place, or at the first entry from a moment on (null: all that are stored). */
export type FollowStart = { place: LogPlace } | { sinceMs: number | null };

/** The entry after which following begins. Throws a LostPlaceError where some would be missing. */
export async function startOf(start: FollowStart, parts: OperationParts): Promise<string> {
  if ('place' in start) return entryOf(start.place, parts);
  return behindTrimmed(entryBefore(start.sinceMs), parts);
}

/** What following works with; `signal` ends it. */
export type FollowParts = { parts: OperationParts; tail: LogTail; signal: AbortSignal };

/** The events after a place; where there are none, those that come within a time. The place is held against the log again at the end. */
export async function pullEvents(
  {
    start,
    filter,
    limit,
    waitMs,
  }: { start: FollowStart; filter: EventFilter; limit: number; waitMs: number },
  { parts, tail, signal }: FollowParts,
): Promise<{ page: EventPage; next: LogPlace }> {
  const endMs = performance.now() + waitMs;
  const log = await parts.stores.events.name();
  const from = await startOf(start, parts);
  let after = from;
  for (;;) {
    const page = await eventsAfter({ after, untilMs: null, filter, limit }, parts);
    // What was trimmed while it was read would be missing.
    if ('place' in start || after !== from) await entryOf({ log, after }, parts);
    const next = { log, after: page.reached };
    const leftMs = endMs - performance.now();
    if (page.events.length > 0 || leftMs <= 0 || signal.aborted) return { page, next };
    after = page.reached;
    if (!page.more) await tail.wait(after, { ms: leftMs, signal });
  }
}

/**
 * The events after an entry as they come, each with its place. Without an event it is a sign of life, the first at once: who
 * is cut off goes on from its place. Ends with the signal.
 */
export async function* followEvents(
  { after: from, filter }: { after: string; filter: EventFilter },
  { parts, tail, signal }: FollowParts,
): AsyncGenerator<{ place: LogPlace; event: EventPage['events'][number]['event'] | null }> {
  const log = await parts.stores.events.name();
  let after = from;
  yield { place: { log, after }, event: null };
  while (!signal.aborted) {
    const page = await eventsAfter({ after, untilMs: null, filter, limit: STREAM_PAGE }, parts);
    if (after !== from) await entryOf({ log, after }, parts);
    for (const { entry, event } of page.events) yield { place: { log, after: entry }, event };
    after = page.reached;
    if (page.more) continue;
    const waitedFrom = performance.now();
    await tail.wait(after, { ms: BEAT_MS, signal });
    if (performance.now() - waitedFrom >= BEAT_MS) yield { place: { log, after }, event: null };
  }
}
