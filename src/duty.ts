import { withTimeout } from './with-timeout.ts';

/**
 * Work that repeats. `run` makes one round, and returns the wait until the next one, or nothing for `everyMs`. With 0 the
 * next round begins at once. The signal aborts when the duty is closed. `onError` is called after a failed round, except where
 * the duty is closed, and returns a wait likewise, which nothing that was requested during the round shortens.
 */
export type DutyRules = {
  /** Infinity: only on request. */
  everyMs: number;
  /** Counts `everyMs` from the begin of a round instead of from its end, for what would expire otherwise. */
  isSteady?: boolean;
  /** A wait of a second or more ends together with those of others, up to a second earlier. */
  isShared?: boolean;
  /** A longer round is no longer waited for: a command to a frozen node of a Redis Cluster may never end. */
  mostMs?: number;
  run: (signal: AbortSignal) => Promise<Wait>;
  onError: (error: unknown) => Wait;
};

// biome-ignore lint/suspicious/noConfusingVoidType: most rounds return nothing
type Wait = { waitMs: number } | void;

/**
 * The only way to repeat work in the background. One round at a time:
 *
 *   State    Entered when                                          Left when
 *   new      it is constructed                                     `start` ─► waiting, as short as requested
 *   waiting  started; a round ended, with the wait of that round   the wait is over ─► running; `soon` shortens the wait
 *   running  the wait is over                                      the round ended ─► waiting. After `soon` meanwhile the
 *                                                                  wait is as short as requested
 *   closed   `close`, in any state; a round under way ends first   never
 */
export class Duty {
  readonly #rules: DutyRules;
  readonly #closed = new AbortController();
  #isStarted = false;
  #endWait: () => void = () => undefined;
  #round: Promise<void> | null = null;
  /** End of the wait (own clock, ms); before the start and during a round, that which `soon` requested. */
  #dueMs = Number.POSITIVE_INFINITY;

  constructor(rules: DutyRules) {
    this.#rules = rules;
  }

  /** Waits for the first round, as short as `soon` requested before. */
  start(waitMs = this.#rules.everyMs): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#wait(Math.min(waitMs, this.#dueMs - performance.now()));
  }

  /** Makes the next round begin in `ms` at the latest. A round under way is followed by another one. */
  soon(ms = 0): void {
    const dueMs = performance.now() + ms;
    if (dueMs >= this.#dueMs) return;
    if (this.#isStarted && this.#round === null) this.#wait(ms);
    else this.#dueMs = dueMs;
  }

  /** True once it is started, until it is closed. */
  get isOn(): boolean {
    return this.#isStarted && !this.isClosed;
  }

  get isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** Ends it, and resolves when the round under way has ended. Repeated calls wait for the same round. */
  async close(): Promise<void> {
    this.#closed.abort();
    this.#endWait();
    await this.#round;
  }

  #wait(ms: number): void {
    this.#endWait();
    if (this.isClosed) return;
    const { isShared = false } = this.#rules;
    this.#dueMs = performance.now() + (isShared ? sharedWaitMs(ms) : ms);
    if (ms <= 0) this.#begin();
    else if (Number.isFinite(ms)) this.#endWait = this.#callIn(ms);
  }

  #callIn(ms: number): () => void {
    const begin = (): void => this.#begin();
    if (this.#rules.isShared === true) return callTogether(ms, begin);
    const timer = setTimeout(begin, ms);
    return () => clearTimeout(timer);
  }

  #begin(): void {
    this.#round = Promise.resolve()
      .then(() => this.#rounds())
      .then((waitMs) => {
        this.#round = null;
        // It may have been requested since the round ended.
        this.#wait(Math.min(waitMs, this.#dueMs - performance.now()));
      });
  }

  /** Makes rounds until one is to be waited for. A wait of 0 takes no timer. */
  async #rounds(): Promise<number> {
    for (;;) {
      if (this.isClosed) return 0;
      this.#dueMs = Number.POSITIVE_INFINITY;
      const waitMs = await this.#runOnce();
      if (waitMs > 0) return waitMs;
    }
  }

  /** Returns the wait until the next round. */
  async #runOnce(): Promise<number> {
    const { everyMs, isSteady = false, mostMs, run, onError } = this.#rules;
    const begunMs = performance.now();
    try {
      const round = run(this.#closed.signal);
      const wait = await (mostMs === undefined ? round : withTimeout(round, mostMs));
      const nowMs = performance.now();
      const waitMs = (wait?.waitMs ?? everyMs) - (isSteady ? nowMs - begunMs : 0);
      return Math.max(0, Math.min(waitMs, this.#dueMs - nowMs));
    } catch (error) {
      this.#dueMs = Number.POSITIVE_INFINITY;
      return (this.isClosed ? undefined : onError(error))?.waitMs ?? everyMs;
    }
  }
}

/** Waits of this length or more end at whole multiples of it, by the own clock. */
const GRID_MS = 1_000;

/** A timer may end a little too early. */
const EARLY_MS = 5;

type Group = { calls: Set<() => void>; timer: NodeJS.Timeout };

/** Waits by the number of the second at whose begin they end. */
const groups = new Map<number, Group>();

/** Returns the wait (ms) after which `callTogether` calls back: at most `ms`, and shorter by less than a second. */
export function sharedWaitMs(ms: number): number {
  const nowMs = performance.now();
  return ms < GRID_MS ? ms : secondAfter(nowMs, ms) * GRID_MS - nowMs;
}

function secondAfter(nowMs: number, ms: number): number {
  return Math.floor((nowMs + ms + EARLY_MS) / GRID_MS);
}

/**
 * Calls back after a wait. One of a second or more is up to a second shorter, and ends by one timer together with all others
 * that end in that second: to wake an idle process costs more than most of what it then does. Returns a function that ends it.
 */
function callTogether(ms: number, call: () => void): () => void {
  if (ms < GRID_MS) {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  }
  const nowMs = performance.now();
  const second = secondAfter(nowMs, ms);
  const group = groups.get(second) ?? begin(second, nowMs);
  group.calls.add(call);
  return () => {
    group.calls.delete(call);
    if (group.calls.size > 0) return;
    clearTimeout(group.timer);
    if (groups.get(second) === group) groups.delete(second);
  };
}

function begin(second: number, nowMs: number): Group {
  const calls = new Set<() => void>();
  const end = (): void => {
    groups.delete(second);
    for (const call of calls) call();
  };
  const group = { calls, timer: setTimeout(end, second * GRID_MS - nowMs) };
  groups.set(second, group);
  return group;
}

/** Calls back again and again, as `callTogether`. Returns a function that ends it. */
export function repeatTogether(everyMs: number, call: () => void): () => void {
  let end = (): void => undefined;
  const wait = (): void => {
    end = callTogether(everyMs, () => {
      wait();
      call();
    });
  };
  wait();
  return () => end();
}
