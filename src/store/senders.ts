import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { scripts } from './scripts.ts';

/** The processes that send deliveries, and which of them are alive. */
export class SenderStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** Renews a process for `leaseMs`. Returns those whose lease had expired at `nowMs` (Redis time). */
  async heartbeat(process: string, leaseMs: number): Promise<{ nowMs: number; gone: string[] }> {
    return scripts.heartbeat(this.#redis, { keys: this.#keys, args: { process, leaseMs } });
  }

  async end(process: string): Promise<void> {
    await this.#redis.zadd(this.#keys.senders, 0, process);
  }

  /** Removes the processes whose lease had expired at a time (Redis time, ms), but not those that have renewed it. */
  async remove(beforeMs: number): Promise<void> {
    await this.#redis.zremrangebyscore(this.#keys.senders, '-inf', `(${beforeMs}`);
  }
}

/** The stream that names receivers with something to do, to all processes that deliver. */
export class WakeLog {
  readonly #blocking: RedisClient;
  readonly #keys: Keys;

  /** `blocking` is used by this alone. */
  constructor(blocking: RedisClient, keys: Keys) {
    this.#blocking = blocking;
    this.#keys = keys;
  }

  async newest(): Promise<string> {
    const [row] = await this.#blocking.xrevrange(this.#keys.wakes, '+', '-', 'COUNT', 1);
    return row?.[0] ?? '0-0';
  }

  /** Waits for entries after one, at most `waitMs`. Returns the receivers except those that `process` itself reported. */
  async after(
    entry: string,
    { process, waitMs }: { process: string; waitMs: number },
  ): Promise<{ last: string; receivers: Set<string> }> {
    const found = await this.#blocking.xread(
      'COUNT',
      1_000,
      'BLOCK',
      waitMs,
      'STREAMS',
      this.#keys.wakes,
      entry,
    );
    const receivers = new Set<string>();
    let last = entry;
    for (const [, rows] of found ?? []) {
      for (const [id, fields] of rows) {
        last = id;
        const [, receiver = '', , by = ''] = fields;
        if (by !== process) receivers.add(receiver);
      }
    }
    return { last, receivers };
  }
}
