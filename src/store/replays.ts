import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { readStamp } from './confirmed-time.ts';
import { scripts } from './scripts.ts';
import { INTEGER_TEXT, JSON_TEXT, RedisStore, readHash } from './stored.ts';

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
  places: JSON_TEXT.pipe(z.array(PLACE)).nullable().default(null),
  read: NUMBER,
  opened: NUMBER,
  delivered: NUMBER,
  dead: NUMBER,
});

/**
 * A replay. It sends the events after the entry `since` and before the entry `until` again, those of `types` (all for null).
 * The log is read from `since` to `end`, since a later subscribers entry is after `until`; `cursor` is the progress. `state`
 * is `opened` when all of its deliveries are. With `places` it sends the events at these entries, and reads nothing else.
 */
export type Replay = z.infer<typeof REPLAY>;

const TRIMMED_AT_ONCE = 200;

type ReplaysWanted = { receiver: string; after: string; count: number };

/** Makes a new id of a replay; one `seed` always gives the same id. */
export function newReplayId(seed?: string): string {
  if (seed === undefined) return randomBytes(8).toString('hex');
  return createHash('sha256').update(seed).digest('hex').slice(0, 16);
}

/** The replays that the operator requested, with their progress and the results of their deliveries. */
export class ReplayStore extends RedisStore {
  /** Requests a replay of a range of the log from the relay, under an id; an existing one stays as it is. */
  async request(
    id: string,
    wanted: { receiver: string; since: string; until: string; end: string; types: readonly string[] | null },
  ): Promise<void> {
    if ((await this.redis.exists(this.keys.replay(id))) === 1) return;
    const { types, ...range } = wanted;
    await this.#open(id, { ...range, cursor: wanted.since, types: JSON.stringify(types) });
  }

  /** As `request`, for the events at some entries. */
  async requestPlaces(
    id: string,
    { receiver, places }: { receiver: string; places: readonly string[] },
  ): Promise<void> {
    if ((await this.redis.exists(this.keys.replay(id))) === 1) return;
    const range = { since: '0-0', until: '0-0', end: '0-0', cursor: '0-0' };
    await this.#open(id, { receiver, ...range, types: 'null', places: JSON.stringify(places) });
  }

  async #open(id: string, fields: Record<string, string>): Promise<void> {
    const key = this.keys.replay(id);
    const nowMs = await readStamp(this.redis, this.keys);
    await this.redis
      .multi()
      .hset(key, { ...fields, state: 'open' })
      .zadd(this.keys.replayTimes, nowMs, id)
      .zadd(this.keys.replays, nowMs, id)
      .exec();
  }

  /** Returns the ids of replays that sent an event to a receiver again: `count` of those after one ('' for the first). */
  async of(eventId: string, { receiver, after, count }: ReplaysWanted): Promise<string[]> {
    const [from, to] = [`(${receiver} ${after}`, `(${receiver}!`];
    const key = this.keys.replaysOf(eventId);
    const members = await this.redis.zrange(key, from, to, 'BYLEX', 'LIMIT', 0, count);
    return members.map((member) => member.slice(receiver.length + 1));
  }

  /** In the order of the requests. */
  async open(): Promise<string[]> {
    return this.redis.zrange(this.keys.replays, '0', '-1');
  }

  /** Removes replays that were requested before a time (ms), a bounded number of them. */
  async trim(beforeMs: number): Promise<void> {
    const { replayTimes, replays } = this.keys;
    const ids = await this.redis.zrangebyscore(
      replayTimes,
      '-inf',
      `(${beforeMs}`,
      'LIMIT',
      0,
      TRIMMED_AT_ONCE,
    );
    if (ids.length === 0) return;
    await this.redis
      .multi()
      .del(...ids.map((id) => this.keys.replay(id)))
      .zrem(replays, ...ids)
      .zrem(replayTimes, ...ids)
      .exec();
  }

  async remove(id: string): Promise<void> {
    await this.redis.zrem(this.keys.replays, id);
  }

  /** Reads a replay; null when it has expired, or its receiver or content is missing. */
  async read(id: string): Promise<Replay | null> {
    const key = this.keys.replay(id);
    const fields = await this.redis.hgetall(key);
    if (fields.receiver === undefined) return null;
    const { value, foreign } = readHash(REPLAY, fields);
    if (foreign !== null) {
      this.onForeign({ what: 'replay', where: key, reason: foreign.reason });
      if (value === null) await this.redis.del(key);
      else await this.redis.hdel(key, ...foreign.fields);
    }
    return value;
  }

  /** False when another process relays now, or the replay has expired. */
  async advance(
    token: string,
    id: string,
    step: { cursor: string; read: number; ended: boolean },
  ): Promise<boolean> {
    const keys = this.keys;
    return scripts.advanceReplay(this.redis, {
      keys: { replay: keys.replay(id), replays: keys.replays, relayLease: keys.relayLease },
      args: { fence: token, id, cursor: step.cursor, read: step.read, isAtEnd: step.ended },
    });
  }
}
