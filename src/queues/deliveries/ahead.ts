import type { PendingDelivery } from './pending-delivery.ts';

/** When something was claimed: Redis time, and our own clock at that time. */
export type Clock = { redisMs: number; ownMs: number };

/** Deliveries that are sent at once, the one that leads first: mostly it is the only one. */
export type Deliveries = readonly [PendingDelivery, ...PendingDelivery[]];

/** Deliveries that were claimed, and when. */
type Claimed = { deliveries: Deliveries; clock: Clock };

/** An attempt that takes no longer than this is quick. */
const QUICK_MS = 200;

/** What was claimed ahead is begun within this, or not by us. */
const FRESH_MS = 500;

/**
 * Deliveries that a process claimed before it has a place for them, so that the next attempt begins in the very turn in
 * which one has ended. Only while the receiver takes what it gets, and quickly: what waits here waits for nobody else.
 */
export class Ahead {
  readonly #most: number;
  #waiting: Claimed[] = [];
  #isQuick = false;

  /** `most`: how many may wait here; 0 for a receiver to which nothing may be sent before its turn is requested. */
  constructor(most: number) {
    this.#most = most;
  }

  /** The number of more that are worth requesting. While few are missing, none: many at once cost little more than one. */
  get room(): number {
    if (!this.isOpen || this.#waiting.length * 2 > this.#most) return 0;
    return this.#most - this.#waiting.length;
  }

  /** True when what has no place may wait here. */
  get isOpen(): boolean {
    return this.#isQuick && this.#most > 0;
  }

  get ids(): string[] {
    return this.#waiting.flatMap(({ deliveries }) => deliveries.map(({ id }) => id));
  }

  has(id: string): boolean {
    return this.ids.includes(id);
  }

  add(claimed: Claimed): void {
    this.#waiting.push(claimed);
  }

  /** The first one that waits, if it is fresh. */
  next(): Claimed | null {
    const [first] = this.#waiting;
    if (first === undefined || performance.now() - first.clock.ownMs > FRESH_MS) return null;
    return this.#waiting.shift() ?? null;
  }

  /** Takes in how an attempt went. Returns the ids of those that are not to be sent now, and have to be released. */
  saw(attempt: { isDelivered: boolean; durationMs: number }): string[] {
    this.#isQuick = attempt.isDelivered && attempt.durationMs <= QUICK_MS;
    return attempt.isDelivered ? this.stale() : this.clear();
  }

  /** Takes out those that have waited for too long. Returns their ids. */
  stale(): string[] {
    const [first] = this.#waiting;
    if (first === undefined || performance.now() - first.clock.ownMs <= FRESH_MS) return [];
    // Whoever keeps them waiting is not as quick as it was.
    this.#isQuick = false;
    return this.clear();
  }

  /** Takes all out. Returns their ids. */
  clear(): string[] {
    const { ids } = this;
    this.#waiting = [];
    return ids;
  }
}

/** So many deliveries are taken in one step at most, by a receiver that can. */
const MOST = 100;

/**
 * The number of deliveries of a receiver are sent in one step, all or none: twice as many after each step that was taken, and
 * only one after one that was not. So one that is never taken, or a receiver that is slow, holds up little beside it.
 */
export class Together {
  readonly #most: number;
  #wanted = 1;

  constructor({ isPossible }: { isPossible: boolean }) {
    this.#most = isPossible ? MOST : 1;
  }

  get isPossible(): boolean {
    return this.#most > 1;
  }

  get wanted(): number {
    return this.#wanted;
  }

  /** Takes in how an attempt went; `isApart` when all of them were not taken at once. */
  saw({ isDelivered, isApart }: { isDelivered: boolean; isApart: boolean }): void {
    this.#wanted = isDelivered && !isApart ? Math.min(this.#most, 2 * this.#wanted) : 1;
  }
}

/**
 * Of deliveries that were claimed together, those that are sent in one step, and the rest, which is not sent now: what
 * has no event to send, or waits for others, goes by itself.
 */
export function splitTogether(claimed: readonly PendingDelivery[]): {
  first: Deliveries | null;
  rest: readonly PendingDelivery[];
} {
  const [lead, ...others] = claimed;
  if (lead === undefined) return { first: null, rest: [] };
  const goes = isPlain(lead) ? others.findIndex((one) => !isPlain(one)) : 0;
  const count = goes === -1 ? others.length : goes;
  return { first: [lead, ...others.slice(0, count)], rest: others.slice(count) };
}

function isPlain({ event, fact }: PendingDelivery): boolean {
  return event !== null && fact.batch === null;
}
