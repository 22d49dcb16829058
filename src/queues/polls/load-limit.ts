import { performance } from 'node:perf_hooks';

/** For which share of the last so many ms an event loop was busy, 0 to 1. */
export type Busy = () => { share: number; ofMs: number };

/** A share over less than this says little. */
const LEAST_SPAN_MS = 50;

/** From this on the process is the bottleneck: more at once would only wait in it, and cost memory. */
const BUSY_SHARE = 0.9;

const FEWER = 0.8;
const MORE = 1.5;

/** So many at once keep a process busy whose upstream answers at once; each waits for its job, for Redis twice, and is asked. */
const LEAST = 400;

/**
 * The number of polls a process that has under way at once: as many as the capacity, unless the process itself is the bottleneck.
 *
 * | the event loop | of what is allowed      | allowed from then on        |
 * |----------------|-------------------------|-----------------------------|
 * | is busy        |                         | a fifth fewer, at least 400 |
 * | has room       | most is with workers    | half as many more           |
 * | has room       | little is               | the same                    |
 */
export class LoadLimit {
  readonly #capacity: number;
  readonly #busy: Busy;
  #allowed: number;

  constructor(capacity: number, busy: Busy = eventLoopBusy()) {
    this.#capacity = capacity;
    this.#busy = busy;
    this.#allowed = Math.min(capacity, LEAST);
  }

  get allowed(): number {
    return this.#allowed;
  }

  /** Looks at how busy the event loop was while workers had so many polls. What only waits for a worker says nothing. */
  adapt(taken: number): void {
    const { share, ofMs } = this.#busy();
    if (ofMs < LEAST_SPAN_MS) return;
    if (share >= BUSY_SHARE) this.#allowed = Math.floor(this.#allowed * FEWER);
    else if (taken > this.#allowed / MORE) this.#allowed = Math.ceil(this.#allowed * MORE);
    this.#allowed = Math.min(this.#capacity, Math.max(LEAST, this.#allowed));
  }
}

/** The utilization of this process's event loop. */
function eventLoopBusy(): Busy {
  let before = performance.eventLoopUtilization();
  return () => {
    const { utilization, active, idle } = performance.eventLoopUtilization(before);
    const ofMs = active + idle;
    if (ofMs >= LEAST_SPAN_MS) before = performance.eventLoopUtilization();
    return { share: utilization, ofMs };
  };
}
