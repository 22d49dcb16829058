import type { Secret } from '../config/secret.ts';
import { type Answer, type Asking, ask, type Outcome, type Question } from './ask.ts';
import { DISCOVERY_EXPECTED, type Discovery, readDiscovery } from './discovery.ts';
import { carriesKey, checkTemplate, endpointUrl, fillPath, parseBaseUrl } from './endpoint.ts';
import { excerptWithout } from './excerpt.ts';
import {
  GATEWAY_JOB_EXPECTED,
  type GatewayJob,
  readGatewayJob,
  readVault,
  VAULT_EXPECTED,
  type VaultRecord,
} from './gateway-record.ts';
import { readStatusPage, STATUS_PAGE_EXPECTED, type StatusPage } from './status-page.ts';
import { type StatusQuery, statusPath } from './status-query.ts';
import { Transport } from './transport.ts';

const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** Where the upstream is and how it is asked. */
export type UpstreamClientOptions = {
  /** http or https; a path in it is kept. */
  baseUrl: string;
  /** Sent to the keyed v1 endpoints only. */
  apiKey: Secret;
  /** For connecting, headers and body together. */
  timeoutMs: number;
  /** Default: 4 MiB. */
  maxBodyBytes?: number;
  /** Such as `/deposit-gateway/v2/depositAddresses/{vaultAddress}`. */
  vaultPath: string;
  /** Name of the query parameter that carries a vault's source chain id. */
  vaultChainParam: string;
  /** Such as `/deposit-gateway/v1/gasless/jobs/{id}`. */
  gaslessJobPath: string;
  /** Called once per answered or failed request, not for one that the caller aborted. */
  onAnswer?: (answer: Outcome) => void;
};

/** Options of one request. */
export type RequestOptions = { signal?: AbortSignal };

/**
 * The upstream's read endpoints over kept-alive connections, one request per call and no retries.
 * Every method throws UpstreamFailure when no usable answer came, and the signal's reason when the caller aborted.
 */
export class UpstreamClient {
  readonly #options: UpstreamClientOptions;
  readonly #base: URL;
  readonly #transport: Transport;
  readonly #asking: Asking;

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
      maxBodyBytes: options.maxBodyBytes ?? MAX_BODY_BYTES,
    });
    this.#asking = {
      transport: this.#transport,
      excerpt: excerptWithout(options.apiKey),
      onAnswer: options.onAnswer ?? (() => {}),
    };
  }

  /** The records of one exact filter, or a page of a wallet. An unknown id gives a record of status `unknown`. */
  async status(query: StatusQuery, options: RequestOptions = {}): Promise<Answer<StatusPage>> {
    return this.#ask(
      { endpoint: 'status', expected: STATUS_PAGE_EXPECTED, read: readStatusPage, path: statusPath(query) },
      options,
    );
  }

  /** A gasless job of the deposit gateway; `not-found` when the gateway does not know it. */
  async gaslessJob(id: string, options: RequestOptions = {}): Promise<Answer<GatewayJob>> {
    const path = fillPath(this.#options.gaslessJobPath, { name: 'id', value: id });
    return this.#ask(
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
    return this.#ask({ endpoint: 'vault', expected: VAULT_EXPECTED, read: readVault, path }, options);
  }

  /** The chains that can be quoted, as the upstream lists them. */
  async chains(options: RequestOptions = {}): Promise<Answer<Discovery>> {
    return this.#ask(
      { endpoint: 'chains', expected: DISCOVERY_EXPECTED, read: readDiscovery, path: '/v1/chains' },
      options,
    );
  }

  /** The tokens that can be quoted, as the upstream lists them. */
  async tokens(options: RequestOptions = {}): Promise<Answer<Discovery>> {
    return this.#ask(
      { endpoint: 'tokens', expected: DISCOVERY_EXPECTED, read: readDiscovery, path: '/v1/tokens' },
      options,
    );
  }

  /** Waits for requests under way, each at most its timeout, and ends the connections. */
  async close(): Promise<void> {
    await this.#transport.close();
  }

  #ask<T>(
    question: Omit<Question<T>, 'request'> & { path: string },
    options: RequestOptions,
  ): Promise<Answer<T>> {
    const { path, ...rest } = question;
    const url = endpointUrl(this.#base, path);
    const headers: Record<string, string> = { accept: 'application/json', 'accept-encoding': 'identity' };
    if (carriesKey(this.#base, url)) headers['x-api-key'] = this.#options.apiKey.reveal();
    return ask(this.#asking, { ...rest, request: { url, headers, signal: options.signal } });
  }
}
