import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisClient } from '../store/commands.ts';
import type { EventLog } from '../store/event-log.ts';
import { compareEntries } from '../store/log-entry.ts';
import {
  behindTrimmed,
  type EventFilter,
  type EventPage,
  entryBefore,
  entryOf,
  eventsAfter,
  type LogPlace,
} from './events.ts';
import type { OperationContext } from './operation.ts';

/** The time that one read waits for the next entry. */
const READ_MS = 1_000;
const ERROR_RETRY_MS = 1_000;

/** One who waits for an entry behind a place. */
type Waiter = { after: string; wake: () => void };

/** Tells those who follow the event log when there is more: one blocked read for all of them, and none while nobody waits. */
export class LogTail {
  readonly #events: EventLog;
  readonly #blocking: RedisClient;
  readonly #waiters = new Set<Waiter>();
  #newest: string | null = null;
  #reading = false;
  #closed = false;

  /** `blocking` is a connection of its own. */
  constructor(events: EventLog, blocking: RedisClient) {
    this.#events = events;
    this.#blocking = blocking;
  }

  /** Resolves when the log goes on behind an entry, when the time is over, or when who waits is gone. */
  async wait(after: string, { ms, signal }: { ms: number; signal: AbortSignal }): Promise<void> {
    if (ms <= 0 || signal.aborted || this.#closed) return;
    if (this.#newest !== null && compareEntries(this.#newest, after) > 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    const waiter = { after, wake };
    this.#waiters.add(waiter);
    const timer = setTimeout(wake, ms);
    signal.addEventListener('abort', wake, { once: true });
    void this.#read();
    await promise;
    clearTimeout(timer);
    signal.removeEventListener('abort', wake);
    this.#waiters.delete(waiter);
  }

  async #read(): Promise<void> {
    if (this.#reading) return;
    this.#reading = true;
    while (this.#waiters.size > 0 && !this.#closed) await this.#readOnce();
    this.#reading = false;
    // What came while nobody waited is not known: the next one to wait finds out.
    this.#newest = null;
  }

  async #readOnce(): Promise<void> {
    try {
      const last = this.#newest ?? (await this.#events.newest());
      this.#newest = last;
      this.#wake(last);
      const isMore = await this.#events.awaitAfter(last, { blocking: this.#blocking, waitMs: READ_MS });
      this.#newest = isMore ? await this.#events.newest() : last;
      this.#wake(this.#newest);
    } catch {
      // Redis is away, which its monitor tells; whoever waits is reported when its time is over.
      this.#newest = null;
      await sleep(ERROR_RETRY_MS);
    }
  }

  #wake(newest: string): void {
    for (const { after, wake } of this.#waiters) if (compareEntries(newest, after) > 0) wake();
  }

  /** Lets go of all who wait. The connection is closed by its owner. */
  close(): void {
    this.#closed = true;
    for (const { wake } of this.#waiters) wake();
  }
}

/** How much is read for a stream at once, and how often one that is idle says that it is there. */
const STREAM_PAGE = 100;
const BEAT_MS = 15_000;

/** The place where following begins: at a place, or at the first entry from a moment on (null: all that are stored). */
type FollowStart = { place: LogPlace } | { sinceMs: number | null };

/** The entry after which following begins. Throws a LostPlaceError where some would be missing. */
export async function startOf(start: FollowStart, parts: OperationContext): Promise<string> {
  if ('place' in start) return entryOf(start.place, parts);
  return behindTrimmed(entryBefore(start.sinceMs), parts);
}

/** What following works with; `signal` ends it. */
type FollowDeps = { parts: OperationContext; tail: LogTail; signal: AbortSignal };

/** The events after a place; where there are none, those that come within a time. The place is held against the log again at the end. */
export async function pullEvents(
  {
    start,
    filter,
    limit,
    waitMs,
  }: { start: FollowStart; filter: EventFilter; limit: number; waitMs: number },
  { parts, tail, signal }: FollowDeps,
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
  { parts, tail, signal }: FollowDeps,
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
