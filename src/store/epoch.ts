import { readFile } from 'node:fs/promises';
import { Cluster } from 'ioredis';
import { eventId } from '../domain/events/event.ts';
import { type RedisClient, redisTimeMs } from './commands.ts';
import type { Keys } from './keys.ts';
import { compareEntries } from './log-entry.ts';
import { operatorEventTemplate, operatorSubject } from './operator-event.ts';
import { scripts } from './scripts.ts';
import { NOTHING_SEEN, type Seen, type SeenFile, type SeenRun } from './seen-file.ts';
import { storedMs } from './stored.ts';

/*
 * The epoch of the data: 1, and one more after each time that Redis went back (an older dump, a replica that was behind, an
 * append-only file that was cut, or nothing at all). All processes share its state, which scripts move.
 *
 * | State        | Redis                                             | Commits     | Moves                                   |
 * |--------------|---------------------------------------------------|-------------|-----------------------------------------|
 * | current      | has no less than this process has seen: epoch,    | are made    | it has less, had to cut its file,       |
 * |              | revision of the config, commits, ticks, an entry, |             | stopped with the machine, or lost a     |
 * |              | its heartbeat                                     |             | heartbeat ─► behind, in the next epoch  |
 * | behind       | went back, and a config is not written            | are refused | whose config was the newest that was    |
 * |              | to it yet                                         |             | seen, or after 10 s the relay, writes   |
 * |              |                                                   |             | it ─► synchronised; again less          |
 * |              |                                                   |             | ─► behind, in the next epoch            |
 * | synchronised | as current; the log has `storage_restored`        | are made    | as current                              |
 *
 * A process that finds a larger epoch than its own adopts its state. Each stores its SeenFile outside Redis, and in it the
 * next epoch before that begins: no epoch is used twice as long as one file with it remains.
 */
export type EpochState = 'current' | 'behind' | 'synchronised';

/** The current epoch: `atMs` is its start (Redis time), null for the first. */
export type BegunEpoch = { epoch: number; atMs: number | null };

/**
 * A span whose writes were lost: after `fromMs` (null: all before) up to `untilMs` (null: not known), in Redis time. `digest`
 * is that of the newest config seen before, '' for none.
 */
export type Restore = BegunEpoch & {
  fromMs: number | null;
  untilMs: number | null;
  reason: string;
  digest: string;
};

/** The result of a poll. `digest` is that of the newest config, null where there is none. */
export type EpochCheck = { digest: string | null; behind: Restore | null };

/** The dependencies of an epoch. `onChecked`: this epoch was found; `onFile`: an error of the file, null after a success. */
export type EpochDeps = {
  redis: RedisClient;
  keys: Keys;
  file: SeenFile;
  onRestored: (restore: Restore) => void;
  onChecked: (epoch: number) => void;
  onFile: (error: unknown) => void;
};

/** Reasons for the next epoch that are found before Redis is compared. */
const LOSSES = {
  truncated: 'the append-only file of the embedded Redis was damaged',
  stopped:
    'the machine stopped without notice, and Redis was started again: its last second of writes may be lost',
  heartbeat: 'Redis lost a heartbeat of this process, and maybe what other processes wrote after it',
} as const;

type EpochResponse = Awaited<ReturnType<typeof scripts.compareEpoch>>;

/** The known state of the epoch and of the data in this process. */
export class Epoch {
  readonly #deps: EpochDeps;
  #seen: Seen = NOTHING_SEEN;
  #atMs: number | null = null;
  #state: EpochState = 'current';
  #loss: keyof typeof LOSSES | null = null;
  #run: SeenRun = { boot: null, server: null, isClosed: false };
  #isServerRead = false;
  #checking: Promise<unknown> = Promise.resolve();
  #onCheckDue: () => void = () => undefined;
  /** The last restore that `onRestored` was called for. */
  #noticed: Restore | null = null;
  /** Subscription key -> start of its subscription, ms, as this process has written or found it. */
  starts: ReadonlyMap<string, number> = new Map();

  constructor(deps: EpochDeps) {
    this.#deps = deps;
  }

  get begun(): BegunEpoch {
    return { epoch: Math.max(1, this.#seen.epoch), atMs: this.#atMs };
  }

  get commits(): number {
    return this.#seen.commits;
  }

  /** The restore whose state is not synchronised yet; null for none. */
  get behind(): Restore | null {
    return this.#state === 'behind' ? this.#noticed : null;
  }

  /** Reads the state of earlier processes; `isTruncated`: the embedded Redis has lost writes in its file. */
  async open({ isTruncated }: { isTruncated: boolean }): Promise<void> {
    const stored = await this.#deps.file.read();
    this.#seen = stored?.seen ?? NOTHING_SEEN;
    this.#run = { ...this.#run, boot: await bootOf() };
    await this.#readServer();
    this.#loss = isTruncated ? 'truncated' : hasStopped(stored?.run ?? null, this.#run) ? 'stopped' : null;
    await this.#deps.file.prepare().catch(this.#deps.onFile);
    await this.check();
  }

  async #readServer(): Promise<void> {
    this.#run = { ...this.#run, server: await serverOf(this.#deps.redis) };
    this.#isServerRead = true;
  }

  /** The next poll begins an epoch, since the embedded Redis has lost writes in its file. */
  noteTruncated(): void {
    this.#loss = 'truncated';
    this.checkSoon();
  }

  /**
   * Redis no longer has a heartbeat that it answered in an epoch. Another process may have committed after that, and be gone: then
   * nobody else would notice, and sequences would be used twice.
   */
  noteLostHeartbeat(epoch: number): void {
    if (epoch !== this.begun.epoch) return;
    this.#loss ??= 'heartbeat';
    this.checkSoon();
  }

  onCheckDue(listener: () => void): void {
    this.#onCheckDue = listener;
  }

  /** Requests a poll soon: a commit was refused, or Redis is back and may be another server. */
  checkSoon(): void {
    this.#isServerRead = false;
    this.#onCheckDue();
  }

  /** Notes a commit of an epoch, and the entry of its event, '' for none. */
  noteCommit(epoch: number, { commits, entry }: { commits: number; entry: string }): void {
    if (epoch !== this.begun.epoch) return;
    this.#seen = furthest(this.#seen, { commits, entry: entry || '0-0' });
  }

  noteCommits(text: string): void {
    if (!/^\d{1,15}$/.test(text)) return;
    this.#seen = furthest(this.#seen, { commits: Number(text), entry: '0-0' });
  }

  noteRevision(revision: number, digest: string): void {
    this.#seen = { ...this.#seen, revision, digest };
  }

  /** Returns the start (ms) for subscription keys that are missing in Redis and may have been lost; null for now. */
  startOf(key: string): number | null {
    const restore = this.behind;
    const fromMs = restore?.fromMs ?? restore?.untilMs ?? null;
    return fromMs === null ? null : Math.max(this.starts.get(key) ?? fromMs, fromMs);
  }

  /** Compares the known state with Redis. Begins the next epoch where Redis has less; one call at a time. */
  async check(): Promise<EpochCheck> {
    const checked = this.#checking.then(() => this.#check());
    this.#checking = checked.catch(() => undefined);
    return checked;
  }

  async #check(): Promise<EpochCheck> {
    for (;;) {
      const loss = this.#loss;
      this.#loss = null;
      try {
        if (!this.#isServerRead) await this.#readServer();
        let found = await this.#compare(loss !== null);
        // Another process has begun an epoch after the same loss.
        if (isShared(loss) && found.epoch > this.#seen.epoch) found = await this.#compare(false);
        if (found.result !== 'behind') return await this.#take(found);
        await this.#begin(found, loss);
      } catch (error) {
        this.#loss ??= loss;
        throw error;
      }
    }
  }

  async #compare(isTruncated: boolean): Promise<EpochResponse> {
    const { redis, keys } = this.#deps;
    return scripts.compareEpoch(redis, { keys, args: { ...this.#seen, isTruncated } });
  }

  async #begin(found: EpochResponse, loss: keyof typeof LOSSES | null): Promise<void> {
    const { redis, keys } = this.#deps;
    const seen = this.#seen;
    const epoch = Math.max(found.epoch, seen.epoch) + 1;
    // Before it begins: a crash in between skips an epoch, and none is used twice.
    await this.#store({ ...seen, epoch, ticks: 0 });
    const reason =
      loss !== null
        ? LOSSES[loss]
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
    // Where another process was faster, the next poll finds its epoch; counts from before do not apply to that.
    this.#seen = { ...seen, epoch, revision: 0, commits: 0, ticks: 0, entry: '0-0' };
  }

  async #take(found: EpochResponse): Promise<EpochCheck> {
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
    // A commit may have been made since Redis sent this reply.
    this.#seen = seen.epoch === this.#seen.epoch ? furthest(seen, this.#seen) : seen;
    this.#atMs = restore.atMs;
    this.#state = state === '' ? 'current' : state;
    if (state === 'behind' && this.#noticed?.epoch !== restore.epoch) {
      this.#noticed = restore;
      this.#deps.onRestored(restore);
    }
    this.#deps.onChecked(this.begun.epoch);
    await this.#store(this.#seen);
    return { digest: digest === '' ? null : digest, behind: this.behind };
  }

  async close(): Promise<void> {
    await this.#checking;
    this.#run = { ...this.#run, isClosed: true };
    await this.#store(this.#seen);
  }

  async #store(seen: Seen): Promise<void> {
    await this.#deps.file.write(seen, this.#run).then(() => this.#deps.onFile(null), this.#deps.onFile);
  }

  /** After a config was written: reports the restore to the operator, once, and permits commits again. */
  async synchronised(): Promise<void> {
    const restore = this.behind;
    if (restore === null) return;
    const { redis, keys } = this.#deps;
    const { epoch, reason, fromMs, untilMs } = restore;
    const [kind, name, word] = ['intentwatch', 'storage', 'storage_restored'] as const;
    const subject = operatorSubject(kind, name);
    // Responses since then were refused: a change that came and went in that time is lost as well.
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

/** True for a loss that several processes find, each by itself. */
function isShared(loss: keyof typeof LOSSES | null): boolean {
  return loss === 'stopped' || loss === 'heartbeat';
}

/** Reads what names the run of this machine; null where it has no such name. */
async function bootOf(): Promise<string | null> {
  return readFile('/proc/sys/kernel/random/boot_id', 'utf8').then(
    (text) => text.trim(),
    () => null,
  );
}

/** Reads what names the run of a Redis server; null for several, and where it may not be read. */
async function serverOf(redis: RedisClient): Promise<string | null> {
  if (redis instanceof Cluster) return null;
  const text = await redis.info('server').catch((error: unknown) => {
    // Not permitted, or renamed. Any other error passes, and a loss must not be missed by it.
    if (error instanceof Error && /^(NOPERM|ERR unknown command)/.test(error.message)) return '';
    throw error;
  });
  return /^run_id:(\w+)/m.exec(text)?.[1] ?? null;
}

/** True when machine and Redis have been started again, and the process before did not end in order: nobody saw the last writes. */
function hasStopped(before: SeenRun | null, now: SeenRun): boolean {
  if (before === null || before.isClosed) return false;
  const isOther = (one: string | null, other: string | null): boolean =>
    one !== null && other !== null && one !== other;
  return isOther(before.boot, now.boot) && isOther(before.server, now.server);
}

function furthest(seen: Seen, other: { commits: number; entry: string }): Seen {
  return {
    ...seen,
    commits: Math.max(seen.commits, other.commits),
    entry: compareEntries(other.entry, seen.entry) > 0 ? other.entry : seen.entry,
  };
}

function isoTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
