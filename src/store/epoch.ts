import { eventId } from '../domain/events/event.ts';
import type { RedisClient } from './commands.ts';
import { redisTimeMs } from './connection.ts';
import type { Keys } from './keys.ts';
import { compareEntries } from './log-entry.ts';
import { operatorEventTemplate, operatorSubject } from './operator-event.ts';
import { scripts } from './scripts.ts';
import { NOTHING_SEEN, type Seen, type SeenFile } from './seen-file.ts';
import { storedMs } from './stored.ts';

/*
 * The epoch of the data: 1, and one more after each time that Redis went back (an older dump, a replica that was behind, an
 * append-only file that was cut, or nothing left at all). All processes share its state, which scripts move.
 *
 * | State        | Redis                                             | Commits     | Moves                                   |
 * |--------------|---------------------------------------------------|-------------|-----------------------------------------|
 * | known        | has no less than this process has seen: epoch,    | are made    | it has less, or had to cut its file     |
 * |              | revision of the config, commits, ticks, an entry  |             | ─► behind, in the next epoch            |
 * | behind       | went back, and what a config wants is not written | are refused | whose config was the newest that was    |
 * |              | to it yet                                         |             | seen, or after 10 s the relay, writes   |
 * |              |                                                   |             | it ─► synchronised; again less          |
 * |              |                                                   |             | ─► behind, in the next epoch            |
 * | synchronised | as known; the log has `storage_restored`          | are made    | as known                                |
 *
 * A process that finds a larger epoch than its own takes over its state. Each stores outside Redis what it has seen, and the
 * next epoch before it begins: no epoch is used twice as long as one file that knows it is left.
 */
export type EpochState = 'known' | 'behind' | 'synchronised';

/** The epoch that holds now: `atMs` is when it began (Redis time), null for the first. */
export type BegunEpoch = { epoch: number; atMs: number | null };

/**
 * A time of which writes were lost: after `fromMs` (null: all that was) up to `untilMs` (null: not known), in Redis time.
 * `digest` is that of the newest config that was seen before, '' for none.
 */
export type Restore = BegunEpoch & {
  fromMs: number | null;
  untilMs: number | null;
  reason: string;
  digest: string;
};

/** What a poll has found. `digest` is that of the newest config, null where there is none. */
export type EpochLook = { digest: string | null; behind: Restore | null };

/** What an epoch works with. `onRestored`: a restore was noticed; `onLooked`: this epoch was found; `onFile`: what was seen could not be stored, null: it was. */
export type EpochDeps = {
  redis: RedisClient;
  keys: Keys;
  file: SeenFile;
  onRestored: (restore: Restore) => void;
  onLooked: (epoch: number) => void;
  onFile: (error: unknown) => void;
};

/** What Redis has, beside what was seen. */
type Found = Awaited<ReturnType<typeof scripts.lookEpoch>>;

/** What this process knows of the epoch, and of how far the data were. */
export class Epoch {
  readonly #parts: EpochDeps;
  #seen: Seen = NOTHING_SEEN;
  #atMs: number | null = null;
  #state: EpochState = 'known';
  #isTruncated = false;
  #looking: Promise<unknown> = Promise.resolve();
  #onLookDue: () => void = () => undefined;
  /** The restore that this process has reported to its own listeners. */
  #noticed: Restore | null = null;
  /** Root -> since when it was wanted, ms, as this process has written or found it. */
  starts: ReadonlyMap<string, number> = new Map();

  constructor(parts: EpochDeps) {
    this.#parts = parts;
  }

  /** The epoch of what is committed now. */
  get begun(): BegunEpoch {
    return { epoch: Math.max(1, this.#seen.epoch), atMs: this.#atMs };
  }

  /** The most commits that were seen in it. */
  get commits(): number {
    return this.#seen.commits;
  }

  /** The restore whose state is not synchronised yet; null for none. */
  get behind(): Restore | null {
    return this.#state === 'behind' ? this.#noticed : null;
  }

  /** Takes what was seen before this process began; `isTruncated`: the embedded Redis has lost the end of its file. */
  async open({ isTruncated }: { isTruncated: boolean }): Promise<void> {
    this.#isTruncated = isTruncated;
    this.#seen = (await this.#parts.file.read()) ?? NOTHING_SEEN;
    await this.#parts.file.prepare().catch(this.#parts.onFile);
    await this.look();
  }

  /** The embedded Redis has lost the end of its file: the next poll begins an epoch. */
  noteTruncated(): void {
    this.#isTruncated = true;
    this.lookSoon();
  }

  /** Has someone called when a poll is due before the next round. */
  onLookDue(listener: () => void): void {
    this.#onLookDue = listener;
  }

  /** Has Redis looked at soon: a commit was refused, or Redis is there again and may be another one. */
  lookSoon(): void {
    this.#onLookDue();
  }

  /** Notes a commit that was made in an epoch, and the entry of its event, '' for none. */
  noteCommit(epoch: number, { commits, entry }: { commits: number; entry: string }): void {
    if (epoch !== this.begun.epoch) return;
    this.#seen = furthest(this.#seen, { commits, entry: entry || '0-0' });
  }

  /** Notes how many commits the processes had made together when a poll began. */
  noteCommits(text: string): void {
    if (!/^\d{1,15}$/.test(text)) return;
    this.#seen = furthest(this.#seen, { commits: Number(text), entry: '0-0' });
  }

  /** Notes which config this process has made the newest. */
  noteRevision(revision: number, digest: string): void {
    this.#seen = { ...this.#seen, revision, digest };
  }

  /** Since when roots that Redis does not know are wanted (ms): they may have been lost. Null for from now on. */
  startOf(root: string): number | null {
    const restore = this.behind;
    const fromMs = restore?.fromMs ?? restore?.untilMs ?? null;
    return fromMs === null ? null : Math.max(this.starts.get(root) ?? fromMs, fromMs);
  }

  /** Holds what was seen against Redis. Begins the next epoch where Redis has less; one look at a time. */
  async look(): Promise<EpochLook> {
    const looked = this.#looking.then(() => this.#look());
    this.#looking = looked.catch(() => undefined);
    return looked;
  }

  async #look(): Promise<EpochLook> {
    for (;;) {
      const isTruncated = this.#isTruncated;
      this.#isTruncated = false;
      try {
        const found = await this.#ask(isTruncated);
        if (found.result !== 'behind') return await this.#take(found);
        await this.#begin(found, isTruncated);
      } catch (error) {
        this.#isTruncated ||= isTruncated;
        throw error;
      }
    }
  }

  async #ask(isTruncated: boolean): Promise<Found> {
    const { redis, keys } = this.#parts;
    return scripts.lookEpoch(redis, { keys, args: { ...this.#seen, isTruncated } });
  }

  async #begin(found: Found, isTruncated: boolean): Promise<void> {
    const { redis, keys } = this.#parts;
    const seen = this.#seen;
    const epoch = Math.max(found.epoch, seen.epoch) + 1;
    // Before it begins: a crash in between leaves an epoch out, and none is used twice.
    await this.#store({ ...seen, epoch, ticks: 0 });
    const reason = isTruncated
      ? 'the append-only file of the embedded Redis was damaged at its end'
      : found.epoch === 0
        ? 'Redis has lost everything'
        : 'Redis went back: an older copy of its data was put in place, or a replica that was behind was promoted';
    const digest = seen.digest === '' ? found.digest : seen.digest;
    await scripts.beginEpoch(redis, {
      keys,
      args: {
        found: found.epoch,
        next: epoch,
        commits: Math.max(seen.commits, found.commits),
        entry: seen.entry,
        digest,
        tickMs: seen.atMs,
        reason,
      },
    });
    // Where another process was faster, the next poll finds its epoch: what was counted before says nothing of that.
    this.#seen = { ...seen, epoch, revision: 0, commits: 0, ticks: 0, entry: '0-0' };
  }

  async #take(found: Found): Promise<EpochLook> {
    const { state, epoch, revision, commits, ticks, digest, entry, reason } = found;
    const seen: Seen = { epoch, revision, commits, ticks, digest, entry, atMs: storedMs(found.tickMs) };
    const [fromMs, untilMs] = [storedMs(found.lostFromMs), storedMs(found.lostUntilMs)];
    const restore: Restore = {
      epoch,
      atMs: storedMs(found.atMs),
      fromMs,
      untilMs,
      reason,
      digest: found.wanted,
    };
    // A commit may have been made since Redis gave this answer.
    this.#seen = seen.epoch === this.#seen.epoch ? furthest(seen, this.#seen) : seen;
    this.#atMs = restore.atMs;
    this.#state = state === '' ? 'known' : state;
    if (state === 'behind' && this.#noticed?.epoch !== restore.epoch) {
      this.#noticed = restore;
      this.#parts.onRestored(restore);
    }
    this.#parts.onLooked(this.begun.epoch);
    await this.#store(this.#seen);
    return { digest: digest === '' ? null : digest, behind: this.behind };
  }

  /** Stores what was seen last, for the next start. */
  async close(): Promise<void> {
    await this.#looking;
    await this.#store(this.#seen);
  }

  async #store(seen: Seen): Promise<void> {
    await this.#parts.file.write(seen).then(() => this.#parts.onFile(null), this.#parts.onFile);
  }

  /** What a config wants is written: reports the restore to the operator, once, and lets commits be made again. */
  async synchronised(): Promise<void> {
    const restore = this.behind;
    if (restore === null) return;
    const { redis, keys } = this.#parts;
    const { epoch, reason, fromMs, untilMs } = restore;
    const [kind, name, word] = ['intentwatch', 'storage', 'storage_restored'] as const;
    const subject = operatorSubject(kind, name);
    // What answers have shown since then was refused: where it came and went, it is missing as well.
    const resumedMs = await redisTimeMs(redis);
    const record = {
      epoch,
      lostFrom: isoTime(fromMs),
      lostUntil: isoTime(untilMs),
      resumedAt: isoTime(resumedMs),
      reason,
    };
    const nowMs = restore.atMs ?? 0;
    const id = eventId([subject, word, String(epoch)]);
    const event = operatorEventTemplate({ kind, name, word, nowMs, record });
    await scripts.endEpoch(redis, { keys, args: { epoch, subject, id, event } });
    this.#state = 'synchronised';
  }
}

function furthest(seen: Seen, other: Pick<Seen, 'commits' | 'entry'>): Seen {
  return {
    ...seen,
    commits: Math.max(seen.commits, other.commits),
    entry: compareEntries(other.entry, seen.entry) > 0 ? other.entry : seen.entry,
  };
}

function isoTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
