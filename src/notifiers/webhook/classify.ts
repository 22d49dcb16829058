import { STATUS_CODES } from '../../network/node-http.ts';
import type { AttemptResult } from '../notifier.ts';

/** An answer's status, its `Retry-After` header, whether its body ended, and the timeout that ended the attempt. */
export type AnswerFacts = {
  httpStatus: number;
  retryAfter: string | undefined;
  ended: boolean;
  timedOutAfterMs: number | null;
  nowMs: number;
};

/** The part of an attempt's result that follows from the answer alone. */
export type WebhookOutcome = Pick<AttemptResult, 'outcome' | 'reason' | 'retryAfterMs'>;

const WAITING_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/**
 * Classifies an answer by Standard Webhooks: 2xx is success, a redirect is a failure and never followed, 410 ends the
 * deliveries, 429, 502, 503 and 504 may name a wait. Only a success also needs its body to end: a refusal is one whatever
 * follows it.
 */
export function classifyAnswer({
  httpStatus,
  retryAfter,
  ended,
  timedOutAfterMs,
  nowMs,
}: AnswerFacts): WebhookOutcome {
  const name = [httpStatus, STATUS_CODES[httpStatus]].filter(Boolean).join(' ');
  if (httpStatus >= 200 && httpStatus < 300) {
    if (ended) return { outcome: 'delivered', reason: name, retryAfterMs: null };
    const problem = timedOutAfterMs === null ? 'broke off' : 'did not end in time';
    return { outcome: 'failed', reason: `${name}, but the answer ${problem}`, retryAfterMs: timedOutAfterMs };
  }
  if (httpStatus === 410) return { outcome: 'rejected', reason: name, retryAfterMs: null };
  const isRedirect = httpStatus >= 300 && httpStatus < 400;
  return {
    outcome: 'failed',
    reason: isRedirect ? `${name}, and redirects are not followed` : name,
    retryAfterMs: WAITING_STATUSES.has(httpStatus) ? parseRetryAfter(retryAfter, nowMs) : null,
  };
}

/** Describes for a human, from an error of the connection, the reason for a missing answer. */
export function describeConnectionError(error: unknown): string {
  if (!(error instanceof Error)) return 'the request failed';
  // Several addresses were tried and each failed: the first one's reason represents all.
  if (error instanceof AggregateError && error.errors[0] instanceof Error) {
    return describeConnectionError(error.errors[0]);
  }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  switch (code) {
    case 'ECONNREFUSED':
      return 'connection refused';
    case 'ECONNRESET':
    case 'EPIPE':
    case 'UND_ERR_SOCKET':
      return 'the connection broke before an answer came';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'PROXY_FAILED':
      return error.message;
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      // Its message names the host, which may be as secret as the rest of the URL.
      return `the certificate is for other names (${code})`;
    case 'UND_ERR_HEADERS_OVERFLOW':
      return 'the header of the answer is longer than 16 KiB';
    case 'ANSWER_TOO_LONG':
      return `given up: ${error.message}`;
    case 'ADDRESS_REFUSED':
      return `not connected: ${error.message}`;
    default:
      return code === null ? error.message : `${error.message} (${code})`;
  }
}

const MAX_RETRY_AFTER_MS = 60 * 60 * 1_000;

/** Parses `Retry-After` (seconds or an HTTP date) to ms from `nowMs`, 0 to one hour. Null when missing or invalid. */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | null {
  const text = header?.trim() ?? '';
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : httpDateMs(text) - nowMs;
  return Number.isNaN(waitMs) ? null : Math.min(Math.max(Math.round(waitMs), 0), MAX_RETRY_AFTER_MS);
}

/** An HTTP date begins with the name of a day; `Date.parse` alone would also read `-1` as a year. */
function httpDateMs(text: string): number {
  return /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text) ? Date.parse(text) : Number.NaN;
}
