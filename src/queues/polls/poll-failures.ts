import type { Logger } from 'pino';
import type { EndpointGroup } from '../../domain/subjects/kinds.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import type { PollResponse } from '../../pollers/poll-response.ts';
import type { Signals } from '../../signals.ts';
import type { AnswerKind, HealthStore } from '../../store/health.ts';
import type { PollStart } from '../../store/poll-start.ts';
import {
  type FailureCode,
  isAboutKey,
  refusalReport,
  type TooLarge,
  UpstreamFailure,
} from '../../upstream/client/failure.ts';
import type { SupportDetails } from '../../upstream/wire/problem.ts';
import type { PollContext } from './poll-context.ts';

/** Meaning of a failed request. `own`: the subject backs off alone; else the endpoint group failed, and the turn stays. */
export type PollFailure = {
  code: FailureCode;
  reason: string;
  support: SupportDetails;
  own: boolean;
  afterMs: number;
};

type FailureDetails = { reason: string; retryAfterMs: number | null; support: SupportDetails };

/** Wait before a failed subject is polled again, twice as long each time in a row, up to the longest. */
const BACKOFF_MS = 2_500;
const LONGEST_BACKOFF_MS = 300_000;

/** Least wait before a request that the upstream calls wrong is sent again unchanged. */
const INVALID_BACKOFF_MS = 60_000;

/** Most that `Retry-After` of an answer other than 429 delays one subject. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/** Codes by which the upstream refuses the key, whoever requests (interface, Authentication, 4 and 6). */
const KEY_REFUSED: readonly (string | null)[] = ['invalid-api-key', 'api-key-expired'];

/** Failure of an exact poll whose answer lacks the requested subject: it changes nothing. */
export function missingRecord(subject: SubjectId, response: PollResponse): UpstreamFailure {
  const found = response.records.map((record) => record.subject).slice(0, 3);
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

/** Random share of the wait, either way: failures retried together could make three in a row, the endpoint group's failure. */
const SPREAD = 0.5;

/** Wait before a subject that has failed so often in a row is polled again, ms. */
export function backoffMs(failuresBefore: number, leastMs = BACKOFF_MS): number {
  const ms = BACKOFF_MS * 2 ** Math.min(failuresBefore, 10) * (1 + SPREAD * (2 * Math.random() - 1));
  return Math.min(LONGEST_BACKOFF_MS, Math.max(leastMs, ms));
}

/**
 * Reports the results of requests to the endpoint group, and decides what a failure means for its poll. The answers of
 * different subjects are judged together where those of all processes are known: see store/commands/include/endpoint-group.lua.
 */
export class PollFailures {
  readonly #endpointGroup: EndpointGroup;
  readonly #health: HealthStore;
  readonly #signals: Signals;
  readonly #log: Logger;

  constructor(endpointGroup: EndpointGroup, deps: { health: HealthStore; signals: Signals; log: Logger }) {
    this.#endpointGroup = endpointGroup;
    this.#health = deps.health;
    this.#signals = deps.signals;
    this.#log = deps.log;
  }

  async answered(start: PollStart): Promise<void> {
    await this.#note(start, 'ok', { reason: '', retryAfterMs: null, support: {} });
  }

  /** Handles the error of a request. Rethrows an error that is not the upstream's. */
  async handle(error: unknown, start: PollStart): Promise<PollFailure> {
    if (!(error instanceof UpstreamFailure)) throw error;
    const { code, retryAfterMs, support } = error;
    const reason = refusalReport(error) ?? error.message;
    const isProbe = start.lane === 'probe';
    const details = { reason, retryAfterMs, support };
    switch (code) {
      case 'unauthorized':
      case 'forbidden': {
        // Without a key, or with a page as answer, the path or an intermediary is wrong.
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
        // A page with status 404, or HTML with status 200, is an unusable upstream as much as a closed port.
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

/** Reports a record of a wallet that is too large to read, once however often its pages are requested. */
export async function reportTooLarge(
  { stores, signals, log }: PollContext,
  wallet: SubjectId,
  { found, firstId }: TooLarge,
): Promise<void> {
  const record = { wallet, id: firstId, reason: `a page of one record: found ${found}` };
  if (!(await stores.health.reportTooLarge('status', record))) return;
  signals.emit('record.too-large', record);
  log.error({ subject: wallet, id: firstId, reason: record.reason }, 'record.too_large');
}
