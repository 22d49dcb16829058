import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import type { OnForeign } from './stored.ts';

/** Length of the relay's lease; a holder renews it in every round. */
const LEASE_MS = 5_000;

/**
 * The lease of the relay, with a fencing token: every write of the relay names the token, so that a process that was
 * asleep while its lease ran out cannot write after another one has taken over.
 */
export class RelayLease {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #onForeign: OnForeign;
  #token = '';

  constructor(redis: RedisClient, keys: Keys, onForeign: OnForeign = () => undefined) {
    this.#redis = redis;
    this.#keys = keys;
    this.#onForeign = onForeign;
  }

  /** Takes or renews the lease. Returns the fencing token; null while another process holds it. */
  async hold(): Promise<string | null> {
    this.#token = await this.#redis.iwLease(
      this.#keys.relayLease,
      this.#keys.relayFence,
      this.#token,
      String(LEASE_MS),
    );
    return this.#token === '' ? null : this.#token;
  }

  /** Gives the lease back, so that another process can take over at once. */
  async release(): Promise<void> {
    if (this.#token !== '' && (await this.#redis.get(this.#keys.relayLease)) === this.#token) {
      await this.#redis.del(this.#keys.relayLease);
    }
    this.#token = '';
  }

  /** Whether any process relays now. */
  async isHeld(): Promise<boolean> {
    return (await this.#redis.exists(this.#keys.relayLease)) === 1;
  }

  /**
   * Where a receiver's deliveries are enqueued up to; null for a receiver without cursor, or with one that names no
   * place: it is read from the beginning, and what it got before stands in the facts.
   */
  async cursor(receiver: string): Promise<string | null> {
    const cursor = await this.#redis.hget(this.#keys.cursors, receiver);
    if (cursor === null || /^\d+-\d+$/.test(cursor)) return cursor;
    const where = `${this.#keys.cursors} ${receiver}`;
    this.#onForeign({ what: 'cursor', where, reason: 'expected the place of an entry in the log' });
    return null;
  }

  /** Moves a receiver's cursor. False when another process relays now. */
  async advance(token: string, receiver: string, entry: string): Promise<boolean> {
    return (
      (await this.#redis.iwAdvance(this.#keys.cursors, this.#keys.relayLease, token, receiver, entry)) === 1
    );
  }
}
