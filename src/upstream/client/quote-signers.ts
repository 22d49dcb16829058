import { performance } from 'node:perf_hooks';
import type { JsonValue } from '../../domain/json.ts';
import {
  INTERFACE_DOMAIN,
  type ProvableDomain,
  provableDomain,
  type QuoteVerdict,
  readSignedQuote,
  validVerdict,
  verifyQuoteSignature,
} from '../../domain/quotes/quote-signature.ts';
import type { UpstreamClient } from './client.ts';

const FRESH_MS = 600_000;

/** Age below which signers count for a quote that is undecided by its domain. */
const UNPROVEN_TRUSTED_MS = 60_000;

/** Signers by source chain, and the time at which their read began (own clock, ms). */
export type PublishedSigners = { signers: ReadonlyMap<number, string>; readAtMs: number };

export type QuoteSignersOptions = Partial<SharedSigners> & {
  client: { chains: UpstreamClient['chains'] };
  /** Default: 10 minutes. */
  freshMs?: number;
};

/** Options that the verifications of a process share. */
export type SharedSigners = {
  /** Default: that of the interface, proven. */
  domain: ProvableDomain;
  /** Called for a quote that is undecided because its domain is unproven. */
  onUnproven: (reason: string) => Promise<void>;
  /** Signers read by others; null for none. */
  shared: () => PublishedSigners | null;
};

/** Signers of quotes as the chains endpoint publishes them: cached, read again when old or when a quote does not match. */
export class QuoteSigners {
  readonly #client: QuoteSignersOptions['client'];
  readonly #domain: ProvableDomain;
  readonly #onUnproven: (reason: string) => Promise<void>;
  readonly #shared: () => PublishedSigners | null;
  readonly #freshMs: number;
  #own: PublishedSigners | null = null;
  #pendingRead: Promise<void> | null = null;

  constructor(options: QuoteSignersOptions) {
    this.#client = options.client;
    this.#domain = options.domain ?? provableDomain({ ...INTERFACE_DOMAIN, isExplicit: true });
    this.#onUnproven = options.onUnproven ?? (async () => undefined);
    this.#shared = options.shared ?? (() => null);
    this.#freshMs = options.freshMs ?? FRESH_MS;
  }

  /** The newest known signers, read here or by others. */
  get #newest(): PublishedSigners | null {
    const [own, shared] = [this.#own, this.#shared()];
    if (own === null || shared === null) return own ?? shared;
    return shared.readAtMs > own.readAtMs ? shared : own;
  }

  /** Verdict on a quote from known signers alone; null when the chains must be read first. */
  async cached(quote: JsonValue): Promise<QuoteVerdict | null> {
    if ('part' in readSignedQuote(quote)) return verifyQuoteSignature({ quote, quoteSigner: '' });
    if (performance.now() - this.#readAtMs() >= this.#freshMs) return null;
    const { signer } = this.#signerOf(quote);
    const verdict =
      signer === undefined ? null : await validVerdict(quote, { quoteSigner: signer, domain: this.#domain });
    if (verdict !== null) await this.#domain.prove();
    return verdict;
  }

  /**
   * Verifies a quote against its source chain's signer. Signers rotate: only signers read after a quote was given
   * make it invalid. Throws UpstreamFailure when they cannot be read. `trustedForMs`: signers read this shortly
   * before also count, so that a stream of invalid quotes does not read them for each. The signal ends only the wait.
   */
  async verify(
    quote: JsonValue,
    { trustedForMs = 0, signal }: { trustedForMs?: number; signal?: AbortSignal } = {},
  ): Promise<QuoteVerdict> {
    const work = this.#verify(quote, trustedForMs).then(async (verdict) => {
      if (!verdict.valid && verdict.part === 'quoteDomain') await this.#onUnproven(verdict.reason);
      return verdict;
    });
    return signal === undefined ? work : orAborted(work, signal);
  }

  async #verify(quote: JsonValue, trustedForMs: number): Promise<QuoteVerdict> {
    if ('part' in readSignedQuote(quote)) return verifyQuoteSignature({ quote, quoteSigner: '' });
    const givenAtMs = performance.now();
    if (givenAtMs - this.#readAtMs() >= this.#freshMs) await this.#read();
    const verdict = await this.#verifyWithNewest(quote);
    // Under an unproven name all quotes may be undecided: they do not read the chains for each.
    const isUnproven = !verdict.valid && verdict.part === 'quoteDomain';
    const sinceMs = givenAtMs - (isUnproven ? Math.max(trustedForMs, UNPROVEN_TRUSTED_MS) : trustedForMs);
    if (verdict.valid || this.#readAtMs() >= sinceMs) return verdict;
    // A read that another caller began earlier may have missed a rotation, so a second one may be needed.
    while (this.#readAtMs() < sinceMs) await this.#read();
    return this.#verifyWithNewest(quote);
  }

  async #verifyWithNewest(quote: JsonValue): Promise<QuoteVerdict> {
    const { chainId, signer: quoteSigner, signers } = this.#signerOf(quote);
    if (chainId !== null && quoteSigner === undefined) {
      const reason = `the upstream publishes no quoteSigner for chain ${chainId}`;
      return { valid: false, part: 'quoteSigner', reason, recovered: null };
    }
    const otherChains = [...signers].map(([id, signer]) => ({ chainId: id, quoteSigner: signer }));
    const domain = this.#domain;
    const isProven = await domain.isProven();
    const verdict = await verifyQuoteSignature({
      quote,
      quoteSigner: quoteSigner ?? '',
      domain,
      isProven,
      otherChains,
    });
    if (verdict.valid) await domain.prove();
    return verdict;
  }

  #signerOf(quote: JsonValue): {
    chainId: number | null;
    signer: string | undefined;
    signers: ReadonlyMap<number, string>;
  } {
    const signers = this.#newest?.signers ?? new Map<number, string>();
    const read = readSignedQuote(quote);
    const chainId = 'quote' in read ? read.quote.sourceChainId : null;
    return { chainId, signer: chainId === null ? undefined : signers.get(chainId), signers };
  }

  #readAtMs(): number {
    return this.#newest?.readAtMs ?? Number.NEGATIVE_INFINITY;
  }

  /** One read for all concurrent callers. */
  #read(): Promise<void> {
    this.#pendingRead ??= this.#readChains().finally(() => {
      this.#pendingRead = null;
    });
    return this.#pendingRead;
  }

  async #readChains(): Promise<void> {
    const startedMs = performance.now();
    const { entries } = (await this.#client.chains()).value;
    const signers = entries.flatMap(({ chainId, quoteSigner }): [number, string][] =>
      quoteSigner === null ? [] : [[chainId, quoteSigner]],
    );
    this.#own = { signers: new Map(signers), readAtMs: startedMs };
  }
}

/** Waits for shared work, but no longer than until the signal. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const ended = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true, signal: ended.signal });
    if (signal.aborted) reject(signal.reason);
  });
  return Promise.race([work, aborted]).finally(() => ended.abort());
}
