import type { Dispatcher } from 'undici';
import { STATUS_CODES } from '../../network/node-http.ts';
import type { AttemptResult } from '../notifier.ts';
import { MAX_ANSWER_BYTES, MAX_READ } from '../printable.ts';
import { isStale } from './connector.ts';

/**
 * Answer to a request: its status, its `Retry-After` header, and the unchanged start of its body. `ended`: the body ended or
 * reached the cap, not broke off; `cut`: more may have followed.
 */
export type ReceiverAnswer = {
  httpStatus: number;
  retryAfter: string | undefined;
  text: string;
  ended: boolean;
  cut: boolean;
};

/** An open connection that was used before ended, without a byte of an answer to the request on it. */
export class StaleConnectionError extends Error {
  readonly code = 'STALE_CONNECTION';
}

/**
 * Sends one request and reads its answer until 1 KiB of the body has come. A longer body is cut there, with its connection,
 * and counts as ended: it must not cost a success that a status has already promised. The signal ends it at any time. Rejects
 * only while there is no status: a body that breaks off yields the bytes that arrived.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  signal: AbortSignal,
): Promise<ReceiverAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<ReceiverAnswer>();
  const handler = new AnswerHandler(signal, { resolve, reject });
  if (!signal.aborted) dispatcher.dispatch(request, handler);
  return promise;
}

/** A handler of undici's lower level: its `request` makes a stream of each answer, which costs more than the signature. */
class AnswerHandler implements Dispatcher.DispatchHandler {
  readonly #signal: AbortSignal;
  readonly #settle: { resolve: (answer: ReceiverAnswer) => void; reject: (error: unknown) => void };
  #controller: Dispatcher.DispatchController | null = null;
  #head: { httpStatus: number; retryAfter: string | undefined } | null = null;
  #hasBegun = false;
  #hasEnded = false;
  #isSettled = false;
  readonly #chunks: Buffer[] = [];
  #length = 0;

  constructor(
    signal: AbortSignal,
    settle: { resolve: (answer: ReceiverAnswer) => void; reject: (error: unknown) => void },
  ) {
    this.#signal = signal;
    this.#settle = settle;
    signal.addEventListener('abort', this.#abort, { once: true });
    if (signal.aborted) this.#abort();
  }

  /** Follows the wait for a connection. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isSettled) controller.abort(this.#signal.reason);
  }

  onResponseStarted(): void {
    this.#hasBegun = true;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    httpStatus: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#head = { httpStatus, retryAfter: [headers['retry-after'] ?? []].flat()[0] };
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isSettled) return;
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length < MAX_ANSWER_BYTES) return;
    this.#end(true);
    // A body that ends with the bytes that are being parsed does not cost the connection.
    queueMicrotask(() => {
      if (!this.#hasEnded) controller.abort(new Error('the rest of the answer is not read'));
    });
  }

  onResponseEnd(): void {
    this.#hasEnded = true;
    this.#end(true);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const isUnanswered = !this.#hasBegun && isStale(error);
    this.#fail(isUnanswered ? new StaleConnectionError(error.message, { cause: error }) : error);
  }

  /** undici reads no signal before there is a connection: the attempt must not wait for that. */
  readonly #abort = (): void => {
    this.#fail(this.#signal.reason);
    this.#controller?.abort(this.#signal.reason);
  };

  #fail(error: unknown): void {
    if (this.#head !== null) this.#end(false);
    else if (this.#markSettled()) this.#settle.reject(error);
  }

  #end(ended: boolean): void {
    if (this.#head === null || !this.#markSettled()) return;
    const cut = !ended || this.#length >= MAX_ANSWER_BYTES;
    this.#settle.resolve({ ...this.#head, text: textOf(this.#chunks), ended, cut });
  }

  /** Returns false where it was settled before. */
  #markSettled(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    this.#signal.removeEventListener('abort', this.#abort);
    return true;
  }
}

function textOf(chunks: readonly Buffer[]): string {
  if (chunks.length === 0) return '';
  const bytes = Buffer.concat(chunks).subarray(0, MAX_READ);
  return new TextDecoder('utf-8').decode(bytes, { stream: true }).replaceAll('\ufffd', '?');
}

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
