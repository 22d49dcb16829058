import { z } from 'zod';
import { chunks } from './chunks.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { FencedLease } from './lease.ts';
import { RECEIVER_STATES, type ReceiverState } from './receivers.ts';
import { scripts } from './scripts.ts';
import type { OnForeign } from './stored.ts';

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
