import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { scripts } from './scripts.ts';

/** The processes that send deliveries, and which of them live. */
export class SenderStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** Notes that a process lives for so long. Returns those that had stopped saying so at a moment (Redis time, ms). */
  async beat(process: string, leaseMs: number): Promise<{ nowMs: number; gone: string[] }> {
    return scripts.beat(this.#redis, { keys: this.#keys, args: { process, leaseMs } });
  }

  /** Notes that a process has ended: the others take over what it leaves. */
  async end(process: string): Promise<void> {
    await this.#redis.zadd(this.#keys.senders, 0, process);
  }

  /** Removes the processes that had stopped at a moment (Redis time, ms), but for those that speak again. */
  async forget(beforeMs: number): Promise<void> {
    await this.#redis.zremrangebyscore(this.#keys.senders, '-inf', `(${beforeMs}`);
  }
}

/** The place where receivers with something to do are reported of, to all processes that deliver. */
export class WakeLog {
  readonly #blocking: RedisClient;
  readonly #keys: Keys;

  /** `blocking` is a connection of its own, for it waits on it. */
  constructor(blocking: RedisClient, keys: Keys) {
    this.#blocking = blocking;
    this.#keys = keys;
  }

  /** The id of the newest entry; `0-0` where there is none. */
  async newest(): Promise<string> {
    const [row] = await this.#blocking.xrevrange(this.#keys.wakes, '+', '-', 'COUNT', 1);
    return row?.[0] ?? '0-0';
  }

  /** Waits for entries after one, at most so long. Names the receivers but those that `process` itself reported of. */
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
