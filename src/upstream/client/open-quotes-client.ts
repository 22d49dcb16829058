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
import {
  type Answer,
  type RequestContext,
  type RequesterOptions,
  requestContext,
  send,
} from './send-request.ts';

/** Timeout of the open quoting service, which collects its solvers' quotes before it answers. */
export const OPEN_QUOTES_TIMEOUT_MS = 30_000;

/** Options of the open quoting service's client. */
export type OpenQuotesClientOptions = RequesterOptions & { quotesUrl: string };

/**
 * Client of the open quoting service over keep-alive connections, one request per call, no retries, never a key.
 * Every method throws UpstreamFailure without a usable answer, and the signal's reason when the caller aborted.
 */
export class OpenQuotesClient {
  readonly #base: URL;
  readonly #requestContext: RequestContext;

  /** Throws a TypeError for a URL that can never work. */
  constructor(options: OpenQuotesClientOptions) {
    this.#base = parseBaseUrl(options.quotesUrl);
    this.#requestContext = requestContext({ ...options, apiKey: null });
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
    { path, body, ...rest }: UpstreamCall<T> & { body: string },
    { signal, onBody }: RequestOptions,
  ): Promise<Answer<T>> {
    const headers = {
      accept: 'application/json',
      'accept-encoding': 'identity',
      'content-type': 'application/json',
    };
    const request = { url: endpointUrl(this.#base, path), headers, signal, body };
    return send(this.#requestContext, { ...rest, takesKey: false, request, onBody });
  }

  /** Waits for requests under way, each at most its timeout, and ends the connections. */
  async close(): Promise<void> {
    await this.#requestContext.transport.close();
    this.#requestContext.lists.close();
  }
}
