import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { Duty } from '../duty.ts';
import { chunks, type RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { RECEIVER_STATES, type ReceiverState } from './receivers.ts';
import { scripts } from './scripts.ts';
import type { OnForeign } from './stored.ts';

const LEASE_MS = 5_000;

/** Interval for renewing a lease while work runs under it. `WAIT_MS` is the wait between requests for a lease that is held. */
const RENEW_MS = 1_500;
const WAIT_MS = 50;

/** The keys of a lease: one expires with it; the other has the newest token, and stays. */
export type LeaseKeys = { lease: string; fence: string };

/**
 * A lease that one process at a time holds, with a fencing token. Every write of the holder names the token: a process that
 * slept while its lease expired cannot write after a takeover.
 */
export class FencedLease {
  readonly #redis: RedisClient;
  readonly #keys: LeaseKeys;
  readonly #process: string;
  #token = '';
  #holding: Promise<string | null> | null = null;

  /** `process` is the process with whose end the lease ends (queues/heartbeat.ts); "" for one without a heartbeat. */
  constructor(redis: RedisClient, keys: LeaseKeys, process = '') {
    this.#redis = redis;
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
    this.#token = await scripts.lease(this.#redis, { keys: this.#keys, args });
    return this.token;
  }

  async release(): Promise<void> {
    await this.#holding?.catch(() => undefined);
    const token = this.#token;
    this.#token = '';
    if (token !== '' && (await this.#redis.get(this.#keys.lease)) === token) {
      await this.#redis.del(this.#keys.lease);
    }
  }

  /** The fencing token of the last request; null where another process held the lease, and after `release`. */
  get token(): string | null {
    return this.#token === '' ? null : this.#token;
  }

  async isHeld(): Promise<boolean> {
    return (await this.#redis.exists(this.#keys.lease)) === 1;
  }

  /** Runs work under the lease, once its holder has ended or the lease has expired. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    while ((await this.hold()) === null) await sleep(WAIT_MS);
    const renewing = new Duty({
      everyMs: RENEW_MS,
      isSteady: true,
      run: async () => void (await this.hold()),
      onError: () => undefined,
    });
    renewing.start();
    try {
      return await work();
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
export class RelayLease {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #onForeign: OnForeign;
  readonly #lease: FencedLease;

  /** `process`: as in FencedLease. */
  constructor(
    redis: RedisClient,
    keys: Keys,
    { onForeign = () => undefined, process }: { onForeign?: OnForeign; process?: string } = {},
  ) {
    this.#redis = redis;
    this.#keys = keys;
    this.#onForeign = onForeign;
    this.#lease = new FencedLease(redis, { lease: keys.relayLease, fence: keys.relayFence }, process);
  }

  /** Returns the fencing token; null while another process holds the lease. */
  async hold(): Promise<string | null> {
    return this.#lease.hold();
  }

  async release(): Promise<void> {
    await this.#lease.release();
  }

  /** As in FencedLease. */
  get token(): string | null {
    return this.#lease.token;
  }

  async isHeld(): Promise<boolean> {
    return this.#lease.isHeld();
  }

  /** Null for a missing or malformed cursor: the log is read from the beginning, and the facts show earlier deliveries. */
  async cursor(receiver: string): Promise<string | null> {
    const cursor = await this.#redis.hget(this.#keys.cursors, receiver);
    if (cursor === null || /^\d+-\d+$/.test(cursor)) return cursor;
    const where = `${this.#keys.cursors} ${receiver}`;
    this.#onForeign({ what: 'cursor', where, reason: 'expected the place of an entry in the log' });
    return null;
  }

  async readReceivers(receivers: readonly string[]): Promise<ReceiverProgress[]> {
    const keys = this.#keys;
    const found: ReceiverProgress[] = [];
    for (const names of chunks(receivers, CHUNK)) {
      const [receiverPrefix, pendingPrefix] = [keys.receiver(''), keys.pending('')];
      const args = { receiverPrefix, pendingPrefix, receivers: names };
      (await scripts.readReceivers(this.#redis, { keys, args })).forEach(({ cursor, state, open }, index) => {
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

  /** Moves the cursors of receivers. False when another process relays now. */
  async advance(token: string, receivers: readonly string[], entry: string): Promise<boolean> {
    for (const names of chunks(receivers, CHUNK)) {
      const args = { fence: token, entry, receivers: names };
      if (!(await scripts.advance(this.#redis, { keys: this.#keys, args }))) return false;
    }
    return true;
  }
}
