import type { Logger } from 'pino';
import type { EndpointGroup } from '../../domain/subjects/kinds.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import type { Reading } from '../../pollers/reading.ts';
import type { Signals } from '../../signals.ts';
import type { AnswerKind, HealthStore } from '../../store/health.ts';
import type { PollStart } from '../../store/poll-start.ts';
import {
  type FailureCode,
  isAboutKey,
  refusalReport,
  UpstreamFailure,
} from '../../upstream/client/failure.ts';
import type { SupportDetails } from '../../upstream/wire/problem.ts';

/**
 * What a failed request means for its poll. `own`: the subject's own failure, for which it backs off alone; else it is
 * polled again in its turn, as what failed is the endpoint group.
 */
export type PollFailure = {
  code: FailureCode;
  reason: string;
  support: SupportDetails;
  own: boolean;
  afterMs: number;
};

/** What a failure says of its endpoint group. */
type FailureDetails = { reason: string; retryAfterMs: number | null; support: SupportDetails };

/** A subject that fails is tried again after this, twice as long each time in a row, up to the longest. */
const BACKOFF_MS = 2_500;
const LONGEST_BACKOFF_MS = 300_000;

/** A request that the upstream calls wrong is not sent again unchanged before this. */
const INVALID_BACKOFF_MS = 60_000;

/** `Retry-After` of an answer other than 429 keeps one subject waiting for so long at most. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/** The codes that say that the key is refused, whoever asks (interface, Authentication, 4 and 6). */
const KEY_REFUSED: readonly (string | null)[] = ['invalid-api-key', 'api-key-expired'];

/** An exact poll whose answer does not hold the subject that was requested: no news of any kind. */
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

/** What failed together is not tried again together: three in a row would be taken for the endpoint group. Of the time, either way. */
const SPREAD = 0.5;

/** After how long a subject that has failed so often in a row is tried again, ms. */
export function backoffMs(failuresBefore: number, leastMs = BACKOFF_MS): number {
  const ms = BACKOFF_MS * 2 ** Math.min(failuresBefore, 10) * (1 + SPREAD * (2 * Math.random() - 1));
  return Math.min(LONGEST_BACKOFF_MS, Math.max(leastMs, ms));
}

/**
 * Tells the endpoint group what became of its requests, and says what a failure means for its poll. What the answers of different
 * subjects come to together is decided where all processes' are known: see store/commands/include/endpoint-group.lua.
 */
export class PollFailures {
  readonly #endpointGroup: EndpointGroup;
  readonly #health: HealthStore;
  readonly #signals: Signals;
  readonly #log: Logger;

  constructor(endpointGroup: EndpointGroup, parts: { health: HealthStore; signals: Signals; log: Logger }) {
    this.#endpointGroup = endpointGroup;
    this.#health = parts.health;
    this.#signals = parts.signals;
    this.#log = parts.log;
  }

  async answered(start: PollStart): Promise<void> {
    await this.#note(start, 'ok', { reason: '', retryAfterMs: null, support: {} });
  }

  /** Handles what a request ended in. Rethrows what is no failure of the upstream's. */
  async handle(error: unknown, start: PollStart): Promise<PollFailure> {
    if (!(error instanceof UpstreamFailure)) throw error;
    const { code, retryAfterMs, support } = error;
    const reason = refusalReport(error) ?? error.message;
    const isProbe = start.lane === 'probe';
    const details = { reason, retryAfterMs, support };
    switch (code) {
      case 'unauthorized':
      case 'forbidden': {
        // Where no key was sent, or a page came, it is the path or something in between that is wrong.
        if (!isAboutKey(error)) return this.#unreachable(error, start, details);
        const kind = KEY_REFUSED.includes(error.problemCode) ? 'refused' : 'denied';
        await this.#note(start, kind, details);
        return { code, reason, support, own: kind === 'denied' && !isProbe, afterMs: backoffMs(start.fails) };
      }
      case 'rate-limited':
        await this.#note(start, 'throttled', details);
        // It waits longer than the others, which may have been throttled for it alone.
        return { code, reason, support, own: !isProbe, afterMs: backoffMs(start.fails) };
      case 'unavailable':
      case 'timeout':
      case 'malformed':
      case 'not-found':
        // A page that says 404, or HTML with status 200, is an upstream that cannot be used as much as a closed port.
        return this.#unreachable(error, start, details);
      case 'invalid-request':
        await this.#note(start, 'ok', details);
        return { code, reason, support, own: true, afterMs: backoffMs(start.fails, INVALID_BACKOFF_MS) };
    }
  }

  async #unreachable(
    { code }: UpstreamFailure,
    start: PollStart,
    details: FailureDetails,
  ): Promise<PollFailure> {
    await this.#note(start, 'unreachable', details);
    const leastMs = Math.min(LONGEST_RETRY_AFTER_MS, details.retryAfterMs ?? 0);
    const afterMs = backoffMs(start.fails, leastMs);
    return { code, reason: details.reason, support: details.support, own: start.lane !== 'probe', afterMs };
  }

  async #note(start: PollStart, kind: AnswerKind, details: FailureDetails): Promise<void> {
    const { before, after, pauseMs } = await this.#health.note(this.#endpointGroup, {
      kind,
      member: start.member,
      sentAtMs: start.planMs,
      ...details,
    });
    if (pauseMs !== null) {
      this.#signals.emit('upstream.paused', { endpointGroup: this.#endpointGroup, seconds: pauseMs / 1_000 });
    }
    if (before === after) return;
    const { reason, support } = details;
    this.#signals.emit('upstream.moved', { endpointGroup: this.#endpointGroup, before, after, reason });
    this.#log[after === 'ok' ? 'info' : 'error'](
      { endpointGroup: this.#endpointGroup, before, after, reason, ...support },
      'upstream.moved',
    );
  }
}
