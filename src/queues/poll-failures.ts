import type { Logger } from 'pino';
import type { SubjectId } from '../domain/subject.ts';
import type { Reading } from '../pollers/reading.ts';
import type { Signals } from '../signals.ts';
import type { HealthOutcome, HealthStore } from '../store/health.ts';
import type { Surface } from '../store/surface.ts';
import { type FailureCode, UpstreamFailure } from '../upstream/failure.ts';
import type { PollQueues } from './poll-queues.ts';
import type { Pricing } from './pricing.ts';

/** What a failed request means for its poll. `counts`: it was this request's own failure, not a pause for all. */
export type PollFailure = { code: FailureCode; reason: string; afterMs: number; counts: boolean };

const RETRY_MS = 5_000;
const UNAUTHORIZED_RETRY_MS = 15_000;
const INVALID_RETRY_MS = 300_000;

/** A `429` without `Retry-After` pauses for this long, twice as long each time in a row, up to the longest. */
const PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/** An exact look-up whose answer does not hold the subject that was asked for: no news of any kind. */
export function missingRecord(subject: SubjectId, reading: Reading): UpstreamFailure {
  const found = reading.records.map((record) => record.subject).slice(0, 3);
  return new UpstreamFailure({
    endpoint: 'status',
    code: 'malformed',
    found: found.length === 0 ? 'no record' : `records of ${found.join(', ')}`,
    expected: `a record of ${subject}`,
    httpStatus: 200,
    problemCode: null,
    retryAfterMs: null,
  });
}

/** Turns failures of the upstream's into waits, pauses and the surface's state. */
export class PollFailures {
  readonly #surface: Surface;
  readonly #health: HealthStore;
  readonly #queues: PollQueues;
  readonly #pricing: Pricing;
  readonly #signals: Signals;
  readonly #log: Logger;
  /** How many `429` without `Retry-After` came in a row here. Only the length of a pause hangs on it. */
  #throttled = 0;

  constructor(
    surface: Surface,
    parts: { health: HealthStore; queues: PollQueues; pricing: Pricing; signals: Signals; log: Logger },
  ) {
    this.#surface = surface;
    this.#health = parts.health;
    this.#queues = parts.queues;
    this.#pricing = parts.pricing;
    this.#signals = parts.signals;
    this.#log = parts.log;
  }

  /** Notes that the surface answered. */
  async answered(): Promise<void> {
    this.#throttled = 0;
    await this.#note('ok', '');
  }

  /** Handles what a request ended in. Rethrows what is no failure of the upstream's. */
  async handle(error: unknown): Promise<PollFailure> {
    if (!(error instanceof UpstreamFailure)) throw error;
    const { code, message: reason } = error;
    switch (code) {
      case 'unauthorized':
      case 'forbidden':
        await this.#note('unauthorized', reason);
        return { code, reason, afterMs: UNAUTHORIZED_RETRY_MS, counts: false };
      case 'rate-limited':
        return { code, reason, afterMs: await this.#pause(error), counts: false };
      case 'unavailable':
      case 'timeout':
      case 'malformed':
      case 'not-found':
        // A page that says 404, or HTML with status 200, is an upstream that cannot be used as much as a closed port.
        await this.#note('unreachable', reason);
        return { code, reason, afterMs: Math.max(RETRY_MS, error.retryAfterMs ?? 0), counts: true };
      case 'invalid-request':
        await this.#note('ok', reason);
        return { code, reason, afterMs: INVALID_RETRY_MS, counts: true };
    }
  }

  async #pause(failure: UpstreamFailure): Promise<number> {
    this.#pricing.pushedBack(this.#surface);
    const backoffMs = Math.min(LONGEST_PAUSE_MS, PAUSE_MS * 2 ** this.#throttled);
    if (failure.retryAfterMs === null) this.#throttled = Math.min(this.#throttled + 1, 10);
    const pauseMs = await this.#queues.pause(this.#surface, Math.max(1, failure.retryAfterMs ?? backoffMs));
    this.#signals.emit('upstream.paused', { surface: this.#surface, seconds: pauseMs / 1_000 });
    return pauseMs;
  }

  async #note(outcome: HealthOutcome, reason: string): Promise<void> {
    const { before, after } = await this.#health.note(this.#surface, outcome, reason);
    if (before === after) return;
    this.#signals.emit('upstream.moved', { surface: this.#surface, before, after, reason });
    this.#log[after === 'ok' ? 'info' : 'error'](
      { surface: this.#surface, before, after, reason },
      'upstream.moved',
    );
  }
}
