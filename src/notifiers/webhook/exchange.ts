import type { Dispatcher } from 'undici';
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
