import { setTimeout as sleep } from 'node:timers/promises';
import { Duty } from '../duty.ts';
import type { RedisClient } from './commands.ts';
import { scripts } from './scripts.ts';

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
