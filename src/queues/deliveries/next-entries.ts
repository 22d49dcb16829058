import type { RedisClient } from '../../store/commands.ts';
import type { DeliveryStore } from '../../store/deliveries.ts';
import type { EventLog, LogPiece } from '../../store/event-log.ts';
import { compareEntries } from '../../store/log-entry.ts';
import type { OwnEntries } from '../../store/own-entries.ts';

/**
 * `blocking` is a connection of its own; `own` has the entries that this process writes, and `opening` opens them on the
 * connection on which it does.
 */
export type LogSources = { blocking: RedisClient; own: OwnEntries; opening: DeliveryStore };

/** Entries behind a place, in order. Own ones may have others of the log before them. */
type NextPiece = LogPiece & { isOwn: boolean };

/**
 * The next entries for the relay: those that this process has just written, and those that come in the log.
 *
 *   State    Entered when                                     Left when
 *   idle     the start; a read of the log has ended           the relay waits for entries behind a place ─► waiting
 *   waiting  a read of the log begins, behind that place      it ends, with entries or without ─► idle
 *
 * While it waits, own entries are returned, and the read goes on: they are in the log, so it ends soon. What it returns then
 * was returned before, as far as it is not behind the place that the relay has reached since.
 */
export class NextEntries {
  readonly #events: EventLog;
  readonly #sources: LogSources;
  #waiting: { after: string; piece: Promise<LogPiece> } | null = null;

  constructor(events: EventLog, sources: LogSources) {
    this.#events = events;
    this.#sources = sources;
  }

  /** Waits for entries behind a place; none where none came until `endMs` (own clock). */
  async behind(after: string, { endMs, mayBeOwn }: { endMs: number; mayBeOwn: boolean }): Promise<NextPiece> {
    const { own } = this.#sources;
    for (;;) {
      const waiting = this.#read(after, endMs);
      const read = await (mayBeOwn ? Promise.race([waiting, own.came()]) : waiting);
      if (read === undefined) {
        const entries = own.take(after).map((stored) => this.#events.readOwn(stored));
        if (entries.length > 0) return { entries, more: false, isOwn: true };
        continue;
      }
      const entries = read.entries.filter(({ id }) => compareEntries(id, after) > 0);
      const isOver = read.entries.length === 0 || performance.now() >= endMs;
      if (entries.length > 0 || isOver)
        return { entries, more: read.more && entries.length > 0, isOwn: false };
    }
  }

  async #read(after: string, endMs: number): Promise<LogPiece> {
    const { blocking } = this.#sources;
    if (this.#waiting === null || compareEntries(this.#waiting.after, after) > 0) {
      const waitMs = Math.max(1, Math.ceil(endMs - performance.now()));
      this.#waiting = { after, piece: this.#events.awaitAfter(after, { blocking, waitMs }) };
    }
    const { piece } = this.#waiting;
    const ended = (): void => {
      if (this.#waiting?.piece === piece) this.#waiting = null;
    };
    piece.then(ended, ended);
    return piece;
  }
}
