import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { Duty } from '../duty.ts';
import { chunks, type RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import type { CursorMove } from './log-entry.ts';
import { RECEIVER_STATES, type ReceiverState } from './receivers.ts';
import { scripts } from './scripts.ts';
import type { OnForeign } from './stored.ts';

const LEASE_MS = 5_000;

/** Interval for renewing a lease while work runs under it. `WAIT_MS` is the wait between requests for a lease that is held. */
const RENEW_MS = 1_500;
const WAIT_MS = 50;

/** The keys of a lease: one expires with it; the other has the newest token, and stays. */
export type LeaseKeys = { lease: string; fence: string };

/** The error of work whose lease another process has acquired in the middle of it. Its last step wrote nothing. */
export class LeaseLostError extends Error {
  readonly code = 'lease-lost';

  constructor() {
    super(
      'another process has acquired the lease in the middle of this work: its further writes are refused',
    );
  }
}

/**
 * The right to write under a lease. It ends when another process takes the lease, also where this process has it again later:
 * what this work has read is out of date by then. Redis checks it in the step that writes.
 */
export class Fence {
  readonly keys: LeaseKeys;
  readonly token: string;
  readonly #redis: RedisClient;

  constructor(redis: RedisClient, keys: LeaseKeys, token: string) {
    this.#redis = redis;
    this.keys = keys;
    this.token = token;
  }

  /** Runs commands that write, in one step. Returns the reply of the last one. Throws a LeaseLostError. */
  async write(commands: readonly (readonly string[])[]): Promise<string> {
    const words = commands.flatMap((command) => [String(command.length), ...command]);
    const { keys, token } = this;
    return this.passed((await scripts.writeFenced(this.#redis, { keys, args: { token, words } })) || null);
  }

  /** Returns the reply of a script that ran under the token; throws a LeaseLostError for null, with which it refused. */
  passed<T>(reply: T | null): T {
    if (reply === null) throw new LeaseLostError();
    return reply;
  }
}

/**
 * A lease that one process at a time holds, with a fencing token. Every write of the holder names the token: a process that
 * slept while its lease expired cannot write after a takeover.
 */
export class FencedLease {
  protected readonly redis: RedisClient;
  readonly #keys: LeaseKeys;
  readonly #process: string;
  #token = '';
  #holding: Promise<string | null> | null = null;

  /** `process` is the process with whose end the lease ends (queues/heartbeat.ts); "" for one without a heartbeat. */
  constructor(redis: RedisClient, keys: LeaseKeys, process = '') {
    this.redis = redis;
    this.#keys = keys;
    this.#process = process;
  }

  /**
   * Takes or renews the lease. Returns the fencing token; null while another process holds it. One call at a time: after an
   * expiry, a second call with the old token would be refused, and its reply would hide the token of the first.
   */
  hold(): Promise<string | null> {
    this.#holding ??= this.#acquire().finally(() => {
      this.#holding = null;
    });
    return this.#holding;
  }

  async #acquire(): Promise<string | null> {
    const args = { token: this.#token, leaseMs: LEASE_MS, process: this.#process };
    this.#token = await scripts.lease(this.redis, { keys: this.#keys, args });
    return this.token;
  }

  /** Renews the lease with its token. A lease that expired without a takeover goes on: the work's fence is still the newest. */
  async #renew(token: string): Promise<boolean> {
    return scripts.renewLease(this.redis, { keys: this.#keys, args: { token, leaseMs: LEASE_MS } });
  }

  async release(): Promise<void> {
    await this.#holding?.catch(() => undefined);
    const token = this.#token;
    this.#token = '';
    if (token !== '' && (await this.redis.get(this.#keys.lease)) === token) {
      await this.redis.del(this.#keys.lease);
    }
  }

  /** The fencing token of the last request; null where another process held the lease, and after `release`. */
  get token(): string | null {
    return this.#token === '' ? null : this.#token;
  }

  async isHeld(): Promise<boolean> {
    return (await this.redis.exists(this.#keys.lease)) === 1;
  }

  /**
   * Runs work under the lease, once its holder has ended or the lease has expired. A lease that another process has acquired
   * meanwhile is requested again: the work may do more than its fence refuses.
   */
  async during<T>(work: (fence: Fence) => Promise<T>): Promise<T> {
    let token = await this.hold();
    for (; token === null; token = await this.hold()) await sleep(WAIT_MS);
    const fence = new Fence(this.redis, this.#keys, token);
    const renewing = new Duty({
      everyMs: RENEW_MS,
      isSteady: true,
      run: async () => {
        if (!(await this.#renew(this.#token))) await this.hold();
      },
      onError: () => undefined,
    });
    renewing.start();
    try {
      return await work(fence);
    } finally {
      await renewing.close();
      // A lease that could not be released expires.
      await this.release().catch(() => undefined);
    }
  }
}

const CHUNK = 500;

const STATE = z.enum(RECEIVER_STATES).catch('ok');

/** The cursor of a receiver, up to which its deliveries are opened, its state, and the number of open deliveries. */
export type ReceiverProgress = { name: string; cursor: string; state: ReceiverState; open: number };

/** The lease of the relay, and the cursors that only its holder moves. */
export class RelayLease extends FencedLease {
  readonly #keys: Keys;
  readonly #onForeign: OnForeign;

  /** `process`: as in FencedLease. */
  constructor(
    redis: RedisClient,
    keys: Keys,
    { onForeign = () => undefined, process }: { onForeign?: OnForeign; process?: string } = {},
  ) {
    super(redis, { lease: keys.relayLease, fence: keys.relayFence }, process);
    this.#keys = keys;
    this.#onForeign = onForeign;
  }

  /** `0-0` for a missing or malformed cursor: the log is read from the beginning, and the facts show earlier deliveries. */
  async cursor(receiver: string): Promise<string> {
    return this.#readCursor(receiver, (await this.redis.hget(this.#keys.cursors, receiver)) ?? '');
  }

  async readReceivers(receivers: readonly string[]): Promise<ReceiverProgress[]> {
    const keys = this.#keys;
    const found: ReceiverProgress[] = [];
    for (const names of chunks(receivers, CHUNK)) {
      const [receiverPrefix, pendingPrefix] = [keys.receiver(''), keys.pending('')];
      const args = { receiverPrefix, pendingPrefix, receivers: names };
      (await scripts.readReceivers(this.redis, { keys, args })).forEach(({ cursor, state, open }, index) => {
        const name = names[index] ?? '';
        found.push({ name, cursor: this.#readCursor(name, cursor), state: STATE.parse(state), open });
      });
    }
    return found;
  }

  #readCursor(receiver: string, cursor: string): string {
    if (cursor === '' || /^\d+-\d+$/.test(cursor)) return cursor || '0-0';
    const where = `${this.#keys.cursors} ${receiver}`;
    this.#onForeign({ what: 'cursor', where, reason: 'expected the place of an entry in the log' });
    return '0-0';
  }

  /** Moves the cursors of receivers, but those that another process moved meanwhile. False when another process relays now. */
  async advance(token: string, receivers: readonly string[], { from, to }: CursorMove): Promise<boolean> {
    for (const names of chunks(receivers, CHUNK)) {
      const args = { fence: token, from, to, receivers: names };
      if (!(await scripts.advance(this.redis, { keys: this.#keys, args }))) return false;
    }
    return true;
  }
}
