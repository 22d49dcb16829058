import type { PendingDelivery } from './attempts.ts';

/** Time of a claim: Redis time, and our own clock at that time. */
export type Clock = { redisMs: number; ownMs: number };

/** Deliveries that are sent at once, the leading one first. Mostly it is the only one. */
export type MessageDeliveries = readonly [PendingDelivery, ...PendingDelivery[]];

type ClaimedMessage = { deliveries: MessageDeliveries; clock: Clock };

const QUICK_MS = 200;

const FRESH_MS = 500;

/**
 * Deliveries claimed before the process has a place for them, so that an attempt begins in the turn in which another ends. Used
 * only while the receiver accepts quickly: a delivery that waits here is open to no other process.
 */
export class PrefetchBuffer {
  readonly #most: number;
  #waiting: ClaimedMessage[] = [];
  #isQuick = false;

  /** `most`: how many may wait here; 0 for a receiver that gets nothing before its turn is requested. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Number of deliveries worth requesting. It is 0 while few are missing: many at once cost little more than one. */
  get capacity(): number {
    if (!this.isOpen || this.#waiting.length * 2 > this.#most) return 0;
    return this.#most - this.#waiting.length;
  }

  get isOpen(): boolean {
    return this.#isQuick && this.#most > 0;
  }

  get ids(): string[] {
    return this.#waiting.flatMap(({ deliveries }) => deliveries.map(({ id }) => id));
  }

  has(id: string): boolean {
    return this.ids.includes(id);
  }

  add(claimed: ClaimedMessage): void {
    this.#waiting.push(claimed);
  }

  next(): ClaimedMessage | null {
    const [first] = this.#waiting;
    if (first === undefined || performance.now() - first.clock.ownMs > FRESH_MS) return null;
    return this.#waiting.shift() ?? null;
  }

  /** Notes how an attempt went. Returns the ids of deliveries that are not sent now and must be released. */
  saw(attempt: { isDelivered: boolean; durationMs: number }): string[] {
    this.#isQuick = attempt.isDelivered && attempt.durationMs <= QUICK_MS;
    return attempt.isDelivered ? this.stale() : this.clear();
  }

  stale(): string[] {
    const [first] = this.#waiting;
    if (first === undefined || performance.now() - first.clock.ownMs <= FRESH_MS) return [];
    // A receiver that makes them wait is no longer quick.
    this.#isQuick = false;
    return this.clear();
  }

  clear(): string[] {
    const { ids } = this;
    this.#waiting = [];
    return ids;
  }
}

const MOST = 100;

/**
 * Number of a receiver's deliveries that are sent in one step, all or none. It doubles after each accepted step and is one
 * after a failed step. So a delivery that is never accepted, or a slow receiver, holds up few others.
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

  /** Notes how an attempt went; `isApart` when not all of them were accepted at once. */
  saw({ isDelivered, isApart }: { isDelivered: boolean; isApart: boolean }): void {
    this.#wanted = isDelivered && !isApart ? Math.min(this.#most, 2 * this.#wanted) : 1;
  }
}

/** Splits deliveries claimed together into those sent in one step and the rest. One without event, or of a batch, goes alone. */
export function splitTogether(claimed: readonly PendingDelivery[]): {
  first: MessageDeliveries | null;
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
