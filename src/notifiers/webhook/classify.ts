import { STATUS_CODES } from 'node:http';
import type { AttemptResult } from '../notifier.ts';
import { parseRetryAfter } from './retry-after.ts';

/** An answer's status, its `Retry-After` header, whether its body ended, and the timeout that ended the attempt. */
export type AnswerFacts = {
  httpStatus: number;
  retryAfter: string | undefined;
  ended: boolean;
  timedOutAfterMs: number | null;
  nowMs: number;
};

/** The part of an attempt's result that follows from the answer alone. */
export type Verdict = Pick<AttemptResult, 'outcome' | 'reason' | 'retryAfterMs'>;

const WAITING_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/**
 * What an answer means, by Standard Webhooks: 2xx is success, a redirect is a failure and never followed, 410 ends
 * the deliveries, 429, 502, 503 and 504 may say how long to wait. Only a success also needs its body to end: a
 * refusal is one whatever follows it.
 */
export function classifyAnswer({
  httpStatus,
  retryAfter,
  ended,
  timedOutAfterMs,
  nowMs,
}: AnswerFacts): Verdict {
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

/** Why no answer came, in words for a human, from an error of the connection. */
export function describeConnectionError(error: unknown): string {
  if (!(error instanceof Error)) return 'the request failed';
  // Several addresses were tried and each failed: the first one's reason stands for all.
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
