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

const READ_MS = 1_000;
const ERROR_RETRY_MS = 1_000;

type Waiter = { after: string; wake: () => void };

/** Notifies followers of the event log of new entries: one blocked read for all of them, and none while none waits. */
export class LogTail {
  readonly #events: EventLog;
  readonly #blocking: RedisClient;
  readonly #waiters = new Set<Waiter>();
  #newest: string | null = null;
  #readPage = false;
  #closed = false;

  /** `blocking` is a connection of its own. */
  constructor(events: EventLog, blocking: RedisClient) {
    this.#events = events;
    this.#blocking = blocking;
  }

  /** Resolves when the log goes on behind an entry, when the time is over, or when the signal aborts. */
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
    if (this.#readPage) return;
    this.#readPage = true;
    while (this.#waiters.size > 0 && !this.#closed) await this.#readOnce();
    this.#readPage = false;
    // Entries that came while no follower waited are unknown: the next wait finds them.
    this.#newest = null;
  }

  async #readOnce(): Promise<void> {
    try {
      const last = this.#newest ?? (await this.#events.newest());
      this.#newest = last;
      this.#wake(last);
      const { entries } = await this.#events.awaitAfter(last, { blocking: this.#blocking, waitMs: READ_MS });
      this.#newest = entries.length > 0 ? await this.#events.newest() : last;
      this.#wake(this.#newest);
    } catch {
      // Redis is away, which its monitor reports; a follower resolves when its time is over.
      this.#newest = null;
      await sleep(ERROR_RETRY_MS);
    }
  }

  #wake(newest: string): void {
    for (const { after, wake } of this.#waiters) if (compareEntries(newest, after) > 0) wake();
  }

  /** Wakes all followers. The owner closes the connection. */
  close(): void {
    this.#closed = true;
    for (const { wake } of this.#waiters) wake();
  }
}

/** Events that a stream reads at once, and interval of its heartbeat while idle. */
const STREAM_PAGE = 100;
const BEAT_MS = 5_000;

/** Start of following: at a place, or at the first entry from a time on (null: all that are stored). */
type FollowStart = { place: LogPlace } | { sinceMs: number | null };

/** The entry after which following begins. Throws a LostPlaceError where some would be missing. */
export async function startOf(start: FollowStart, deps: OperationContext): Promise<string> {
  if ('place' in start) return entryOf(start.place, deps);
  return behindTrimmed(entryBefore(start.sinceMs), deps);
}

type FollowDeps = { deps: OperationContext; tail: LogTail; signal: AbortSignal };

/** Reads the events after a place; if there are none, waits for some. The place is checked against the log again at the end. */
export async function pullEvents(
  {
    start,
    filter,
    limit,
    waitMs,
  }: { start: FollowStart; filter: EventFilter; limit: number; waitMs: number },
  { deps, tail, signal }: FollowDeps,
): Promise<{ page: EventPage; next: LogPlace }> {
  const endMs = performance.now() + waitMs;
  const log = await deps.stores.events.name();
  const from = await startOf(start, deps);
  let after = from;
  for (;;) {
    const page = await eventsAfter({ after, untilMs: null, filter, limit }, deps);
    // Entries that were trimmed during the read would be missing.
    if ('place' in start || after !== from) await entryOf({ log, after }, deps);
    const next = { log, after: page.reached };
    const leftMs = endMs - performance.now();
    if (page.events.length > 0 || leftMs <= 0 || signal.aborted) return { page, next };
    after = page.reached;
    if (!page.more) await tail.wait(after, { ms: leftMs, signal });
  }
}

/**
 * Yields the events after an entry as they come, each with its place. Without an event it is a heartbeat, the first at once: a
 * client that is cut off goes on from its place. Each heartbeat follows a read: while Redis is silent, so is the stream. Ends
 * with the signal.
 */
export async function* followEvents(
  { after: from, filter }: { after: string; filter: EventFilter },
  { deps, tail, signal }: FollowDeps,
): AsyncGenerator<{ place: LogPlace; event: EventPage['events'][number]['event'] | null }> {
  const log = await deps.stores.events.name();
  let after = from;
  yield { place: { log, after }, event: null };
  let sentAtMs = performance.now();
  while (!signal.aborted) {
    const page = await eventsAfter({ after, untilMs: null, filter, limit: STREAM_PAGE }, deps);
    if (after !== from) await entryOf({ log, after }, deps);
    for (const { entry, event } of page.events) yield { place: { log, after: entry }, event };
    after = page.reached;
    const [isIdle, isDue] = [page.events.length === 0, performance.now() - sentAtMs >= BEAT_MS];
    if (isIdle && isDue) yield { place: { log, after }, event: null };
    if (!isIdle || isDue) sentAtMs = performance.now();
    if (!page.more) await tail.wait(after, { ms: sentAtMs + BEAT_MS - performance.now(), signal });
  }
}
