import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisClient } from './commands.ts';
import { scripts } from './scripts.ts';

/** Length of a lease; a holder renews it while it works. */
const LEASE_MS = 5_000;

/** The interval at which a lease is renewed while work runs under it, and requested while another process holds it. */
const RENEW_MS = 1_500;
const WAIT_MS = 50;

/** The keys of a lease: that which expires with it, and the newest token, which stays. */
export type LeaseKeys = { lease: string; fence: string };

/**
 * A lease that one process at a time holds, with a fencing token: every write of the holder names the token, so that a
 * process that was asleep while its lease ran out cannot write after another one has taken over.
 */
export class FencedLease {
  readonly #redis: RedisClient;
  readonly #keys: LeaseKeys;
  #token = '';
  #holding: Promise<string | null> | null = null;

  constructor(redis: RedisClient, keys: LeaseKeys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /**
   * Takes or renews the lease. Returns the fencing token; null while another process holds it. One call at a time: where the
   * lease had run out, a second one with the old token would be refused, and its answer would hide the token of the first.
   */
  hold(): Promise<string | null> {
    this.#holding ??= this.#ask().finally(() => {
      this.#holding = null;
    });
    return this.#holding;
  }

  async #ask(): Promise<string | null> {
    const args = { token: this.#token, leaseMs: LEASE_MS };
    this.#token = await scripts.lease(this.#redis, { keys: this.#keys, args });
    return this.#token === '' ? null : this.#token;
  }

  /** Gives the lease back, so that another process can take over at once. */
  async release(): Promise<void> {
    await this.#holding?.catch(() => undefined);
    if (this.#token !== '' && (await this.#redis.get(this.#keys.lease)) === this.#token) {
      await this.#redis.del(this.#keys.lease);
    }
    this.#token = '';
  }

  /** True when this process held it when it was requested last. */
  get isHolder(): boolean {
    return this.#token !== '';
  }

  /** True when any process holds it now. */
  async isHeld(): Promise<boolean> {
    return (await this.#redis.exists(this.#keys.lease)) === 1;
  }

  /** Does work under the lease: once whoever holds it has ended, or its lease has run out. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    while ((await this.hold()) === null) await sleep(WAIT_MS);
    const renewing = setInterval(() => void this.hold().catch(() => undefined), RENEW_MS);
    try {
      return await work();
    } finally {
      clearInterval(renewing);
      // One that could not be given back runs out.
      await this.release().catch(() => undefined);
    }
  }
}
