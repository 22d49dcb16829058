import { setTimeout as delay } from 'node:timers/promises';
import type { ChainEndpoint } from '../config/config.ts';
import { BoundedMap, bytesOfTexts, CACHES } from '../domain/caches.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Block, Found } from '../domain/proof/proof.ts';
import { type Redact, redactor, secretsOfHeader, secretsOfUrl } from '../redact.ts';
import { Thread, ThreadError } from '../thread.ts';
import { Transport } from '../upstream/http/transport.ts';
import { VERSION } from '../version.ts';
import { ANSWER_MODULE, CALL_ID, type Result, type ResultName, type RpcAnswer, work } from './answer.ts';

/** A caller with a longer wait is refused. */
const LONGEST_WAIT_MS = 10_000;

/** Spreads calls evenly: at a rate per second, and after an idle second as many at once. */
class Pace {
  readonly #intervalMs: number;
  /** Most lag of granted turns behind the clock: the turns unused in the last second. */
  readonly #burstMs: number;
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number) {
    this.#intervalMs = 1_000 / perSecond;
    this.#burstMs = Math.max(0, 1_000 - this.#intervalMs);
  }

  /** Waits for a turn; false, at once, when that would take longer than ten seconds. Rejects with the reason of `signal`. */
  async take(signal?: AbortSignal): Promise<boolean> {
    signal?.throwIfAborted();
    const nowMs = performance.now();
    const atMs = Math.max(this.#nextAtMs, nowMs - this.#burstMs, this.#pausedUntilMs);
    if (atMs - nowMs > LONGEST_WAIT_MS) return false;
    this.#nextAtMs = atMs + this.#intervalMs;
    if (atMs > nowMs) await delay(atMs - nowMs, undefined, signal === undefined ? {} : { signal });
    return true;
  }

  /** Grants no turn for this time. Turns granted earlier stay valid. */
  pause(ms: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, performance.now() + ms);
  }
}

/** Outcome of a call. */
export type CallOutcome = 'ok' | 'error' | 'timeout' | 'rate-limited' | 'wrong-chain';

/** One call of one endpoint, for metrics and the log. */
export type EndpointCall = {
  chainId: string;
  endpoint: string;
  method: string;
  outcome: CallOutcome;
  ms: number;
};

/** Reason of a failed call. The message holds neither the endpoint's URL nor its header values. */
export class EndpointError extends Error {
  override readonly name = 'EndpointError';
  readonly outcome: Exclude<CallOutcome, 'ok'>;
  /** Code of the endpoint's JSON-RPC error; null without one. */
  readonly rpcCode: number | null;

  constructor(outcome: Exclude<CallOutcome, 'ok'>, message: string, rpcCode: number | null = null) {
    super(message);
    this.outcome = outcome;
    this.rpcCode = rpcCode;
  }
}

type RpcCall<Name extends ResultName> = { method: string; params: readonly unknown[]; result: Name };

const LIMIT_CODES: ReadonlySet<number> = new Set([-32005, -32029, 429]);

/** Pause of an endpoint that limits the rate without a time. */
const LIMIT_PAUSE_MS = 2_000;

const LONGEST_QUOTE = 200;

/** A smaller text is parsed faster than a thread receives it: nearly any receipt or block. */
const THREAD_FROM_CHARS = 262_144;

/** Far more time than an answer of the largest size takes, also on a busy machine. */
const READ_MS = 60_000;

/** One JSON-RPC endpoint with its own budget. A call is one request without a retry; a large answer is parsed in a thread. */
export class RpcEndpoint {
  readonly name: string;
  readonly #chainId: string;
  readonly #url: URL;
  readonly #headers: Record<string, string>;
  readonly #transport: Transport;
  readonly #thread = new Thread<Parameters<typeof work>[0], RpcAnswer>({
    module: ANSWER_MODULE,
    mostMs: READ_MS,
  });
  readonly #pace: Pace;
  readonly #redact: Redact;
  readonly #timeoutMs: number;
  readonly #onCall: (call: EndpointCall) => void;

  constructor(
    { name, url, headers, timeoutMs, proxy, requestsPerSecond }: ChainEndpoint,
    { chainId, onCall }: { chainId: string; onCall(call: EndpointCall): void },
  ) {
    this.name = name;
    this.#chainId = chainId;
    this.#url = new URL(url.reveal());
    const own = Object.entries(headers).map(([key, value]) => [key.toLowerCase(), value.reveal()] as const);
    this.#headers = {
      accept: 'application/json',
      'accept-encoding': 'identity',
      'content-type': 'application/json',
      'user-agent': `Intentwatch/${VERSION}`,
      ...Object.fromEntries(own),
    };
    this.#timeoutMs = timeoutMs;
    this.#transport = new Transport({ timeoutMs, proxy });
    this.#pace = new Pace(requestsPerSecond);
    this.#redact = redactor([
      ...secretsOfUrl(this.#url),
      ...own.flatMap(([, value]) => secretsOfHeader(value)),
      ...(proxy === null ? [] : secretsOfUrl(new URL(proxy.reveal()))),
    ]);
    this.#onCall = onCall;
  }

  /** Sends one request within the budget. Throws an EndpointError, or the reason of `signal` when the caller gave up. */
  async call<Name extends ResultName>(question: RpcCall<Name>, signal?: AbortSignal): Promise<Result<Name>> {
    const { method } = question;
    const waits = await this.#pace.take(signal);
    if (!waits) {
      throw new EndpointError('rate-limited', `${this.name}: requested a pause that is not over`);
    }
    const startedAt = performance.now();
    const report = (outcome: CallOutcome): void =>
      this.#onCall({
        chainId: this.#chainId,
        endpoint: this.name,
        method,
        outcome,
        ms: performance.now() - startedAt,
      });
    try {
      const value = await this.#request(question, signal);
      report('ok');
      return value;
    } catch (error) {
      if (error instanceof EndpointError) report(error.outcome);
      throw error;
    }
  }

  /** An error of this endpoint about the content of its answers. */
  error(outcome: Exclude<CallOutcome, 'ok'>, message: string): EndpointError {
    return new EndpointError(outcome, `${this.name}: ${message}`);
  }

  async close(): Promise<void> {
    await this.#transport.close();
    this.#thread.close();
  }

  async #request<Name extends ResultName>(
    { method, params, result }: RpcCall<Name>,
    signal: AbortSignal | undefined,
  ): Promise<Result<Name>> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: CALL_ID, method, params });
    const answer = await this.#transport.send({
      url: this.#url,
      headers: this.#headers,
      body,
      maxBodyBytes: LIMITS.rpc.bytes,
      signal,
    });
    switch (answer.kind) {
      case 'timeout':
        throw this.error('timeout', `${method}: no answer within ${this.#timeoutMs} ms`);
      case 'lost':
        throw this.error('error', `${method}: no connection (${this.#lostReason(answer.cause)})`);
      case 'garbled':
        throw this.error('error', `${method}: found something else than HTTP (${answer.reason})`);
      case 'answer':
        break;
    }
    const { httpStatus, text, cut, retryAfterMs } = answer;
    if (httpStatus === 429) {
      this.#pace.pause(retryAfterMs ?? LIMIT_PAUSE_MS);
      throw this.error('rate-limited', `${method}: too many requests (HTTP 429)`);
    }
    if (httpStatus === 503 && retryAfterMs !== null) this.#pace.pause(retryAfterMs);
    if (cut === 'timeout') {
      throw this.error('timeout', `${method}: no whole answer within ${this.#timeoutMs} ms`);
    }
    if (cut !== null) throw this.error('error', `${method}: the answer is ${cut}`);
    const read = await this.#read(method, { text, result });
    switch (read.kind) {
      case 'none': {
        const found = `HTTP ${httpStatus} and ${this.#quote(text) || 'nothing'}`;
        throw this.error('error', `${method}: found ${found}, expected an answer of JSON-RPC`);
      }
      case 'error':
        throw this.#refusal(method, read, retryAfterMs);
      case 'result':
      case 'unreadable':
        break;
    }
    if (httpStatus !== 200) {
      throw this.error('error', `${method}: found HTTP ${httpStatus} with a result, expected HTTP 200`);
    }
    if (read.kind === 'result') return read.value as Result<Name>;
    const { where, expected } = read;
    throw this.error('error', `${method}: ${where} cannot be read, expected ${expected}`);
  }

  async #read(method: string, task: { text: string; result: ResultName }): Promise<RpcAnswer> {
    if (task.text.length < THREAD_FROM_CHARS) return work(task);
    try {
      return await this.#thread.run(task);
    } catch (error) {
      if (error instanceof ThreadError) throw this.error('error', `${method}: the answer ${error.message}`);
      throw error;
    }
  }

  #refusal(
    method: string,
    { code, message }: { code: number; message: string },
    retryAfterMs: number | null,
  ): EndpointError {
    const reported = `${this.name}: ${method}: error ${code}, ${this.#quote(message)}`;
    if (!LIMIT_CODES.has(code)) return new EndpointError('error', reported, code);
    this.#pace.pause(retryAfterMs ?? LIMIT_PAUSE_MS);
    return new EndpointError('rate-limited', reported, code);
  }

  /** Code of a failure below HTTP: the message would name the host. */
  #lostReason(cause: Error): string {
    const inner = cause instanceof AggregateError ? cause.errors[0] : cause;
    const code = inner instanceof Error && 'code' in inner ? String(inner.code) : 'failed';
    return /^[A-Z0-9_]{2,60}$/.test(code) ? code : 'failed';
  }

  /** The endpoint's message, shortened, on one line and without secrets. */
  #quote(text: string): string {
    const printable = text
      .slice(0, 4_096)
      .replaceAll(/[\p{C}\p{Z}\s]+/gu, ' ')
      .trim();
    return [...this.#redact(printable, { cut: true })].slice(0, LONGEST_QUOTE).join('');
  }
}

/** The part of an endpoint's answer about a transaction that it has. */
export type TxFacts = Pick<
  Found,
  'block' | 'isFinal' | 'succeeded' | 'moves' | 'fulfilled' | 'burns' | 'isPartial'
>;

/** Reader of one kind of chain at one endpoint. All methods throw EndpointErrors. */
export interface ChainSource {
  identity(): Promise<string>;
  isSynced(): Promise<boolean>;
  finalHead(): Promise<Block>;
  /** Null when the endpoint does not have the transaction. `head` was final before the request. */
  find(
    txHash: string,
    options: { head: Block; token: string | null; signal?: AbortSignal },
  ): Promise<TxFacts | null>;
}

/** Creates the cache of the blocks that an endpoint has shown. */
export function shownBlocks(): BoundedMap<string, Block> {
  return new BoundedMap({
    ...CACHES.blocks,
    bytesOf: (key, { number, hash }) => bytesOfTexts(key, number, hash),
  });
}

/** A value that is requested again after a while. Callers meanwhile get the same value, or wait for the same answer. */
export class Refreshed<T> {
  readonly #read: () => Promise<T>;
  readonly #forMs: number;
  #pending: Promise<T> | null = null;
  #cached: { value: T; requestedAtMs: number } | null = null;

  constructor({ read, forMs }: { read: () => Promise<T>; forMs: number }) {
    this.#read = read;
    this.#forMs = forMs;
  }

  async get(): Promise<T> {
    const cached = this.#cached;
    if (cached !== null && performance.now() - cached.requestedAtMs < this.#forMs) return cached.value;
    this.#pending ??= this.#refresh();
    return this.#pending;
  }

  async #refresh(): Promise<T> {
    const requestedAtMs = performance.now();
    try {
      const value = await this.#read();
      this.#cached = { value, requestedAtMs };
      return value;
    } finally {
      this.#pending = null;
    }
  }
}
