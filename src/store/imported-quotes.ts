import { hash } from 'node:crypto';
import type { ChainableCommander } from 'ioredis';
import { z } from 'zod';
import { canonicalJson, type JsonObject } from '../domain/json.ts';
import {
  fingerprintOf,
  type ImportedQuote,
  type ImportedState,
  localHashesOf,
  promisedBy,
} from '../domain/quotes/promised.ts';
import { INTERFACE_DOMAIN, type QuoteDomain } from '../domain/quotes/quote-signature.ts';
import { asSubjectId, intentId, type SubjectId, subjectKind } from '../domain/subjects/subject.ts';
import { chunks, type RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import type { Fence } from './lease.ts';
import { JSON_TEXT, type OnForeign, RedisStore, readStored } from './stored.ts';

const CHUNK = 1_000;

function intentOf({ raw: { intentHash } }: ImportedQuote): SubjectId | null {
  return typeof intentHash === 'string' && intentHash !== '' ? intentId(intentHash) : null;
}

const QUOTE_TEXT = JSON_TEXT.pipe(z.record(z.string(), z.json()));

/** The imported quotes, and the verdicts on their signatures; shared by all processes. */
export class ImportedQuotes extends RedisStore {
  /** Quotes of this process's last sync: a stored entry of another shape is rewritten from them. */
  #own: readonly ImportedQuote[] = [];

  /** Digest of the domain of quotes: an `invalid` verdict counts only under it. */
  readonly #domain: string;

  constructor(
    redis: RedisClient,
    keys: Keys,
    onForeign: OnForeign = () => undefined,
    { name, version }: QuoteDomain = INTERFACE_DOMAIN,
  ) {
    super(redis, keys, { onForeign });
    this.#domain = hash('sha256', JSON.stringify([name, version]), 'hex').slice(0, 16);
  }

  /** Stores a config's quotes beside the tracked ones. Returns those whose signature is to be verified. */
  async sync(
    quotes: readonly ImportedQuote[],
    fence: Fence,
    suspended: ReadonlySet<string> = new Set(),
  ): Promise<SubjectId[]> {
    this.adopt(quotes);
    const { importedQuotes, verdicts } = this.keys;
    const wanted = new Set<string>(quotes.map(({ subject }) => subject));
    const others = (await this.redis.hkeys(importedQuotes)).filter((subject) => !wanted.has(subject));
    const tracked = (await this.#tracked(others)).union(suspended.intersection(new Set(others)));
    const unwanted = others.filter((subject) => !tracked.has(subject));
    for (const chunk of chunks(unwanted, CHUNK))
      await fence.write([importedQuotes, verdicts].map((key) => ['HDEL', key, ...chunk]));
    for (const { subject, raw } of quotes) {
      await fence.write([['HSET', importedQuotes, subject, canonicalJson(raw)]]);
    }
    const stored = [...quotes.map(({ subject }) => subject), ...[...tracked].map(asSubjectId)];
    const before = await this.#states(stored);
    const hasRemoved = await this.#removePromised(validOf(before), fence);
    // Quotes that another process found valid meanwhile may have been removed with the others.
    const states = hasRemoved ? await this.#states(stored) : before;
    await this.#writePromised(validOf(states), fence);
    return states.flatMap((state) => (state?.verdict === null ? [state.quote.subject] : []));
  }

  #states(subjects: readonly SubjectId[]): Promise<(ImportedState | null)[]> {
    return Promise.all(subjects.map((subject) => this.of(subject)));
  }

  adopt(quotes: readonly ImportedQuote[]): void {
    this.#own = quotes;
  }

  isOwn(subject: string): boolean {
    return this.#own.some((quote) => quote.subject === subject);
  }

  /** Returns the quotes that are tracked by themselves, or were recently. */
  async #tracked(subjects: readonly string[]): Promise<Set<string>> {
    if (subjects.length === 0) return new Set();
    const stored = await this.redis.hmget(this.keys.tracked, ...subjects);
    return new Set(subjects.filter((_, index) => (stored[index] ?? null) !== null));
  }

  /** Returns the imported quote of a subject; null for a subject that is known only by its id. */
  async of(subject: SubjectId): Promise<ImportedState | null> {
    if (subjectKind(subject) !== 'quote') return null;
    const { importedQuotes, verdicts } = this.keys;
    const [text, verdict] = await Promise.all([
      this.redis.hget(importedQuotes, subject),
      this.redis.hget(verdicts, subject),
    ]);
    return text === null ? null : this.read(subject, text, verdict);
  }

  /** Reads an imported quote from its stored texts; null for one of another shape that this config does not have. */
  async read(subject: SubjectId, text: string, verdict: string | null): Promise<ImportedState | null> {
    const { importedQuotes } = this.keys;
    const where = `${importedQuotes} ${subject}`;
    const raw =
      readStored(QUOTE_TEXT, text, { what: 'quote', where, onForeign: this.onForeign }) ??
      (await this.#rewrite(subject));
    if (raw === null) return null;
    const quote = { subject, raw };
    const [word, fingerprint, domain] = verdict?.split(':') ?? [];
    const isSame = fingerprint === fingerprintOf(quote);
    if (word === 'valid' && isSame) return { quote, verdict: word };
    // Under another name the quote may be valid.
    return { quote, verdict: word === 'invalid' && isSame && domain === this.#domain ? word : null };
  }

  async #rewrite(subject: SubjectId): Promise<JsonObject | null> {
    const own = this.#own.find((quote) => quote.subject === subject);
    if (own === undefined) return null;
    await this.redis.hset(this.keys.importedQuotes, subject, canonicalJson(own.raw));
    return own.raw;
  }

  /** Stores a verdict, with the promises of a valid quote: a sync that removes its promises before this finds it valid. */
  async decide(quote: ImportedQuote, verdict: 'valid' | 'invalid'): Promise<void> {
    const noted = this.redis.multi();
    noted.hset(this.keys.verdicts, quote.subject, `${verdict}:${fingerprintOf(quote)}:${this.#domain}`);
    if (verdict === 'valid') this.#addPromises(noted, quote);
    await noted.exec();
  }

  /** Stores the promises of a valid quote under its intent. Returns the intent; null where it names none. */
  async promise(quote: ImportedQuote): Promise<SubjectId | null> {
    const adding = this.redis.multi();
    this.#addPromises(adding, quote);
    await adding.exec();
    return intentOf(quote);
  }

  /** Of an intent that is not its own, a quote promises something only where no other quote does. */
  #addPromises(adding: ChainableCommander, quote: ImportedQuote): void {
    const own = intentOf(quote);
    for (const [intent, text] of Object.entries(promisesOf([quote]))) {
      if (intent === own) adding.hset(this.keys.promised, intent, text);
      else adding.hsetnx(this.keys.promised, intent, text);
    }
  }

  /** Removes the promises of the intents of all other quotes, which are not trusted. False where there is none. */
  async #removePromised(valid: readonly ImportedQuote[], fence: Fence): Promise<boolean> {
    const { promised } = this.keys;
    const wanted = promisesOf(valid);
    const unwanted = (await this.redis.hkeys(promised)).filter((intent) => !Object.hasOwn(wanted, intent));
    for (const chunk of chunks(unwanted, CHUNK)) await fence.write([['HDEL', promised, ...chunk]]);
    return unwanted.length > 0;
  }

  async #writePromised(valid: readonly ImportedQuote[], fence: Fence): Promise<void> {
    const entries = Object.entries(promisesOf(valid));
    for (const chunk of chunks(entries, CHUNK)) {
      await fence.write([['HSET', this.keys.promised, ...chunk.flat()]]);
    }
  }
}

function promisesOf(quotes: readonly ImportedQuote[]): Record<string, string> {
  // Of its other intents a quote promises nothing but where they are fulfilled.
  const locals = quotes.flatMap(({ subject, raw }) =>
    localHashesOf(raw).map(
      (hash) => [intentId(hash), canonicalJson({ quote: subject, local: true })] as const,
    ),
  );
  const own = quotes.flatMap((quote) => {
    const intent = intentOf(quote);
    return intent === null ? [] : [[intent, canonicalJson(promisedBy(quote))] as const];
  });
  // The promise of a quote about its own intent counts before that of another quote.
  return Object.fromEntries([...locals, ...own]);
}

function validOf(states: readonly (ImportedState | null)[]): ImportedQuote[] {
  return states.flatMap((state) => (state?.verdict === 'valid' ? [state.quote] : []));
}
