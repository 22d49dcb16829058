import type { PendingDelivery } from './attempts.ts';

/** Time of a claim by Redis and by the monotonic clock of this process, ms; and the life of the process (see Heartbeat). */
export type ClaimTime = { redisMs: number; ownMs: number; life: number };

/** Deliveries that one attempt sends: mostly one; more in a digest, or in a transaction of Postgres. */
export type MessageDeliveries = readonly [PendingDelivery, ...PendingDelivery[]];

type ClaimedMessage = { deliveries: MessageDeliveries; clock: ClaimTime };

/** Deliveries are prefetched only after an attempt that was accepted within this time. */
const QUICK_MS = 200;

const LONGEST_WAIT_MS = 500;

/**
 * Deliveries that are claimed while others are being sent, so that the next attempt begins without a request to Redis. Used only
 * while the receiver accepts quickly: no other process can send a delivery that waits here.
 */
export class PrefetchBuffer {
  readonly #most: number;
  #waiting: ClaimedMessage[] = [];
  #isQuick = false;

  /** `most`: number that may wait here; 0 for a receiver without prefetching. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Number of deliveries to claim; 0 while it is more than half full, because one claim of many is cheaper than many claims. */
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

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  has(id: string): boolean {
    return this.#waiting.some(({ deliveries }) => deliveries.some((one) => one.id === id));
  }

  add(claimed: ClaimedMessage): void {
    this.#waiting.push(claimed);
  }

  next(): ClaimedMessage | null {
    const [first] = this.#waiting;
    if (first === undefined || performance.now() - first.clock.ownMs > LONGEST_WAIT_MS) return null;
    return this.#waiting.shift() ?? null;
  }

  /** Notes the result of an attempt. Returns the ids of deliveries that the caller must give up. */
  noteAttempt(attempt: { isDelivered: boolean; durationMs: number }): string[] {
    this.#isQuick = attempt.isDelivered && attempt.durationMs <= QUICK_MS;
    return attempt.isDelivered ? this.removeStale() : this.clear();
  }

  /** Removes all deliveries if one has waited too long. Returns their ids, which the caller must give up. */
  removeStale(): string[] {
    const [first] = this.#waiting;
    if (first === undefined || performance.now() - first.clock.ownMs <= LONGEST_WAIT_MS) return [];
    // They waited because the receiver has become slow.
    this.#isQuick = false;
    return this.clear();
  }

  clear(): string[] {
    if (this.isEmpty) return [];
    const { ids } = this;
    this.#waiting = [];
    return ids;
  }
}

const MOST = 100;

/**
 * Number of deliveries in one transaction, for a receiver that can insert several at once (`deliverTogether`). It doubles after
 * each success and is one after a failure. So a delivery that is never accepted, or a slow receiver, holds up few others.
 */
export class GroupSize {
  readonly #most: number;
  #wanted = 1;

  constructor({ canGrow }: { canGrow: boolean }) {
    this.#most = canGrow ? MOST : 1;
  }

  get canGrow(): boolean {
    return this.#most > 1;
  }

  get wanted(): number {
    return this.#wanted;
  }

  /** Notes the result of an attempt; `isPartial`: it sent only a part of its deliveries. */
  noteAttempt({ isDelivered, isPartial }: { isDelivered: boolean; isPartial: boolean }): void {
    this.#wanted = isDelivered && !isPartial ? Math.min(this.#most, 2 * this.#wanted) : 1;
  }
}

/** Splits claimed deliveries into one transaction and the rest. A delivery of a digest, or without its event, is sent alone. */
export function splitGroup(claimed: readonly PendingDelivery[]): {
  first: MessageDeliveries | null;
  rest: readonly PendingDelivery[];
} {
  const [lead, ...others] = claimed;
  if (lead === undefined) return { first: null, rest: [] };
  const end = canShare(lead) ? others.findIndex((one) => !canShare(one)) : 0;
  const count = end === -1 ? others.length : end;
  return { first: [lead, ...others.slice(0, count)], rest: others.slice(count) };
}

function canShare({ event, fact }: PendingDelivery): boolean {
  return event !== null && fact.batch === null;
}
