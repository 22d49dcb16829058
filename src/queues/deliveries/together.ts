import type { Deliveries } from './ahead.ts';
import type { PendingDelivery } from './pending-delivery.ts';

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
