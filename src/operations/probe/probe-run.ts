import { once } from 'node:events';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import type { z } from 'zod';
import type { GatewayConfig, UpstreamConfig } from '../../config/config.ts';
import type { JsonValue } from '../../domain/json.ts';
import type { QuoteDomain } from '../../domain/quotes/quote-signature.ts';
import type { EndpointGroup } from '../../domain/subjects/kinds.ts';
import { type RequestOptions, UpstreamClient } from '../../upstream/client/client.ts';
import { ERROR_CODES, type FailureCode, isAboutKey, UpstreamFailure } from '../../upstream/client/failure.ts';
import { OPEN_QUOTES_TIMEOUT_MS, OpenQuotesClient } from '../../upstream/client/open-quotes-client.ts';
import type { QuoteRequest } from '../../upstream/wire/quote.ts';

/**
 * An endpoint that a probe requests. `schema`: that of its reader; `run` sends its requests. A further endpoint is a further
 * entry of `PROBED`.
 */
export type ProbedEndpoint = {
  title: string;
  schema: z.ZodType;
  endpointGroup: EndpointGroup;
  /** The endpoint takes the API key. */
  takesKey: boolean;
  run: (probe: ProbeRun) => Promise<void>;
};

/** Most requests of one probe. */
export const MOST_REQUESTS = 40;

/** Longest time of one probe. */
const MOST_MS = 300_000;

/** Pause after HTTP 429 without `Retry-After`. */
const PAUSE_MS = 5_000;

/** Subjects and settings of a probe. `slot` resolves when the budget of an endpoint group allows a request. */
export type ProbeInput = {
  upstream: UpstreamConfig;
  intents: readonly string[];
  wallets: readonly string[];
  jobs: readonly string[];
  vaults: readonly { address: string; chainId: number }[];
  /** Request for a price; null for none. */
  quote: QuoteRequest | null;
  /** Names under which the deployment may sign its quotes, beside the configured one. */
  domains: readonly QuoteDomain[];
  slot: (endpointGroup: EndpointGroup, signal: AbortSignal) => Promise<void>;
};

/** The facts of an answer beside its value. */
type Answered = { httpStatus: number; dateMs: number | null };

/** Clients for one request. The open quoting service has none where its URL is not configured. */
type Clients = { upstream: UpstreamClient; openQuotes: OpenQuotesClient | null };

/**
 * One request of a probe. `purpose` is reported; `variant`, the wallet or the parameter, is not. `gateway` replaces the
 * setting.
 */
type ProbeRequest = {
  endpoint: ProbedEndpoint;
  purpose: string;
  variant?: string;
  gateway?: GatewayConfig;
  call: (clients: Clients, options: RequestOptions) => Promise<Answered>;
};

/** A request and its answer. `body`: of a success that is JSON; `isRead`: the daemon's reader accepted it. */
export type Exchange = {
  endpoint: ProbedEndpoint;
  purpose: string;
  variant: string;
  withKey: boolean;
  /** Null without an answer. */
  httpStatus: number | null;
  failure: FailureCode | null;
  /** A code of the interface; null for any other, and for none. */
  problemCode: string | null;
  /** The answer refuses the key, or its absence. */
  isKeyRefused: boolean;
  durationMs: number;
  hasDate: boolean;
  body: JsonValue | undefined;
  isRead: boolean;
};

/** Sends the requests of one probe within its limits, and records the answers. */
export class ProbeRun {
  readonly input: ProbeInput;
  readonly exchanges: Exchange[] = [];
  readonly #ending: AbortSignal;
  /** A slot may wait for Redis, which knows no signal. */
  readonly #ended: Promise<unknown>;
  readonly #openQuotes: OpenQuotesClient | null;
  #omitted = 0;
  /** A request was refused with the key and answered without: the next ones are sent without. */
  #isKeyless = false;
  /** No request before this time (`performance.now`): the upstream requested a pause. */
  #notBeforeMs = 0;

  constructor(input: ProbeInput, { mostMs = MOST_MS }: { mostMs?: number } = {}) {
    this.input = input;
    this.#ending = AbortSignal.timeout(mostMs);
    this.#ended = once(this.#ending, 'abort');
    const { quotesUrl, proxy } = input.upstream;
    this.#openQuotes =
      quotesUrl === null
        ? null
        : new OpenQuotesClient({ quotesUrl, timeoutMs: OPEN_QUOTES_TIMEOUT_MS, proxy });
  }

  /** Number of requests that the limits did not allow. */
  get omitted(): number {
    return this.#omitted;
  }

  /** Sends a request, with the key where there is one and the endpoint takes it. Null where the limits do not allow it. */
  async send(request: ProbeRequest): Promise<Exchange | null> {
    const hasKey = this.input.upstream.apiKey !== null && !this.#isKeyless;
    return this.#send(request, request.endpoint.takesKey && hasKey);
  }

  /** Sends a request with the key, and again without. Returns the answer to the first, else a usable one to the second. */
  async sendBothWays(request: ProbeRequest): Promise<Exchange | null> {
    const first = await this.send(request);
    if (first?.withKey !== true) return first;
    const keyless = await this.#send(request, false);
    if (!first.isKeyRefused || !keyless?.isRead) return first;
    this.#isKeyless = true;
    return keyless;
  }

  async #send(request: ProbeRequest, withKey: boolean): Promise<Exchange | null> {
    const { endpoint, purpose, variant = '', call } = request;
    const { gateway = this.input.upstream.gateway } = request;
    if (this.exchanges.length >= MOST_REQUESTS || !(await this.#awaitSlot(endpoint))) return this.#omit();
    const { apiKey } = this.input.upstream;
    const upstream = new UpstreamClient({
      ...this.input.upstream,
      gateway,
      apiKey: withKey ? apiKey : null,
    });
    const startedMs = performance.now();
    let body: JsonValue | undefined;
    const result = await call(
      { upstream, openQuotes: this.#openQuotes },
      {
        signal: this.#ending,
        onBody: (parsed) => {
          body = parsed;
        },
      },
    )
      .catch((error: unknown) => {
        if (error instanceof UpstreamFailure || this.#ending.aborted) return error;
        throw error;
      })
      .finally(() => upstream.close());
    const durationMs = Math.round(performance.now() - startedMs);
    const sent = { endpoint, purpose, variant, withKey, durationMs, body };
    if (result instanceof UpstreamFailure) {
      if (result.code === 'rate-limited') {
        this.#notBeforeMs = performance.now() + (result.retryAfterMs ?? PAUSE_MS);
      }
      return this.#record({ ...sent, ...failureOf(result), hasDate: false, isRead: false });
    }
    if (!isAnswer(result)) return this.#omit();
    const { httpStatus, dateMs } = result;
    const answered = { httpStatus, failure: null, problemCode: null, isKeyRefused: false };
    return this.#record({ ...sent, ...answered, hasDate: dateMs !== null, isRead: true });
  }

  /** Waits for the budget and for a pause. False where the time of the probe ends before. */
  async #awaitSlot({ endpointGroup }: ProbedEndpoint): Promise<boolean> {
    if (this.#ending.aborted) return false;
    try {
      const pauseMs = this.#notBeforeMs - performance.now();
      if (pauseMs > 0) await wait(pauseMs, undefined, { signal: this.#ending });
      await Promise.race([this.input.slot(endpointGroup, this.#ending), this.#ended]);
      return !this.#ending.aborted;
    } catch (error) {
      if (this.#ending.aborted) return false;
      throw error;
    }
  }

  #record(exchange: Exchange): Exchange {
    this.exchanges.push(exchange);
    return exchange;
  }

  #omit(): null {
    this.#omitted += 1;
    return null;
  }

  async close(): Promise<void> {
    await this.#openQuotes?.close();
  }
}

function isAnswer(result: unknown): result is Answered {
  return typeof result === 'object' && result !== null && 'dateMs' in result;
}

function failureOf(failure: UpstreamFailure): {
  httpStatus: number | null;
  failure: FailureCode;
  problemCode: string | null;
  isKeyRefused: boolean;
} {
  const { code, httpStatus, problemCode } = failure;
  const isListed =
    problemCode !== null && (Object.hasOwn(ERROR_CODES, problemCode) || problemCode === 'not-found');
  return {
    httpStatus,
    failure: code,
    problemCode: isListed ? problemCode : null,
    isKeyRefused: (code === 'unauthorized' || code === 'forbidden') && isAboutKey(failure),
  };
}
