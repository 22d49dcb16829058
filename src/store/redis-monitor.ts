import { Redis } from 'ioredis';
import { repeatTogether } from '../duty.ts';
import { messageOf } from '../errors.ts';
import { withTimeout } from '../with-timeout.ts';
import { type RedisClient, redisTimeMs } from './commands.ts';
import { isClockOff, isPersistent, type Persistence, parseInfo, readPersistence } from './redis-checks.ts';

/** All spans are counted in ticks of about a second: a process that was paused itself must not blame Redis for it. */
const TICK_MS = 1_000;
const AWAY_AFTER = 5;

/** Ticks for a fresh connection: tried so often while Redis is away; answered for so long while ours are not, ours are stuck. */
const FRESH_AFTER = 10;
const FRESH_EVERY = 5;
const STUCK_AFTER = 60;
const FRESH_TIMEOUT_TICKS = 2;

const INSPECT_EVERY = 60;
const REPEAT_EVERY = 3_600;

/** Ticks between two attempts to have the append-only file written anew. */
const REWRITE_EVERY = 30;

/** The options and callbacks of a monitor. */
export type MonitorOptions = {
  /** A key of ours: in a Cluster, the node that has it is the one that counts. */
  key: string;
  openFresh: () => RedisClient;
  onAway: (role: string, reason: string) => void;
  onBack: (role: string) => void;
  /** Called when the persistence has changed, and now and then while nothing is stored. Not for the first read. */
  onPersistence: (persistence: Persistence) => void;
  /** Called when the clock of Redis begins to differ from ours, or to agree again. Not for the first read. */
  onClock: (skewMs: number) => void;
  /** Called when Redis, which could not write its append-only file for a while, has written it anew. */
  onRewritten: () => void;
  tickMs?: number;
};

type MonitoredConnection = {
  role: string;
  redis: RedisClient;
  state: 'new' | 'answering' | 'away';
  isPending: boolean;
  /** True when an answer that is no error has come since the last tick, as most commands are no pings. Never for a Cluster. */
  hasAnswered: boolean;
  /** True when it has refused a write since the last tick, since it cannot write its files. */
  hasRefused: boolean;
  silentTicks: number;
};

/**
 * State of the append-only file. After a rewrite of it, a server whose disk was full for a while goes on writing behind a gap,
 * and refuses the file at its next start. Another rewrite ends that.
 *
 *   State    Entered when                              Left when
 *   whole    the start; a rewrite has ended            Redis refuses a write (MISCONF) ─► damaged
 *   damaged  it refused a write; a rewrite has failed  it can write again, and begins a rewrite ─► rewriting; it has no such
 *                                                      file, or permits no rewrite ─► whole
 *   rewriting  a rewrite was begun                     it has ended ─► whole, or damaged
 */
type RewriteState = 'whole' | 'damaged' | 'rewriting';

/** Monitors whether Redis answers, by a command on each connection that was quiet for a second, and its persistence. */
export class RedisMonitor {
  readonly #options: MonitorOptions;
  readonly #tickMs: number;
  readonly #watched: MonitoredConnection[] = [];
  #stop: () => void = () => undefined;
  #ticks = 0;
  #freshSince: number | null = null;
  #inspectedAt: number | null = null;
  #reportedAt = 0;
  #persistence: Persistence | null = null;
  #clockSkewMs: number | null = null;
  #file: RewriteState = 'whole';
  #rewriteAt = 0;

  constructor(options: MonitorOptions) {
    this.#options = options;
    this.#tickMs = options.tickMs ?? TICK_MS;
  }

  start(): void {
    this.#stop = repeatTogether(this.#tickMs, () => this.#tick());
  }

  watch(role: string, redis: RedisClient): void {
    const watched: MonitoredConnection = {
      role,
      redis,
      state: 'new',
      isPending: false,
      hasAnswered: false,
      hasRefused: false,
      silentTicks: 0,
    };
    if (redis instanceof Redis) noteAnswers(redis, watched);
    this.#watched.push(watched);
    this.#ping(watched);
  }

  unwatch(redis: RedisClient): void {
    const at = this.#watched.findIndex((one) => one.redis === redis);
    if (at !== -1) this.#watched.splice(at, 1);
  }

  lost(role: string, reason: string): void {
    const watched = this.#watched.findLast((one) => one.role === role);
    if (watched === undefined) this.#options.onAway(role, reason);
    else this.#leave(watched, reason);
  }

  isReachable(): boolean {
    return this.#watched.length > 0 && this.#watched.every(({ state }) => state === 'answering');
  }

  silentMs(): number {
    return Math.max(0, ...this.#watched.map(({ silentTicks }) => silentTicks)) * this.#tickMs;
  }

  /** Returns how long fresh connections have been answered while ours were not; 0 when that is not so. */
  stuckMs(): number {
    return this.#freshSince === null ? 0 : (this.#ticks - this.#freshSince) * this.#tickMs;
  }

  /** True when a restart of this process would bring Redis back to it. */
  isStuck(): boolean {
    return this.stuckMs() >= STUCK_AFTER * this.#tickMs;
  }

  /** The persistence of Redis, at most a minute old; null before the first read. */
  get persistence(): Persistence | null {
    return this.#persistence;
  }

  /** The difference between the clock of Redis and ours, at most a minute old; null before the first read. */
  get clockSkewMs(): number | null {
    return this.#clockSkewMs;
  }

  close(): void {
    this.#stop();
    this.#watched.splice(0);
  }

  #tick(): void {
    this.#ticks += 1;
    for (const watched of this.#watched) {
      if (watched.isPending) {
        watched.silentTicks += 1;
        const seconds = Math.round((watched.silentTicks * this.#tickMs) / 1_000);
        if (watched.silentTicks >= AWAY_AFTER) this.#leave(watched, `no answer for ${seconds} s`);
      } else if (!watched.hasAnswered || watched.state !== 'answering') this.#ping(watched);
      watched.hasAnswered = false;
      if (watched.hasRefused) this.#file = 'damaged';
      watched.hasRefused = false;
    }
    if (this.#file !== 'whole' && this.#ticks >= this.#rewriteAt) void this.#rewrite();
    if (this.isReachable()) {
      this.#freshSince = null;
      const isDue = this.#inspectedAt === null || this.#ticks - this.#inspectedAt >= INSPECT_EVERY;
      if (isDue) void this.#inspect();
    } else if (this.silentMs() >= FRESH_AFTER * this.#tickMs && this.#ticks % FRESH_EVERY === 0) {
      void this.#tryFresh();
    }
  }

  /** One command at a time: while Redis is away, it waits with the others. */
  #ping(watched: MonitoredConnection): void {
    watched.isPending = true;
    watched.redis.exists(this.#options.key).then(
      () => {
        watched.isPending = false;
        watched.silentTicks = 0;
        if (watched.state === 'away') this.#options.onBack(watched.role);
        watched.state = 'answering';
      },
      (error: unknown) => {
        watched.isPending = false;
        watched.silentTicks += 1;
        this.#leave(watched, messageOf(error));
      },
    );
  }

  #leave(watched: MonitoredConnection, reason: string): void {
    if (watched.state === 'away' || !this.#watched.includes(watched)) return;
    watched.state = 'away';
    this.#options.onAway(watched.role, reason);
  }

  async #inspect(): Promise<void> {
    const [first] = this.#watched;
    if (first === undefined) return;
    this.#inspectedAt = this.#ticks;
    try {
      this.#noteClock((await redisTimeMs(first.redis)) - Date.now());
      this.#note(await readPersistence(first.redis));
    } catch {
      // Another check reports whether Redis answers; a user without access to INFO leaves the persistence unknown.
      this.#persistence = { kind: 'unknown' };
    }
  }

  async #rewrite(): Promise<void> {
    const [first] = this.#watched;
    if (first === undefined) return;
    this.#rewriteAt = this.#ticks + REWRITE_EVERY;
    try {
      const info = parseInfo(await first.redis.info('persistence'));
      const isUnderWay = ['aof_rewrite_in_progress', 'aof_rewrite_scheduled'].some(
        (name) => info.get(name) === '1',
      );
      if (info.get('aof_enabled') !== '1') this.#file = 'whole';
      else if (isUnderWay || info.get('aof_last_write_status') !== 'ok') this.#rewriteAt = this.#ticks + 1;
      else if (this.#file === 'rewriting' && info.get('aof_last_bgrewrite_status') === 'ok') {
        this.#file = 'whole';
        this.#options.onRewritten();
      } else {
        await first.redis.bgrewriteaof();
        this.#file = 'rewriting';
        this.#rewriteAt = this.#ticks + 1;
      }
    } catch (error) {
      // A user, or a service, that permits no such command has to see to it.
      if (/^(?:NOPERM|ERR unknown command)/.test(error instanceof Error ? error.message : ''))
        this.#file = 'whole';
    }
  }

  #noteClock(skewMs: number): void {
    const before = this.#clockSkewMs;
    this.#clockSkewMs = skewMs;
    if (before !== null && isClockOff(before) !== isClockOff(skewMs)) this.#options.onClock(skewMs);
  }

  #note(persistence: Persistence): void {
    const before = this.#persistence;
    this.#persistence = persistence;
    const isNews = before !== null && before.kind !== persistence.kind;
    const isDue = isPersistent(persistence) === false && this.#ticks - this.#reportedAt >= REPEAT_EVERY;
    if (!isNews && !isDue) return;
    this.#reportedAt = this.#ticks;
    this.#options.onPersistence(persistence);
  }

  async #tryFresh(): Promise<void> {
    const fresh = this.#options.openFresh();
    const answer = await withTimeout(fresh.exists(this.#options.key), FRESH_TIMEOUT_TICKS * TICK_MS).catch(
      () => null,
    );
    fresh.disconnect();
    if (answer === null || this.isReachable()) this.#freshSince = null;
    else this.#freshSince ??= this.#ticks;
  }
}

/** First bytes of errors: `-` and, in RESP3, `!`. */
const ERRORS: readonly number[] = [0x2d, 0x21];

const REFUSAL = '-MISCONF';

function noteAnswers(redis: Redis, watched: MonitoredConnection): void {
  redis.on('connect', () => {
    redis.stream.on('data', (bytes: Buffer) => {
      // While Redis refuses all commands, as a busy or loading one, it does not answer.
      if (!ERRORS.includes(bytes[0] ?? 0)) watched.hasAnswered = true;
      else if (bytes.toString('latin1', 0, REFUSAL.length) === REFUSAL) watched.hasRefused = true;
    });
  });
}
