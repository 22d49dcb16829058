import { z } from 'zod';
import type { ArrivalTally } from '../domain/cadence/arrivals.ts';
import { LISTINGS, type Listing } from '../domain/cadence/listing.ts';
import type { Looks, OpenTransfer } from '../domain/cadence/wallet.ts';
import { asSubjectId, type SubjectId } from '../domain/subject.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';

/** Status, route, since, seen, head: short, for there is one per transfer under way. */
const OPEN = z.tuple([z.string(), z.string(), z.number(), z.number(), z.number().nullable()]);

const NUMBERS = z.record(z.string(), z.coerce.number());

/**
 * What was observed of a wallet's pages. `sweptAtMs`: when a sweep that read all of them began, and `pages` how many
 * there were; `orderAtMs`: when they were last seen in the order newest first, `disorderAtMs`: in another;
 * `unnarrowedAtMs`: when a listing of one status last showed others; `missedAtMs`: when new transfers were last left
 * unread, which only a sweep that begins later finds; `arrivals`: how often new transfers came. Redis time, 0 for never.
 * These are hints: they save requests, no event hangs on them.
 */
export type WalletFacts = {
  looks: Looks;
  sweptAtMs: number;
  pages: number;
  orderAtMs: number;
  disorderAtMs: number;
  unnarrowedAtMs: number;
  missedAtMs: number;
  arrivals: ArrivalTally;
};

/** A fact of a wallet that is noted by itself. */
export type WalletFact =
  | Exclude<keyof WalletFacts, 'looks' | 'arrivals'>
  | `arrivals:${keyof ArrivalTally}`
  | `looked:${Listing}`;

/** What is known of wallets beyond the records that their pages show. */
export class WalletStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #keepMs: number;

  constructor(redis: RedisClient, keys: Keys, options: { retentionMs: number }) {
    this.#redis = redis;
    this.#keys = keys;
    this.#keepMs = options.retentionMs;
  }

  async facts(wallet: SubjectId): Promise<WalletFacts> {
    const stored = NUMBERS.parse(await this.#redis.hgetall(this.#keys.wallet(wallet)));
    const looks: { [listing in Listing]?: number } = {};
    for (const listing of LISTINGS) {
      const atMs = stored[`looked:${listing}`];
      if (atMs !== undefined) looks[listing] = atMs;
    }
    const { sweptAtMs = 0, pages = 0, orderAtMs = 0, disorderAtMs = 0 } = stored;
    const { unnarrowedAtMs = 0, missedAtMs = 0 } = stored;
    const arrivals = {
      seen: stored['arrivals:seen'] ?? 0,
      watchedSeconds: stored['arrivals:watchedSeconds'] ?? 0,
      atMs: stored['arrivals:atMs'] ?? 0,
    };
    return { looks, sweptAtMs, pages, orderAtMs, disorderAtMs, unnarrowedAtMs, missedAtMs, arrivals };
  }

  async note(wallet: SubjectId, facts: { readonly [fact in WalletFact]?: number }): Promise<void> {
    const key = this.#keys.wallet(wallet);
    await this.#redis.multi().hset(key, facts).pexpire(key, this.#keepMs).exec();
  }

  /** The transfers of a wallet that have not ended, as far as its pages showed them. */
  async open(wallet: SubjectId): Promise<OpenTransfer[]> {
    const stored = await this.#redis.hgetall(this.#keys.open(wallet));
    return Object.entries(stored).map(([subject, text]) => {
      const [status, route, sinceMs, seenAtMs, headAtMs] = OPEN.parse(JSON.parse(text));
      return { subject: asSubjectId(subject), status, route, sinceMs, seenAtMs, headAtMs };
    });
  }

  /**
   * Notes which transfers an answer showed under way, and which have ended. `headAtMs`: the answer was a look at the
   * head; null keeps what the last one showed.
   */
  async sight(
    wallet: SubjectId,
    seen: {
      open: readonly Omit<OpenTransfer, 'headAtMs'>[];
      ended: readonly SubjectId[];
      headAtMs: number | null;
    },
  ): Promise<void> {
    const key = this.#keys.open(wallet);
    const { open, ended, headAtMs } = seen;
    const pipeline = this.#redis.pipeline();
    if (open.length > 0) {
      const subjects = open.map(({ subject }) => subject);
      const before = headAtMs === null ? await this.#redis.hmget(key, ...subjects) : [];
      const fields = open.map(({ subject, status, route, sinceMs, seenAtMs }, index) => {
        const stored = before[index] ?? null;
        const head = stored === null ? headAtMs : OPEN.parse(JSON.parse(stored))[4];
        const fields = [status, route, sinceMs, seenAtMs, head] satisfies z.input<typeof OPEN>;
        return [subject, JSON.stringify(fields)];
      });
      pipeline.hset(key, Object.fromEntries(fields));
      pipeline.pexpire(key, this.#keepMs);
    }
    if (ended.length > 0) pipeline.hdel(key, ...ended);
    await pipeline.exec();
  }
}
