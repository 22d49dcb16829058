import type { GatewayConfig } from '../../config/config.ts';
import type { JsonValue } from '../../domain/json.ts';
import type { Secret } from '../../secret.ts';
import {
  CHAINS_EXPECTED,
  type ChainEntry,
  type ParsedList,
  readChains,
  readTokens,
  TOKENS_EXPECTED,
  type TokenEntry,
} from '../wire/chain-list.ts';
import {
  GATEWAY_JOB_EXPECTED,
  type GatewayJob,
  readGatewayJob,
  readVault,
  VAULT_EXPECTED,
  type VaultRecord,
} from '../wire/gateway-record.ts';
import {
  QUOTE_EXPECTED,
  type QuoteAnswer,
  type QuoteRequest,
  quoteRequestSchema,
  readQuoteAnswer,
} from '../wire/quote.ts';
import {
  type EarlierContent,
  readStatusPage,
  STATUS_PAGE_EXPECTED,
  type StatusPage,
  type StatusQuery,
  statusPath,
} from '../wire/status-page.ts';
import { payloadOf } from '../wire/wire.ts';
import { carriesKey, checkTemplate, endpointUrl, fillPath, parseBaseUrl } from './endpoint.ts';
import { readPageText } from './read-list.ts';
import {
  type Answer,
  KEY_HEADER,
  type Question,
  type RequestContext,
  type RequesterOptions,
  requestContext,
  send,
} from './send-request.ts';

/** Options of the upstream's client. */
export type UpstreamClientOptions = RequesterOptions & {
  /** http or https, maybe with a path. */
  baseUrl: string;
  /** Sent to the v1 endpoints that take it; null for none. */
  apiKey: Secret | null;
  gateway: GatewayConfig;
};

/** A request below the base URL. `body`: JSON, sent by POST. */
export type UpstreamCall<T> = Omit<Question<T>, 'request' | 'takesKey' | 'onBody'> & {
  path: string;
  body?: string;
};

/** Options of one request. `onBody` is called with the body of a success before it is read. */
export type RequestOptions = { signal?: AbortSignal; onBody?: (body: JsonValue) => void };

/**
 * Client of the upstream over keep-alive connections: one request per call, no retries. Every method throws
 * UpstreamFailure without a usable answer, a RangeError for a request that would be refused anyway, and the signal's
 * reason when the caller aborts.
 */
export class UpstreamClient {
  readonly #options: UpstreamClientOptions;
  readonly #base: URL;
  readonly #requestContext: RequestContext;

  /** Throws a TypeError for a base URL, path or key that can never work. */
  constructor(options: UpstreamClientOptions) {
    this.#options = options;
    this.#base = parseBaseUrl(options.baseUrl);
    checkTemplate(options.gateway.vaultPath, 'vaultAddress');
    checkTemplate(options.gateway.jobPath, 'id');
    if (options.apiKey !== null && !/^[\x21-\x7e]+$/.test(options.apiKey.reveal())) {
      throw new TypeError('apiKey: found characters that a header cannot carry, expected printable ASCII');
    }
    this.#requestContext = requestContext(options);
  }

  /** Shortens the upstream's text for the log: printable, bounded, without any part of the key. */
  loggable(words: string, maxChars: number): string {
    return this.#requestContext.excerpt(words, maxChars);
  }

  /**
   * Records of one exact filter, or a page of a wallet; without the results of an `earlier` one. An unknown id gives a record
   * of status `unknown`.
   */
  async status(
    query: StatusQuery,
    { earlier, ...options }: RequestOptions & { earlier?: EarlierContent } = {},
  ): Promise<Answer<StatusPage>> {
    return this.request(
      {
        endpoint: 'status',
        expected: STATUS_PAGE_EXPECTED,
        read: readStatusPage,
        readBody: earlier === undefined ? undefined : (body) => readPageText(body, earlier),
        path: statusPath(query),
      },
      options,
    );
  }

  /** A gasless job of the deposit gateway; `not-found` when the gateway does not know it. */
  async gaslessJob(id: string, options: RequestOptions = {}): Promise<Answer<GatewayJob>> {
    const path = fillPath(this.#options.gateway.jobPath, { name: 'id', value: id });
    return this.request(
      { endpoint: 'gasless-job', expected: GATEWAY_JOB_EXPECTED, read: readGatewayJob, path },
      options,
    );
  }

  /** A deposit vault by its address and the chain on which it is funded; `not-found` when there is none. */
  async vault(
    vault: { address: string; chainId: number },
    options: RequestOptions = {},
  ): Promise<Answer<VaultRecord>> {
    const { vaultPath, chainParam } = this.#options.gateway;
    const filled = fillPath(vaultPath, { name: 'vaultAddress', value: vault.address });
    const query = new URLSearchParams({ [chainParam]: String(vault.chainId) });
    const path = `${filled}${filled.includes('?') ? '&' : '?'}${query}`;
    return this.request({ endpoint: 'vault', expected: VAULT_EXPECTED, read: readVault, path }, options);
  }

  async chains(options: RequestOptions = {}): Promise<Answer<ParsedList<ChainEntry>>> {
    return this.request(
      { endpoint: 'chains', expected: CHAINS_EXPECTED, read: readChains, path: '/v1/chains' },
      options,
    );
  }

  async tokens(options: RequestOptions = {}): Promise<Answer<ParsedList<TokenEntry>>> {
    return this.request(
      { endpoint: 'tokens', expected: TOKENS_EXPECTED, read: readTokens, path: '/v1/tokens' },
      options,
    );
  }

  /** Prices a transfer. The answer is signed; verify it before it is funded. */
  async quote(request: QuoteRequest, options: RequestOptions = {}): Promise<Answer<QuoteAnswer>> {
    const body = payloadOf(quoteRequestSchema, request);
    return this.request(
      { endpoint: 'quotes', expected: QUOTE_EXPECTED, read: readQuoteAnswer, path: '/v1/quotes', body },
      options,
    );
  }

  /** Sends any other request. Only paths of `/v1` carry the key, and none of the deposit gateway. */
  async request<T>(question: UpstreamCall<T>, options: RequestOptions = {}): Promise<Answer<T>> {
    const { path, body, ...rest } = question;
    const url = endpointUrl(this.#base, path);
    const headers: Record<string, string> = { accept: 'application/json', 'accept-encoding': 'identity' };
    const { apiKey, gateway } = this.#options;
    const takesKey = carriesKey(this.#base, url, gateway.prefix);
    if (takesKey && apiKey !== null) headers[KEY_HEADER] = apiKey.reveal();
    if (body !== undefined) headers['content-type'] = 'application/json';
    const request = { url, headers, signal: options.signal, ...(body === undefined ? {} : { body }) };
    return send(this.#requestContext, { ...rest, takesKey, request, onBody: options.onBody });
  }

  /** Waits for requests under way, each at most its timeout, and ends the connections. */
  async close(): Promise<void> {
    await this.#requestContext.transport.close();
    this.#requestContext.lists.close();
  }
}
