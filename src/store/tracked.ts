import { z } from 'zod';
import { canonicalJson } from '../domain/json.ts';
import type { ImportedQuote } from '../domain/quotes/promised.ts';
import { asSubjectId, type SubjectId } from '../domain/subjects/subject.ts';
import { scripts } from './scripts.ts';
import { JSON_TEXT, type OnForeign, RedisStore, readStored } from './stored.ts';

const OVERDUE_AFTER = z.union([z.number(), z.literal('learned')]).nullable();

/** The scripts write the first two, in this order. */
const TRACKED = z.object({
  createdAtMs: z.number(),
  removedAtMs: z.number().nullable(),
  metadata: z.record(z.string(), z.string()),
  receivers: z.array(z.string()),
  overdueAfterMs: OVERDUE_AFTER,
  /** Missing in data of a version without checks on chains. */
  recipients: z.array(z.string()).default([]),
  /** True for an imported quote whose vault is watched too. */
  watchVault: z.boolean().default(false),
});

const TRACKED_TEXT = JSON_TEXT.pipe(TRACKED);

/** A subject that is tracked by itself. `createdAtMs` and `removedAtMs` are Redis time; the latter is null while tracked. */
export type TrackedSubject = z.infer<typeof TRACKED>;

/** The options of a tracked subject. `recipients` are the rightful recipients of its delivery. */
export type Wish = Omit<TrackedSubject, 'createdAtMs' | 'removedAtMs'>;

/** Reads a tracked subject; null for an entry of another shape, which is reported. */
export function readTracked(
  text: string,
  { where, onForeign }: { where: string; onForeign: OnForeign },
): TrackedSubject | null {
  return readStored(TRACKED_TEXT, text, { what: 'tracked', where, onForeign });
}

const CHUNK = 200;

const SCANNED = z.tuple([z.string(), z.array(z.string())]);

/** The subjects that are tracked by themselves, stored in Redis alone: a sync of a config leaves them as they are. */
export class TrackedStore extends RedisStore {
  #cursor = '0';

  /**
   * Tracks a subject, in one step: it is stored, claimed and polled soon. A subject that is tracked already gets the new
   * options, and `created` is false. `quote` is the imported quote itself, where there is one.
   */
  async track(
    subject: SubjectId,
    wish: Wish,
    quote: ImportedQuote | null,
  ): Promise<{ created: boolean; createdAtMs: number }> {
    const keys = this.keys;
    const { metadata, receivers, overdueAfterMs, recipients, watchVault } = wish;
    const { isNew, createdAtMs } = await scripts.trackSubject(this.redis, {
      keys: { ...this.#keysOf(subject), claims: keys.claims(subject), importedQuotes: keys.importedQuotes },
      args: {
        subject,
        definition: { metadata, receivers, overdueAfterMs, recipients, watchVault },
        quote: quote && canonicalJson(quote.raw),
        atMs: null,
      },
    });
    return { created: isNew, createdAtMs };
  }

  /** False when it was not tracked by itself. */
  async untrack(subject: SubjectId): Promise<boolean> {
    return this.#untrack(subject, null);
  }

  async #untrack(subject: SubjectId, idleSinceMs: number | null): Promise<boolean> {
    const keys = { ...this.#keysOf(subject), since: this.keys.since };
    return scripts.untrackSubject(this.redis, { keys, args: { subject, idleSinceMs } });
  }

  #keysOf(subject: SubjectId): Record<'tracked' | 'trackingEnded' | 'wanted' | 'plan' | 'subject', string> {
    const { tracked, trackingEnded, wanted } = this.keys;
    const plan = this.keys.planOf(subject);
    return { tracked, trackingEnded, wanted, plan, subject: this.keys.subject(subject) };
  }

  /** Null for a subject that is not, or no longer, tracked by itself. */
  async of(subject: SubjectId): Promise<TrackedSubject | null> {
    const text = await this.redis.hget(this.keys.tracked, subject);
    const tracked = text === null ? null : this.#read(subject, text);
    return tracked?.removedAtMs === null ? tracked : null;
  }

  /** Includes those whose tracking has ended recently. */
  async count(): Promise<number> {
    return this.redis.hlen(this.keys.tracked);
  }

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
      await this.redis.hscan(this.keys.tracked, cursor, 'COUNT', String(CHUNK)),
    );
    const live: SubjectId[] = [];
    for (let index = 0; index + 1 < flat.length; index += 2) {
      const [subject = '', text = ''] = [flat[index], flat[index + 1]];
      if (this.#read(subject, text)?.removedAtMs === null) live.push(asSubjectId(subject));
    }
    return [next, live];
  }

  #read(subject: string, text: string): TrackedSubject | null {
    return readTracked(text, { where: `${this.keys.tracked} ${subject}`, onForeign: this.onForeign });
  }

  /**
   * Runs one round of the check. It ends the tracking of finished subjects without a change for the retention, in a part of
   * all, and removes those that ended before (Redis time, ms). `isImported`: the config imports that quote too.
   */
  async prune(beforeMs: number, isImported: (subject: string) => boolean): Promise<void> {
    const keys = this.keys;
    const [[next, some], ended] = await Promise.all([
      this.#scan(this.#cursor),
      this.redis.zrangebyscore(keys.trackingEnded, '-inf', beforeMs, 'LIMIT', 0, CHUNK),
    ]);
    this.#cursor = next;
    for (const subject of some) await this.#untrack(subject, beforeMs);
    for (const subject of ended) {
      await scripts.removeTracked(this.redis, { keys, args: { subject, isImported: isImported(subject) } });
    }
  }
}
