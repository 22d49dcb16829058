import type { Secret } from '../../secret.ts';
import { excerptWithout, Transport } from '../http/transport.ts';
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
  type CreateVaultRequest,
  createVaultSchema,
  type Erc3009Payload,
  erc3009Schema,
  type Permit2Payload,
  type Permit3Payload,
  permit2Schema,
  permit3Schema,
  type VaultErc2612Payload,
  type VaultErc3009Payload,
  vaultErc2612Schema,
  vaultErc3009Schema,
} from '../wire/gasless-payload.ts';
import {
  GASLESS_JOB_EXPECTED,
  GATEWAY_JOB_EXPECTED,
  GATEWAY_SUBMIT_EXPECTED,
  type GaslessJob,
  type GatewayJob,
  readGaslessJob,
  readGatewayJob,
  readVault,
  VAULT_EXPECTED,
  type VaultRecord,
} from '../wire/gateway-record.ts';
import { payloadOf } from '../wire/payload.ts';
import {
  QUOTE_EXPECTED,
  type QuoteAnswer,
  type QuoteRequest,
  quoteRequestSchema,
  readQuoteAnswer,
} from '../wire/quote.ts';
import {
  readStatusPage,
  STATUS_PAGE_EXPECTED,
  type StatusPage,
  type StatusQuery,
  statusPath,
} from '../wire/status-page.ts';
import { type Patience, retry } from './again.ts';
import {
  type Answer,
  KEY_HEADER,
  listThread,
  type Outcome,
  type Question,
  type RequestContext,
  send,
} from './ask.ts';
import {
  carriesKey,
  checkTemplate,
  endpointUrl,
  fillPath,
  parseBaseUrl,
  type SubmitEndpoint,
} from './endpoint.ts';

/** Options of the upstream's client. */
export type UpstreamClientOptions = {
  /** http or https, maybe with a path. */
  baseUrl: string;
  /** Sent to the keyed v1 endpoints only. */
  apiKey: Secret;
  /** For connecting, headers and body together. */
  timeoutMs: number;
  /** URL of the proxy; absent or `null` for none. */
  proxy?: Secret | null;
  /** Such as `/deposit-gateway/v2/depositAddresses/{vaultAddress}`. */
  vaultPath: string;
  vaultChainParam: string;
  /** Such as `/deposit-gateway/v1/gasless/jobs/{id}`. */
  gaslessJobPath: string;
  /** Called once per answered or failed request, not for one that the caller aborted. */
  onAnswer?: (answer: Outcome) => void;
};

type UpstreamCall<T> = Omit<Question<T>, 'request'> & { path: string; body?: string };

type Sent = { endpoint: SubmitEndpoint; path: string; body: string };

/** Options of one request. */
export type RequestOptions = { signal?: AbortSignal };

/** Options of a submit: how often the identical bytes are sent before the failure is passed on. */
export type SubmitOptions = RequestOptions & { patience?: Patience };

/**
 * Client of the upstream over keep-alive connections: one request per call. Only a submit is sent again, byte for
 * byte, while its failure advises that (`patience: { attempts: 1, … }` sends it once). Every method throws
 * UpstreamFailure without a usable answer, and a RangeError for a request that would be refused anyway. When the
 * caller aborts, it throws the signal's reason; a submit may have arrived all the same.
 */
export class UpstreamClient {
  readonly #options: UpstreamClientOptions;
  readonly #base: URL;
  readonly #transport: Transport;
  readonly #requestContext: RequestContext;

  /** Throws a TypeError for a base URL, path or key that can never work. */
  constructor(options: UpstreamClientOptions) {
    this.#options = options;
    this.#base = parseBaseUrl(options.baseUrl);
    checkTemplate(options.vaultPath, 'vaultAddress');
    checkTemplate(options.gaslessJobPath, 'id');
    if (!/^[\x21-\x7e]+$/.test(options.apiKey.reveal())) {
      throw new TypeError('apiKey: found characters that a header cannot carry, expected printable ASCII');
    }
    this.#transport = new Transport({
      timeoutMs: options.timeoutMs,
      proxy: options.proxy ?? null,
    });
    this.#requestContext = {
      transport: this.#transport,
      lists: listThread(),
      excerpt: excerptWithout({ apiKey: options.apiKey, proxy: options.proxy ?? null }),
      onAnswer: options.onAnswer ?? (() => {}),
    };
  }

  /** Shortens the upstream's text for the log: printable, bounded, without any part of the key. */
  loggable(words: string, maxChars: number): string {
    return this.#requestContext.excerpt(words, maxChars);
  }

  /** Records of one exact filter, or a page of a wallet. An unknown id gives a record of status `unknown`. */
  async status(query: StatusQuery, options: RequestOptions = {}): Promise<Answer<StatusPage>> {
    return this.#request(
      { endpoint: 'status', expected: STATUS_PAGE_EXPECTED, read: readStatusPage, path: statusPath(query) },
      options,
    );
  }

  /** A gasless job of the deposit gateway; `not-found` when the gateway does not know it. */
  async gaslessJob(id: string, options: RequestOptions = {}): Promise<Answer<GatewayJob>> {
    const path = fillPath(this.#options.gaslessJobPath, { name: 'id', value: id });
    return this.#request(
      { endpoint: 'gasless-job', expected: GATEWAY_JOB_EXPECTED, read: readGatewayJob, path },
      options,
    );
  }

  /** A deposit vault by its address and the chain on which it is funded; `not-found` when there is none. */
  async vault(
    vault: { address: string; chainId: number },
    options: RequestOptions = {},
  ): Promise<Answer<VaultRecord>> {
    const { vaultPath, vaultChainParam } = this.#options;
    const filled = fillPath(vaultPath, { name: 'vaultAddress', value: vault.address });
    const query = new URLSearchParams({ [vaultChainParam]: String(vault.chainId) });
    const path = `${filled}${filled.includes('?') ? '&' : '?'}${query}`;
    return this.#request({ endpoint: 'vault', expected: VAULT_EXPECTED, read: readVault, path }, options);
  }

  async chains(options: RequestOptions = {}): Promise<Answer<ParsedList<ChainEntry>>> {
    return this.#request(
      { endpoint: 'chains', expected: CHAINS_EXPECTED, read: readChains, path: '/v1/chains' },
      options,
    );
  }

  async tokens(options: RequestOptions = {}): Promise<Answer<ParsedList<TokenEntry>>> {
    return this.#request(
      { endpoint: 'tokens', expected: TOKENS_EXPECTED, read: readTokens, path: '/v1/tokens' },
      options,
    );
  }

  /** Prices a transfer. The answer is signed; verify it before it is funded. */
  async quote(request: QuoteRequest, options: RequestOptions = {}): Promise<Answer<QuoteAnswer>> {
    const body = payloadOf(quoteRequestSchema, request);
    return this.#request(
      { endpoint: 'quotes', expected: QUOTE_EXPECTED, read: readQuoteAnswer, path: '/v1/quotes', body },
      options,
    );
  }

  /** Funds a quote by a signed ERC-3009 authorization. `httpStatus` 200 means that the job existed already. */
  async submitErc3009(payload: Erc3009Payload, options: SubmitOptions = {}): Promise<Answer<GaslessJob>> {
    const body = payloadOf(erc3009Schema, payload);
    return this.#submitGasless(
      { endpoint: 'submit-erc-3009', path: '/v1/gasless/submit/erc-3009', body },
      options,
    );
  }

  async submitPermit2(payload: Permit2Payload, options: SubmitOptions = {}): Promise<Answer<GaslessJob>> {
    const body = payloadOf(permit2Schema, payload);
    return this.#submitGasless(
      { endpoint: 'submit-permit2', path: '/v1/gasless/submit/permit2', body },
      options,
    );
  }

  async submitPermit3(payload: Permit3Payload, options: SubmitOptions = {}): Promise<Answer<GaslessJob>> {
    const body = payloadOf(permit3Schema, payload);
    return this.#submitGasless(
      { endpoint: 'submit-permit3', path: '/v1/gasless/submit/permit3', body },
      options,
    );
  }

  /** Creates a quoted deposit vault. An unfunded one costs nothing, so this may be requested again. */
  async createVault(request: CreateVaultRequest, options: RequestOptions = {}): Promise<Answer<VaultRecord>> {
    const path = '/v1/deposit-gateway/deposit-addresses';
    const body = payloadOf(createVaultSchema, request);
    return this.#request(
      { endpoint: 'create-vault', expected: VAULT_EXPECTED, read: readVault, path, body },
      options,
    );
  }

  async submitVaultErc3009(
    payload: VaultErc3009Payload,
    options: SubmitOptions = {},
  ): Promise<Answer<GatewayJob>> {
    const path = '/v1/deposit-gateway/submit/erc-3009';
    const body = payloadOf(vaultErc3009Schema, payload);
    return this.#submitVault({ endpoint: 'vault-submit-erc-3009', path, body }, options);
  }

  async submitVaultErc2612(
    payload: VaultErc2612Payload,
    options: SubmitOptions = {},
  ): Promise<Answer<GatewayJob>> {
    const path = '/v1/deposit-gateway/submit/erc-2612';
    const body = payloadOf(vaultErc2612Schema, payload);
    return this.#submitVault({ endpoint: 'vault-submit-erc-2612', path, body }, options);
  }

  /** Funds a vault by a signed ERC-3009 authorization, at the older path. */
  async transferWithAuthorization(
    payload: VaultErc3009Payload,
    options: SubmitOptions = {},
  ): Promise<Answer<GatewayJob>> {
    const path = '/deposit-gateway/v1/gasless/transferWithAuthorization';
    const body = payloadOf(vaultErc3009Schema, payload);
    return this.#submitVault({ endpoint: 'transfer-with-authorization', path, body }, options);
  }

  /** Waits for requests under way, each at most its timeout, and ends the connections. */
  async close(): Promise<void> {
    await this.#transport.close();
    this.#requestContext.lists.close();
  }

  #submitGasless(sent: Sent, options: SubmitOptions): Promise<Answer<GaslessJob>> {
    return this.#submit({ ...sent, expected: GASLESS_JOB_EXPECTED, read: readGaslessJob }, options);
  }

  #submitVault(sent: Sent, options: SubmitOptions): Promise<Answer<GatewayJob>> {
    return this.#submit({ ...sent, expected: GATEWAY_SUBMIT_EXPECTED, read: readGatewayJob }, options);
  }

  /** The body is one text, so every attempt sends the same bytes. */
  #submit<T>(question: UpstreamCall<T> & { body: string }, options: SubmitOptions): Promise<Answer<T>> {
    return retry(() => this.#request(question, options), options);
  }

  #request<T>(question: UpstreamCall<T>, options: RequestOptions): Promise<Answer<T>> {
    const { path, body, ...rest } = question;
    const url = endpointUrl(this.#base, path);
    const headers: Record<string, string> = { accept: 'application/json', 'accept-encoding': 'identity' };
    if (carriesKey(this.#base, url)) headers[KEY_HEADER] = this.#options.apiKey.reveal();
    if (body !== undefined) headers['content-type'] = 'application/json';
    const request = { url, headers, signal: options.signal, ...(body === undefined ? {} : { body }) };
    return send(this.#requestContext, { ...rest, request });
  }
}
