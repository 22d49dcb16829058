import { Agent, type Dispatcher, errors } from 'undici';
import { codeOf } from '../../errors.ts';
import { proxiedConnector } from '../../network/proxy.ts';
import { NameResolver } from '../../network/resolver.ts';
import { redactor, secretsOfUrl } from '../../redact.ts';
import type { Secret } from '../../secret.ts';

/** Lifetime of an idle socket when the upstream states none. */
const KEEPALIVE_MS = 20_000;

/** Timeout of one request, and its proxy (`null`: none). */
export type TransportOptions = { timeoutMs: number; proxy: Secret | null };

/** One request: a POST of these bytes, or a GET without a body. */
export type HttpRequest = {
  url: URL;
  headers: Record<string, string>;
  body?: string;
  /** A longer body is cut, and its connection ended. */
  maxBodyBytes: number;
  signal: AbortSignal | undefined;
};

/** An HTTP answer, its body possibly cut short. */
export type HttpAnswer = {
  kind: 'answer';
  httpStatus: number;
  contentType: string | null;
  location: string | null;
  retryAfterMs: number | null;
  /** Date header, milliseconds since 1970. */
  dateMs: number | null;
  /** The received part of the body; as a text it is decoded when that is first read. */
  bytes: Uint8Array;
  readonly text: string;
  cut: 'timeout' | 'too large' | 'truncated' | null;
};

/** No HTTP answer: `lost` is a connection that failed, `garbled` one that did not speak HTTP. */
export type NoAnswer =
  | { kind: 'timeout' }
  | { kind: 'lost'; cause: Error }
  | { kind: 'garbled'; reason: string };

/** Keep-alive connections to the upstream. Opens none before the first request; `close()` lets requests under way end. */
export class Transport {
  readonly #agent: Agent;
  readonly #names: NameResolver;
  readonly #timeoutMs: number;

  constructor(options: TransportOptions) {
    const { timeoutMs, proxy } = options;
    this.#timeoutMs = timeoutMs;
    this.#names = new NameResolver({ timeoutMs });
    const { lookup } = this.#names;
    this.#agent = new Agent({
      // One socket per request under way: the callers limit their number.
      connections: null,
      keepAliveTimeout: KEEPALIVE_MS,
      pipelining: 1,
      // One socket per request: cutting an answer off then means ending its connection.
      allowH2: false,
      connect:
        proxy === null ? { timeout: timeoutMs, lookup } : proxiedConnector({ proxy, lookup, timeoutMs }),
      // The one timeout below covers these stages too.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /**
   * Sends one request, following no redirect. One timeout covers connecting, headers and body. Throws the caller's
   * abort reason when the caller gave up, and its own error when the transport is closed or the request impossible.
   */
  async send(request: HttpRequest): Promise<HttpAnswer | NoAnswer> {
    const { url, headers, body: sent, maxBodyBytes, signal: caller } = request;
    caller?.throwIfAborted();
    const whole = new AbortController();
    const giveUp = (): void => whole.abort(caller?.reason);
    caller?.addEventListener('abort', giveUp, { once: true });
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      whole.abort();
    }, this.#timeoutMs);
    try {
      const response = await this.#agent.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: sent === undefined ? 'GET' : 'POST',
        headers,
        body: sent ?? null,
        signal: whole.signal,
      });
      const body = await readBody(response.body, maxBodyBytes);
      caller?.throwIfAborted();
      return toAnswer(response, { ...body, timedOut });
    } catch (error) {
      caller?.throwIfAborted();
      if (timedOut) return { kind: 'timeout' };
      return noAnswer(error);
    } finally {
      clearTimeout(timer);
      caller?.removeEventListener('abort', giveUp);
    }
  }

  async close(): Promise<void> {
    await this.#agent.close();
    this.#names.close();
  }
}

const DECODER = new TextDecoder();

type Body = { bytes: Uint8Array; isTooLarge: boolean; error: unknown };

/** Reads until the end, the limit or the first error. Stopping early ends the connection. */
async function readBody(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Body> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  let error: unknown = null;
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxBytes) break;
    }
  } catch (reason) {
    error = reason;
  }
  const whole = chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
  return { bytes: whole.subarray(0, maxBytes), isTooLarge: bytes > maxBytes, error };
}

function toAnswer(response: Dispatcher.ResponseData, body: Body & { timedOut: boolean }): HttpAnswer {
  const header = (name: string): string | null => {
    const value = response.headers[name];
    return (Array.isArray(value) ? value[0] : value)?.trim() ?? null;
  };
  const dateMs = httpDateMs(header('date'));
  const { bytes } = body;
  let text: string | null = null;
  return {
    kind: 'answer',
    httpStatus: response.statusCode,
    contentType: header('content-type'),
    location: header('location'),
    retryAfterMs: retryAfterMs(header('retry-after'), dateMs ?? Date.now()),
    dateMs,
    bytes,
    get text(): string {
      text ??= DECODER.decode(bytes);
      return text;
    },
    cut: cutOf(body),
  };
}

function cutOf({ isTooLarge, error, timedOut }: Body & { timedOut: boolean }): HttpAnswer['cut'] {
  if (isTooLarge) return 'too large';
  if (error === null) return null;
  return timedOut ? 'timeout' : 'truncated';
}

/** The system has no more files or memory for connections of this process. */
const OWN_LIMITS: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL']);

function noAnswer(error: unknown): NoAnswer {
  if (error instanceof errors.ConnectTimeoutError) return { kind: 'timeout' };
  // These errors carry received bytes, which may echo the key: only their code is passed on.
  if (error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError) {
    return { kind: 'garbled', reason: error.code };
  }
  // Our own mistakes and limits, not the upstream's.
  if (
    OWN_LIMITS.has(codeOf(error) ?? '') ||
    error instanceof errors.InvalidArgumentError ||
    error instanceof errors.ClientClosedError ||
    error instanceof errors.ClientDestroyedError
  ) {
    throw error;
  }
  return { kind: 'lost', cause: error instanceof Error ? error : new Error(String(error)) };
}

/** Enough text for the longest excerpt, however much white space it shrinks by. */
const SCAN_CHARS = 4096;

/** Turns the upstream's text into printable text of limited length, without the API key. */
export type Excerpt = (text: string, maxChars: number) => string;

/** Makes excerpts of texts that may echo the key or the proxy's login, in any spelling or cut off in its middle. */
export function excerptWithout({ apiKey, proxy }: { apiKey: Secret | null; proxy: Secret | null }): Excerpt {
  const redact = redactor([
    ...(apiKey === null ? [] : [apiKey.reveal()]),
    ...(proxy === null ? [] : secretsOfUrl(new URL(proxy.reveal()))),
  ]);
  return (text, maxChars) => {
    const printable = text
      .slice(0, SCAN_CHARS)
      .replace(/[\p{C}\p{Z}\s]+/gu, ' ')
      .trim();
    return [...redact(printable, { cut: true })].slice(0, maxChars).join('');
  };
}

const MAX_RETRY_AFTER_MS = 3_600_000;

/** An HTTP date in milliseconds since 1970; null for anything else. */
function httpDateMs(text: string | null): number | null {
  // Date.parse alone also accepts "5" and local dates; every form of an HTTP date starts with the day's name.
  if (text === null || !/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? /.test(text)) return null;
  // The oldest of the three forms (asctime) names no zone and means GMT.
  const ms = Date.parse(/(GMT|UTC)$/.test(text) ? text : `${text} GMT`);
  return Number.isNaN(ms) ? null : ms;
}

/** A Retry-After header in ms, at most an hour; null when absent or unreadable. `nowMs`: time of the answer, best by its `Date`. */
function retryAfterMs(text: string | null, nowMs: number): number | null {
  if (text === null) return null;
  const ms = /^\d+(\.\d+)?$/.test(text) ? Math.ceil(Number(text) * 1000) : untilMs(text, nowMs);
  return ms === null ? null : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}

function untilMs(text: string, nowMs: number): number | null {
  const atMs = httpDateMs(text);
  return atMs === null ? null : atMs - nowMs;
}
