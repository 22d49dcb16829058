import { z } from 'zod';
import { canonicalJson, type JsonObject } from '../domain/json.ts';
import {
  fingerprintOf,
  type ImportedQuote,
  type ImportedState,
  promisedBy,
} from '../domain/quotes/promised.ts';
import { asSubjectId, intentId, type SubjectId, subjectKind } from '../domain/subjects/subject.ts';
import { chunks } from './chunks.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { JSON_TEXT, type OnForeign, readStored } from './stored.ts';

/** So many promises are written at a time. */
const CHUNK = 1_000;

/** The intent that a quote becomes. */
function intentOf({ raw: { intentHash } }: ImportedQuote): SubjectId | null {
  return typeof intentHash === 'string' && intentHash !== '' ? intentId(intentHash) : null;
}

const QUOTE_TEXT = JSON_TEXT.pipe(z.record(z.string(), z.json()));

/** The imported quotes, and what was found out about their signatures; the same for all processes. */
export class ImportedQuotes {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #onForeign: OnForeign;
  /** What this process synced last: an entry of another shape is written anew from it. */
  #own: readonly ImportedQuote[] = [];

  constructor(redis: RedisClient, keys: Keys, onForeign: OnForeign = () => undefined) {
    this.#redis = redis;
    this.#keys = keys;
    this.#onForeign = onForeign;
  }

  /** Makes what is stored what a config hands over, beside what is tracked by itself. Returns the quotes whose signature is to be verified. */
  async sync(
    quotes: readonly ImportedQuote[],
    suspended: ReadonlySet<string> = new Set(),
  ): Promise<SubjectId[]> {
    this.adopt(quotes);
    const { importedQuotes, verdicts } = this.#keys;
    const wanted = new Set<string>(quotes.map(({ subject }) => subject));
    const others = (await this.#redis.hkeys(importedQuotes)).filter((subject) => !wanted.has(subject));
    const tracked = (await this.#tracked(others)).union(suspended.intersection(new Set(others)));
    const unwanted = others.filter((subject) => !tracked.has(subject));
    if (unwanted.length > 0) {
      await this.#redis.hdel(importedQuotes, ...unwanted);
      await this.#redis.hdel(verdicts, ...unwanted);
    }
    for (const { subject, raw } of quotes) {
      await this.#redis.hset(importedQuotes, subject, canonicalJson(raw));
    }
    const kept = [...quotes.map(({ subject }) => subject), ...[...tracked].map(asSubjectId)];
    const before = await this.#states(kept);
    const hasForgotten = await this.#forgetPromised(validOf(before));
    // What another process found valid meanwhile may have been removed with the others.
    const states = hasForgotten ? await this.#states(kept) : before;
    await this.#writePromised(validOf(states));
    return states.flatMap((state) => (state?.verdict === null ? [state.quote.subject] : []));
  }

  #states(subjects: readonly SubjectId[]): Promise<(ImportedState | null)[]> {
    return Promise.all(subjects.map((subject) => this.of(subject)));
  }

  /** Takes what a config hands over for what this process's does, without writing it. */
  adopt(quotes: readonly ImportedQuote[]): void {
    this.#own = quotes;
  }

  /** True when this process's config hands a quote over. */
  isOwn(subject: string): boolean {
    return this.#own.some((quote) => quote.subject === subject);
  }

  /** Those of some quotes that are tracked by themselves, or were of late. */
  async #tracked(subjects: readonly string[]): Promise<Set<string>> {
    if (subjects.length === 0) return new Set();
    const stored = await this.#redis.hmget(this.#keys.tracked, ...subjects);
    return new Set(subjects.filter((_, index) => (stored[index] ?? null) !== null));
  }

  /** What was imported of a subject; null for all that are known only by their id. */
  async of(subject: SubjectId): Promise<ImportedState | null> {
    if (subjectKind(subject) !== 'quote') return null;
    const { importedQuotes, verdicts } = this.#keys;
    const [text, verdict] = await Promise.all([
      this.#redis.hget(importedQuotes, subject),
      this.#redis.hget(verdicts, subject),
    ]);
    return text === null ? null : this.read(subject, text, verdict);
  }

  /** What was imported of a quote, from its stored texts; null for one of another shape that this config does not have. */
  async read(subject: SubjectId, text: string, verdict: string | null): Promise<ImportedState | null> {
    const { importedQuotes } = this.#keys;
    const where = `${importedQuotes} ${subject}`;
    const raw =
      readStored(QUOTE_TEXT, text, { what: 'quote', where, onForeign: this.#onForeign }) ??
      (await this.#rewrite(subject));
    if (raw === null) return null;
    const quote = { subject, raw };
    const [word, fingerprint] = verdict?.split(':') ?? [];
    const decided = (word === 'valid' || word === 'invalid') && fingerprint === fingerprintOf(quote);
    return { quote, verdict: decided ? word : null };
  }

  /** Writes an entry of another shape anew, if this process hands the quote over. */
  async #rewrite(subject: SubjectId): Promise<JsonObject | null> {
    const own = this.#own.find((quote) => quote.subject === subject);
    if (own === undefined) return null;
    await this.#redis.hset(this.#keys.importedQuotes, subject, canonicalJson(own.raw));
    return own.raw;
  }

  /**
   * Keeps what was found out about an imported quote, with what a valid one promises: a sync that removes what it
   * promised before this finds it valid then.
   */
  async decide(quote: ImportedQuote, verdict: 'valid' | 'invalid'): Promise<void> {
    const { verdicts, promised } = this.#keys;
    const noted = this.#redis.multi().hset(verdicts, quote.subject, `${verdict}:${fingerprintOf(quote)}`);
    const promises = verdict === 'valid' ? promisesOf([quote]) : {};
    await (Object.keys(promises).length === 0 ? noted : noted.hset(promised, promises)).exec();
  }

  /** Keeps what a valid quote promises of the intent that it becomes. Returns that; null where it names none. */
  async promise(quote: ImportedQuote): Promise<SubjectId | null> {
    const intent = intentOf(quote);
    if (intent !== null) await this.#redis.hset(this.#keys.promised, promisesOf([quote]));
    return intent;
  }

  /** Removes what is known of the intents of all other quotes: of those nothing is believed. False where there is none. */
  async #forgetPromised(valid: readonly ImportedQuote[]): Promise<boolean> {
    const { promised } = this.#keys;
    const wanted = promisesOf(valid);
    const unwanted = (await this.#redis.hkeys(promised)).filter((intent) => !Object.hasOwn(wanted, intent));
    if (unwanted.length > 0) await this.#redis.hdel(promised, ...unwanted);
    return unwanted.length > 0;
  }

  /** Makes what is known of the intents of valid quotes what these promise. */
  async #writePromised(valid: readonly ImportedQuote[]): Promise<void> {
    const entries = Object.entries(promisesOf(valid));
    for (const chunk of chunks(entries, CHUNK)) {
      await this.#redis.hset(this.#keys.promised, Object.fromEntries(chunk));
    }
  }
}

/** What quotes promise of the intents that they become: intent -> text. */
function promisesOf(quotes: readonly ImportedQuote[]): Record<string, string> {
  return Object.fromEntries(
    quotes.flatMap((quote) => {
      const intent = intentOf(quote);
      return intent === null ? [] : [[intent, canonicalJson(promisedBy(quote))] as const];
    }),
  );
}

/** Those whose signature holds. */
function validOf(states: readonly (ImportedState | null)[]): ImportedQuote[] {
  return states.flatMap((state) => (state?.verdict === 'valid' ? [state.quote] : []));
}
