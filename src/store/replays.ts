import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { INTEGER_TEXT, JSON_TEXT, type OnForeign, readHash } from './stored.ts';

const NUMBER = INTEGER_TEXT.default(0);
const PLACE = z.string().regex(/^\d+-\d+$/);

const REPLAY = z.object({
  receiver: z.string(),
  state: z.enum(['open', 'opened']),
  since: PLACE,
  until: PLACE,
  end: PLACE,
  cursor: PLACE,
  types: JSON_TEXT.pipe(z.array(z.string()).nullable()),
  read: NUMBER,
  opened: NUMBER,
  delivered: NUMBER,
  dead: NUMBER,
});

/**
 * A replay. It sends the events that stand after the entry `since` and before the entry `until` once more, those of
 * `types` (all for null). The log is read from `since` to `end`, for an audience that came later stands behind `until`;
 * `cursor` is how far that is. `state` is `opened` when all of its deliveries are.
 */
export type Replay = z.infer<typeof REPLAY>;

/** Replays: what the operator asked for, how far the relay is, and what became of the deliveries. */
export class ReplayStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #retentionMs: number;
  readonly #onForeign: OnForeign;

  constructor(redis: RedisClient, keys: Keys, options: { retentionMs: number; onForeign?: OnForeign }) {
    this.#redis = redis;
    this.#keys = keys;
    this.#retentionMs = options.retentionMs;
    this.#onForeign = options.onForeign ?? (() => undefined);
  }

  /** Asks the relay for a replay. Returns its id. */
  async request(wanted: Pick<Replay, 'receiver' | 'since' | 'until' | 'end' | 'types'>): Promise<string> {
    const { receiver, since, until, end, types } = wanted;
    const id = randomBytes(8).toString('hex');
    const key = this.#keys.replay(id);
    const fields = {
      receiver,
      state: 'open',
      since,
      until,
      end,
      cursor: since,
      types: JSON.stringify(types),
    };
    await this.#redis
      .multi()
      .hset(key, fields)
      .pexpire(key, this.#retentionMs)
      .zadd(this.#keys.replays, Date.now(), id)
      .exec();
    return id;
  }

  /** The ids of the replays whose deliveries are not all opened, the first asked for first. */
  async open(): Promise<string[]> {
    return this.#redis.zrange(this.#keys.replays, '0', '-1');
  }

  /** Takes a replay whose time is over off the list of open ones. */
  async forget(id: string): Promise<void> {
    await this.#redis.zrem(this.#keys.replays, id);
  }

  /** A replay; null when its time is over, or it does not say what is sent to whom. */
  async read(id: string): Promise<Replay | null> {
    const key = this.#keys.replay(id);
    const fields = await this.#redis.hgetall(key);
    if (fields.receiver === undefined) return null;
    const { value, foreign } = readHash(REPLAY, fields);
    if (foreign !== null) {
      this.#onForeign({ what: 'replay', where: key, reason: foreign.reason });
      if (value === null) await this.#redis.del(key);
      else await this.#redis.hdel(key, ...foreign.fields);
    }
    return value;
  }

  /** Moves a replay along the log, under the relay's fencing token. False when it may not. */
  async advance(
    token: string,
    id: string,
    step: { cursor: string; read: number; ended: boolean },
  ): Promise<boolean> {
    const keys = this.#keys;
    const moved = await this.#redis.iwAdvanceReplay(
      keys.replay(id),
      keys.replays,
      keys.relayLease,
      token,
      id,
      step.cursor,
      String(step.read),
      step.ended ? '1' : '',
    );
    return moved === 1;
  }
}
