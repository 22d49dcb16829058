import { z } from 'zod';
import { canonicalJson } from '../domain/json.ts';
import type { ImportedQuote } from '../domain/quotes/promised.ts';
import { endpointGroupOf } from '../domain/subjects/kinds.ts';
import { asSubjectId, type SubjectId } from '../domain/subjects/subject.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { scripts } from './scripts.ts';
import { JSON_TEXT, type OnForeign, readStored } from './stored.ts';

const OVERDUE_AFTER = z.union([z.number(), z.literal('learned')]).nullable();

/** The scripts write the first two, in this order. */
const TRACKED = z.object({
  createdAtMs: z.number(),
  removedAtMs: z.number().nullable(),
  metadata: z.record(z.string(), z.string()),
  receivers: z.array(z.string()),
  overdueAfterMs: OVERDUE_AFTER,
  /** Left out by a version that checked nothing on chains. */
  recipients: z.array(z.string()).default([]),
});

const TRACKED_TEXT = JSON_TEXT.pipe(TRACKED);

/**
 * What is stored of a subject that is tracked by itself. `createdAtMs` and `removedAtMs` are Redis time; the latter is null
 * while it is tracked.
 */
export type TrackedSubject = z.infer<typeof TRACKED>;

/** What somebody wants of a subject: what its events carry, who gets them, when it counts as overdue, and who may rightly receive what it delivers. */
export type Wish = Omit<TrackedSubject, 'createdAtMs' | 'removedAtMs'>;

/** Reads what is stored of a tracked subject; null for an entry of another shape, which is reported. */
export function readTracked(
  text: string,
  { where, onForeign }: { where: string; onForeign: OnForeign },
): TrackedSubject | null {
  return readStored(TRACKED_TEXT, text, { what: 'tracked', where, onForeign });
}

/** So many subjects are looked through, or forgotten, by one round of the check. */
const CHUNK = 200;

const SCANNED = z.tuple([z.string(), z.array(z.string())]);

/**
 * The subjects that are tracked by themselves, beside those that the config names. They stand in Redis alone: a config
 * that is synced leaves them as they are.
 */
export class TrackedStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #onForeign: OnForeign;
  /** How far the check has come in all of them. */
  #cursor = '0';

  constructor(redis: RedisClient, keys: Keys, options: { onForeign?: OnForeign } = {}) {
    this.#redis = redis;
    this.#keys = keys;
    this.#onForeign = options.onForeign ?? (() => undefined);
  }

  /**
   * Tracks a subject, in one step: it is stored, claimed and polled soon. One that is tracked already gets what is wished
   * now, and `created` is false. `quote` is the quote itself, where it was imported.
   */
  async track(
    subject: SubjectId,
    wish: Wish,
    quote: ImportedQuote | null,
  ): Promise<{ created: boolean; createdAtMs: number }> {
    const keys = this.#keys;
    const { metadata, receivers, overdueAfterMs, recipients } = wish;
    const { isNew, createdAtMs } = await scripts.trackSubject(this.#redis, {
      keys: { ...this.#keysOf(subject), claims: keys.claims(subject), importedQuotes: keys.importedQuotes },
      args: {
        subject,
        definition: { metadata, receivers, overdueAfterMs, recipients },
        quote: quote && canonicalJson(quote.raw),
        atMs: null,
      },
    });
    return { created: isNew, createdAtMs };
  }

  /** Ends the tracking of a subject. False when it was not tracked by itself. */
  async untrack(subject: SubjectId): Promise<boolean> {
    return this.#untrack(subject, null);
  }

  async #untrack(subject: SubjectId, idleSinceMs: number | null): Promise<boolean> {
    const keys = { ...this.#keysOf(subject), since: this.#keys.since };
    return scripts.untrackSubject(this.#redis, { keys, args: { subject, idleSinceMs } });
  }

  #keysOf(subject: SubjectId): Record<'tracked' | 'trackingEnded' | 'wanted' | 'plan' | 'subject', string> {
    const { tracked, trackingEnded, wanted } = this.#keys;
    const plan = this.#keys.plan(endpointGroupOf(subject));
    return { tracked, trackingEnded, wanted, plan, subject: this.#keys.subject(subject) };
  }

  /** What is stored of a subject; null for one that is not, or no longer, tracked by itself. */
  async of(subject: SubjectId): Promise<TrackedSubject | null> {
    const text = await this.#redis.hget(this.#keys.tracked, subject);
    const tracked = text === null ? null : this.#read(subject, text);
    return tracked?.removedAtMs === null ? tracked : null;
  }

  /** The number of them, with those whose tracking has ended of late. */
  async count(): Promise<number> {
    return this.#redis.hlen(this.#keys.tracked);
  }

  /** All that are tracked, a part at a time. */
  async *all(): AsyncGenerator<SubjectId[]> {
    let cursor = '0';
    do {
      const [next, some] = await this.#scan(cursor);
      cursor = next;
      yield some;
    } while (cursor !== '0');
  }

  async #scan(cursor: string): Promise<[string, SubjectId[]]> {
    const [next, flat] = SCANNED.parse(
      await this.#redis.hscan(this.#keys.tracked, cursor, 'COUNT', String(CHUNK)),
    );
    const live: SubjectId[] = [];
    for (let index = 0; index + 1 < flat.length; index += 2) {
      const [subject = '', text = ''] = [flat[index], flat[index + 1]];
      if (this.#read(subject, text)?.removedAtMs === null) live.push(asSubjectId(subject));
    }
    return [next, live];
  }

  #read(subject: string, text: string): TrackedSubject | null {
    return readTracked(text, { where: `${this.#keys.tracked} ${subject}`, onForeign: this.#onForeign });
  }

  /**
   * One round of the check: ends the tracking of what has come to its end and has been silent for the retention, in a part
   * of all, and removes what was ended before (Redis time, ms). `isImported`: the config hands that quote over as well.
   */
  async prune(beforeMs: number, isImported: (subject: string) => boolean): Promise<void> {
    const keys = this.#keys;
    const [next, some] = await this.#scan(this.#cursor);
    this.#cursor = next;
    for (const subject of some) await this.#untrack(subject, beforeMs);
    const ended = await this.#redis.zrangebyscore(keys.trackingEnded, '-inf', beforeMs, 'LIMIT', 0, CHUNK);
    for (const subject of ended) {
      await scripts.forgetTracked(this.#redis, { keys, args: { subject, isImported: isImported(subject) } });
    }
  }
}
