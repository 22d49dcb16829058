import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import { BoundedMap, bytesOfTexts, CACHES } from '../../domain/caches.ts';
import { unseenSnapshot } from '../../domain/changes/next-snapshot.ts';
import { type ImportedQuote, type ImportedState, signatureInvalid } from '../../domain/quotes/promised.ts';
import { isUndecided, type QuoteVerdict } from '../../domain/quotes/quote-signature.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import type { Signals } from '../../signals.ts';
import { NOTHING_OBSERVED } from '../../store/observed.ts';
import type { PollStart } from '../../store/poll-start.ts';
import type { QuoteSigners } from '../../upstream/client/quote-signers.ts';
import { commitFlagged } from './commit-flagged.ts';
import type { Learning } from './learning.ts';
import type { PollStores } from './poll-context.ts';
import { type Adapter, AT_ONCE, failed, type Polled } from './poll-ends.ts';
import type { PollFailure } from './poll-failures.ts';

type VerificationDeps = {
  signers: QuoteSigners;
  stores: PollStores;
  learning: Learning;
  signals: Signals;
  log: Logger;
};

/** Wait after a failed read of the chains: the budget is for the polls. */
const FAILED_RETRY_MS = 30_000;

/** Wait of an undecided quote; and, under an unproven name, the least time between two of them: the budget is for the polls. */
export const UNDECIDED_RETRY_MS = 60_000;
const UNPROVEN_EVERY_MS = 5_000;

/**
 * Verifies the imported quotes, each once per content. The result is stored: a later rotation of the signer states nothing
 * about a quote that was valid. An undecided quote is tried again, without an event.
 */
export class QuoteVerification implements Adapter {
  readonly #deps: VerificationDeps;
  #pausedUntilMs = 0;
  #unprovenUntilMs = 0;
  readonly #undecidedUntilMs = new BoundedMap<SubjectId, number>({
    ...CACHES.undecidedQuotes,
    bytesOf: (subject) => bytesOfTexts(subject),
  });

  constructor(deps: VerificationDeps) {
    this.#deps = deps;
  }

  isDue(imported: ImportedState | null): boolean {
    if (imported === null) return false;
    if (imported.verdict !== null) return false;
    const undecidedUntilMs = this.#undecidedUntilMs.peek(imported.quote.subject);
    const againMs = undecidedUntilMs === undefined ? 0 : Math.max(undecidedUntilMs, this.#unprovenUntilMs);
    return performance.now() >= Math.max(this.#pausedUntilMs, againMs);
  }

  /** Returns false: an imported quote is verified also where tracking is over. */
  async isOver(): Promise<boolean> {
    return false;
  }

  async poll(start: PollStart, signal: AbortSignal): Promise<Polled> {
    if (start.imported !== null) await this.#verify(start.imported.quote, start, signal);
    // The request of this slot may be made, and the known state has changed: the quote itself is requested with the next.
    const next = { ...AT_ONCE, alarmMs: 0 };
    return { end: 'next', next, observed: NOTHING_OBSERVED, outcome: 'verified' };
  }

  async failed(_start: PollStart, failure: PollFailure): Promise<Polled> {
    return failed(failure);
  }

  /** Verifies a quote, with the one request that a poll may make. Throws UpstreamFailure, or the signal's reason. */
  async #verify(quote: ImportedQuote, start: PollStart, signal: AbortSignal): Promise<void> {
    const { signers } = this.#deps;
    const cached = await signers.cached(quote.raw);
    if (cached !== null) return this.#take(quote, cached, start);
    let verdict: QuoteVerdict;
    try {
      verdict = await signers.verify(quote.raw, { signal });
    } catch (error) {
      if (!signal.aborted) this.#pausedUntilMs = performance.now() + FAILED_RETRY_MS;
      throw error;
    }
    await this.#take(quote, verdict, start);
  }

  async #take(quote: ImportedQuote, verdict: QuoteVerdict, start: PollStart): Promise<void> {
    const {
      stores: { importedQuotes },
      log,
    } = this.#deps;
    const { subject } = quote;
    if (!verdict.valid && isUndecided(verdict)) {
      this.#undecidedUntilMs.set(subject, performance.now() + UNDECIDED_RETRY_MS);
      if (verdict.part === 'quoteDomain') this.#unprovenUntilMs = performance.now() + UNPROVEN_EVERY_MS;
      log.warn({ subject, reason: verdict.reason, nextInMs: UNDECIDED_RETRY_MS }, 'quote.not_verified');
      return;
    }
    // The name is proven: all that wait for it are decided with their next polls.
    const isProof = verdict.valid || (verdict.part === 'signature' && verdict.recovered !== null);
    if (isProof) this.#undecidedUntilMs.clear();
    else this.#undecidedUntilMs.delete(subject);
    if (!verdict.valid && !(await this.#report(quote, verdict, start))) return;
    if (verdict.valid) await this.#compareAgain(await importedQuotes.promise(quote));
    await importedQuotes.decide(quote, verdict.valid ? 'valid' : 'invalid');
    if (verdict.valid) log.info({ subject, signer: verdict.signer }, 'quote.verified');
  }

  /** Polls a transfer again to compare it with its quote's promise: it was known before its quote was, or has ended. */
  async #compareAgain(intent: SubjectId | null): Promise<void> {
    if (intent === null) return;
    const { claims } = await this.#deps.stores.subjects.peek(intent);
    // Also one without a snapshot: a poll of it may be under way.
    if (claims.length > 0) await this.#deps.stores.plan.pollSoon([intent]);
  }

  /** Makes the event, unless it was made. False when another process was faster: then the next poll finds its result. */
  async #report(
    quote: ImportedQuote,
    flaw: Extract<QuoteVerdict, { valid: false }>,
    { snapshot, claims, nowMs }: PollStart,
  ): Promise<boolean> {
    const { subject } = quote;
    const present = snapshot ?? unseenSnapshot(nowMs);
    const event = signatureInvalid(quote, flaw, present);
    if (present.flags.includes(event.flag)) return true;
    const input = { subject, snapshot: present, claims, promised: null };
    const committed = await commitFlagged(this.#deps, input, { event, claimKeys: null, nowMs });
    if (committed === null) return false;
    const { part, reason, recovered } = flaw;
    this.#deps.log.error({ subject, part, reason, recovered }, 'quote.signature_invalid');
    return true;
  }
}
