import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisClient } from '../store/commands.ts';
import type { EventLog } from '../store/event-log.ts';
import { compareEntries } from '../store/log-entry.ts';

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
