import type { Secret } from '../../secret.ts';
import { excerptWithout, Transport } from '../http/transport.ts';
import {
  type ExactInRequest,
  exactInSchema,
  OPEN_QUOTES_EXPECTED,
  type OpenQuotes,
  readOpenQuotes,
} from '../wire/open-quote.ts';
import { OPEN_STATUS_EXPECTED, type OpenStatus, readOpenStatus } from '../wire/open-status.ts';
import { payloadOf } from '../wire/wire.ts';
import type { RequestOptions, UpstreamCall } from './client.ts';
import { endpointUrl, parseBaseUrl } from './endpoint.ts';
import { type Answer, listThread, type Outcome, type RequestContext, send } from './send-request.ts';

/** Timeout of the open quoting service, which collects its solvers' quotes before it answers. */
export const OPEN_QUOTES_TIMEOUT_MS = 30_000;

/** Options of the open quoting service's client. */
export type OpenQuotesClientOptions = {
  quotesUrl: string;
  /** For connecting, headers and body together. */
  timeoutMs: number;
  /** URL of the proxy; absent or `null` for none. */
  proxy?: Secret | null;
  /** Called once per answered or failed request, not for one that the caller aborted. */
  onAnswer?: (answer: Outcome) => void;
};

/**
 * Client of the open quoting service over keep-alive connections, one request per call, no retries, never a key.
 * Every method throws UpstreamFailure without a usable answer, and the signal's reason when the caller aborted.
 */
export class OpenQuotesClient {
  readonly #base: URL;
  readonly #transport: Transport;
  readonly #requestContext: RequestContext;

  /** Throws a TypeError for a URL that can never work. */
  constructor(options: OpenQuotesClientOptions) {
    this.#base = parseBaseUrl(options.quotesUrl);
    this.#transport = new Transport({
      timeoutMs: options.timeoutMs,
      proxy: options.proxy ?? null,
    });
    this.#requestContext = {
      transport: this.#transport,
      lists: listThread(),
      excerpt: excerptWithout({ apiKey: null, proxy: options.proxy ?? null }),
      onAnswer: options.onAnswer ?? (() => {}),
    };
  }

  /** Each solver's quote for an exact input. Throws a RangeError for a request that would be refused. */
  async exactIn(request: ExactInRequest, options: RequestOptions = {}): Promise<Answer<OpenQuotes>> {
    const question = {
      endpoint: 'open-quotes',
      expected: OPEN_QUOTES_EXPECTED,
      read: readOpenQuotes,
    } as const;
    const body = payloadOf(exactInSchema, request);
    return this.#post({ ...question, path: '/api/v3/quotes/exactIn', body }, options);
  }

  /** The status of an intent by its hash; `not-found` when the service does not know it. */
  async intentStatus(intentHash: string, options: RequestOptions = {}): Promise<Answer<OpenStatus>> {
    const question = {
      endpoint: 'open-status',
      expected: OPEN_STATUS_EXPECTED,
      read: readOpenStatus,
    } as const;
    const body = JSON.stringify({ intentHash });
    return this.#post({ ...question, path: '/api/v3/intents/intentStatus', body }, options);
  }

  async #post<T>(
    { path, body, ...rest }: UpstreamCall<T>,
    { signal, onBody }: RequestOptions,
  ): Promise<Answer<T>> {
    const headers = {
      accept: 'application/json',
      'accept-encoding': 'identity',
      'content-type': 'application/json',
    };
    const request = {
      url: endpointUrl(this.#base, path),
      headers,
      signal,
      ...(body === undefined ? {} : { body }),
    };
    return send(this.#requestContext, { ...rest, takesKey: false, request, onBody });
  }

  /** Waits for requests under way, each at most its timeout, and ends the connections. */
  async close(): Promise<void> {
    await this.#transport.close();
    this.#requestContext.lists.close();
  }
}
