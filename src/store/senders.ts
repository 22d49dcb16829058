import { Cluster, ReplyError } from 'ioredis';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { type ProcessInstance, parseInstance } from './process-instance.ts';
import { scripts } from './scripts.ts';
import { RedisStore } from './stored.ts';

/** Another process, as its last heartbeat has left it: its instance, and its lease, which is unique to that heartbeat. */
export type OtherProcess = { process: string; lease: string; instance: ProcessInstance | null };

type Beat = {
  nowMs: number;
  isVoid: boolean;
  before: number;
  beats: number;
  gone: string[];
  others: OtherProcess[];
};

/** The processes on one Redis, and which of them are alive. */
export class SenderStore extends RedisStore {
  /**
   * Renews a process for `leaseMs`. `isVoid`: it did not count as alive, so that its earlier claims may be another's; `before` is
   * the end of its lease before, `beats` the number of its heartbeats with this one. Returns the processes that are gone, and the others, at `nowMs` (Redis time).
   */
  async heartbeat(
    process: string,
    { leaseMs, instance }: { leaseMs: number; instance: ProcessInstance },
  ): Promise<Beat> {
    const args = { process, leaseMs, instance: JSON.stringify(instance) };
    const { others, ...beat } = await scripts.heartbeat(this.redis, { keys: this.keys, args });
    return {
      ...beat,
      others: others.map((other) => ({ ...other, instance: parseInstance(other.instance) })),
    };
  }

  /** Declares processes gone, unless they have sent a heartbeat since. Returns those that are. */
  async declareGone(processes: readonly OtherProcess[]): Promise<string[]> {
    return scripts.declareGone(this.redis, { keys: this.keys, args: { processes } });
  }

  async end(process: string): Promise<void> {
    await this.redis.zadd(this.keys.senders, 0, process);
  }

  /** Removes processes whose claims others have, but not those that have renewed their lease. */
  async remove(processes: readonly string[]): Promise<void> {
    await scripts.removeGone(this.redis, { keys: this.keys, args: { processes } });
  }

  /** Frees the leases that processes hold which are gone. */
  async freeLeases(processes: readonly string[]): Promise<void> {
    await scripts.freeLeases(this.redis, { keys: this.keys, args: { processes } });
  }

  /**
   * Returns the names of all connections. Null where they cannot be found: the ACL of Redis forbids that, or a Cluster, whose
   * nodes each know their own.
   */
  async connections(): Promise<Set<string> | null> {
    if (this.redis instanceof Cluster) return null;
    try {
      const list = String(await this.redis.client('LIST'));
      return new Set(Array.from(list.matchAll(/ name=(\S+)/g), ([, name = '']) => name));
    } catch (error) {
      if (error instanceof ReplyError) return null;
      throw error;
    }
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
