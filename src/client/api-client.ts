import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { LIMITS } from '../domain/limits.ts';
import { BadSettingError, TryAgainError } from '../exit.ts';
import { request as requestByHttp, requestByHttps, STATUS_CODES } from '../network/node-http.ts';
import { API_BASE, type TypedRoute } from '../server/api/route.ts';
import { PROBLEM } from '../server/api/shapes.ts';
import { VERSION } from '../version.ts';
import type { DaemonAddress } from './address.ts';

type Loose<T> = { [K in keyof T]?: T[K] | undefined };

/** A request to a route: the values of its path, its query and its body. */
export type RequestInput<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> = {
  params?: z.input<P>;
  query?: Loose<z.input<Q>>;
  body?: Loose<z.input<B>>;
};

/** An answer. `body`: as parsed; `raw`: as it came, maybe with members that a later version has added. */
export type Reply<T> = { status: number; body: T; raw: unknown };

/** Margin after a route's longest time; and the wait for an answer of the other routes. */
const MARGIN_MS = 10_000;
const ANSWER_MS = 1_000 * LIMITS.daemonAnswer.seconds;

/** A problem answered by a daemon, in its own text. */
export class ProblemReply extends Error {
  override readonly name = 'ProblemReply';
  readonly status: number;

  constructor(status: number, detail: string) {
    super(detail);
    this.status = status;
  }
}

/** Client of a running daemon. Every request and answer has the shapes that the daemon's own table of routes declares. */
export class ApiClient {
  readonly #address: DaemonAddress;

  constructor(address: DaemonAddress) {
    this.#address = address;
  }

  get url(): string {
    return this.#address.url;
  }

  /**
   * Makes a request of a route. Throws a ProblemReply when it is refused, a BadSettingError when the token is, and a
   * TryAgainError when no daemon answers.
   */
  async call<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, T>(
    route: TypedRoute<P, Q, B, T>,
    request: RequestInput<P, Q, B> = {},
  ): Promise<Reply<T>> {
    const signal = AbortSignal.timeout(
      route.timeoutMs === undefined ? ANSWER_MS : route.timeoutMs + MARGIN_MS,
    );
    const response = await this.send(route, request, { signal });
    const raw = await jsonOf(response, this.url);
    const status = statusOf(response);
    const read = route.answers[status]?.schema.safeParse(raw);
    if (read?.success === true) return { status, body: read.data, raw };
    const [issue] = read?.error.issues ?? [];
    const where = issue === undefined ? `status ${status}` : issue.path.join('.');
    throw new Error(
      `found an answer to ${route.method} ${route.path} that cannot be read (${where}), expected one of Intentwatch ${VERSION}`,
    );
  }

  /** Makes a request and returns the unread answer; a redirect is not followed. Throws as `call` does. */
  async send<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, T>(
    { method, path, takesBody }: TypedRoute<P, Q, B, T>,
    { params, query, body }: RequestInput<P, Q, B>,
    { signal, headers = {} }: { signal: AbortSignal; headers?: Readonly<Record<string, string>> },
  ): Promise<IncomingMessage> {
    const { url, token, expected = 'expected one that runs' } = this.#address;
    const target = new URL(`${url}${API_BASE}${pathOf(path, params)}${queryOf(query)}`);
    const request = target.protocol === 'https:' ? requestByHttps() : requestByHttp;
    const sent = request(target, {
      method,
      signal,
      headers: {
        'user-agent': `Intentwatch/${VERSION}`,
        ...(token === null ? {} : { authorization: `Bearer ${token.reveal()}` }),
        ...(takesBody ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
    });
    // After the answer has begun, its reader gets the error.
    sent.on('error', () => undefined);
    sent.end(takesBody ? JSON.stringify(body ?? {}) : undefined);
    const [response]: IncomingMessage[] = await once(sent, 'response').catch((error: unknown) => {
      throw new TryAgainError(`no daemon answers at ${url} (${reasonOf(error)}); ${expected}`);
    });
    if (response === undefined) throw new Error('found a response event without a response');
    const status = statusOf(response);
    if (status >= 200 && status < 300) return response;
    throw await refusalOf(response, { url, hasToken: token !== null });
  }
}

function statusOf({ statusCode = 0 }: IncomingMessage): number {
  return statusCode;
}

function pathOf(path: string, params: unknown): string {
  const given = new Map(Object.entries(Object(params)));
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(given.get(name))));
}

function queryOf(query: object | undefined): string {
  const pairs = Object.entries(query ?? {}).flatMap(([name, value]) =>
    [value].flat().flatMap((one) => (one === undefined ? [] : [[name, String(one)]])),
  );
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
}

async function refusalOf(
  response: IncomingMessage,
  { url, hasToken }: { url: string; hasToken: boolean },
): Promise<Error> {
  const status = statusOf(response);
  const problem = PROBLEM.safeParse(await jsonOf(response, url));
  if (!problem.success) {
    return new TryAgainError(
      `found ${status} ${STATUS_CODES[status] ?? ''} at ${url}, expected an answer of Intentwatch`,
    );
  }
  const { detail } = problem.data;
  if (status === 401) {
    const found = hasToken ? 'a token that is not the daemon’s' : 'none';
    return new BadSettingError(
      `INTENTWATCH_TOKEN: found ${found}, expected a token of the config of the daemon at ${url} (server.token, server.tokens)`,
    );
  }
  if (status === 403) return new BadSettingError(detail);
  if (status === 404 && /expected GET \/metrics/.test(detail) && !detail.includes(API_BASE)) {
    return new BadSettingError(`the daemon at ${url} has no API; expected server.token in its config`);
  }
  return status === 429 || status >= 500 ? new TryAgainError(detail) : new ProblemReply(status, detail);
}

/** JSON of an answer; undefined for any other. Throws when it is too long. */
async function jsonOf(response: IncomingMessage, url: string): Promise<unknown> {
  const { bytes: most } = LIMITS.daemonAnswer;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > most) break;
    }
  } catch {
    return undefined;
  }
  if (bytes > most) {
    throw new Error(
      `found an answer of ${new URL(url).origin} that is too long, expected at most ${most} bytes`,
    );
  }
  return parsed(Buffer.concat(chunks).toString('utf8'));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Reason of a missing answer: an abort hides its cause, and an attempt at several addresses has an error of each. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return 'no answer in time';
  if (error instanceof AggregateError) return reasonOf(error.errors[0]);
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message;
}
