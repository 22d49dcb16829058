import { ENDPOINT_GROUPS } from '../domain/subjects/kinds.ts';
import { asSubjectId } from '../domain/subjects/subject.ts';
import { parseClaimKey } from '../domain/subjects/subscription.ts';
import type { ContinuedKey, SuspendedState, SuspensionPlan } from '../domain/subjects/suspended-keys.ts';
import { chunks, type RedisClient, redisTimeMs } from './commands.ts';
import { readStamp } from './confirmed-time.ts';
import type { Keys } from './keys.ts';
import type { Fence } from './lease.ts';
import { FencedLease } from './lease.ts';
import { scripts } from './scripts.ts';
import { RedisStore } from './stored.ts';
import type { SubjectStore } from './subjects.ts';
import {
  type EndedSuspension,
  type KeyReceivers,
  type WaitingEvent,
  WaitingEvents,
} from './waiting-events.ts';

/*
 * A removed claim is suspended first. A subscription key (`<subscription>|<named subject>`) is in one state:
 *
 *   state         | stored as                         | polled          | its events     | ends when
 *   --------------|-----------------------------------|-----------------|----------------|---------------------------------
 *   in the config | `wanted` has it, and it has no    | as usual        | are delivered  | a reload omits it: suspended;
 *                 | suspension                        |                 |                | ended where `graceSpan` is 0s, or
 *                 |                                   |                 |                | where other keys lead on to all of
 *                 |                                   |                 |                | its receivers (a rename)
 *   suspended     | `wanted` has it, and `suspended`  | with spare      | wait           | a reload names it, or its subject for
 *                 | has `out:<ms>`                    | budget          |                | one of its receivers: back. The span
 *                 |                                   |                 |                | is over, or `intentwatch remove`: ended
 *   back          | likewise, `back:<ms>`             | as usual        | wait behind    | nothing waits any more: in the config.
 *                 |                                   |                 | those before   | A reload omits it: suspended
 *   ended         | nothing has it                    | no more, unless | waiting ones:  | a reload names it: in the config from
 *                 |                                   | others want it  | dropped, named | then on
 *                 |                                   |                 | (but those its |
 *                 |                                   |                 | receivers got) |
 *
 * All keys that one reload removes, or restores, are one suspension. A key is suspended as long as its suspension is in
 * `suspensions`: so the last waiting event and the return of all its keys are one step. This file makes the moves: a sync
 * makes suspensions (`begin`, `mark`, `complete`), the repeating check ends them (`settle`), an operator too (`end`).
 */

const CHUNK = 200;

/** `sinceMs` is Redis time. */
export type SuspendedKey = { key: string; state: SuspendedState['state']; sinceMs: number };

/** The result of a move: events that were released to their receivers, or those that were dropped. */
export type Settled = { move: 'released'; suspension: string; events: number } | EndedSuspension;

/** The suspensions of one sync, before it is complete. */
type Making = { out: string; back: string };

/** The suspended subscription keys, and the events that wait for them. */
export class Suspensions extends RedisStore {
  readonly waiting: WaitingEvents;
  readonly #subjects: SubjectStore;
  readonly #process: string | undefined;

  /** `process`: as in FencedLease. */
  constructor(
    redis: RedisClient,
    keys: Keys,
    deps: { subjects: SubjectStore; process?: string | undefined; receiversOf: KeyReceivers },
  ) {
    super(redis, keys);
    const { subjects, process, receiversOf } = deps;
    this.#subjects = subjects;
    this.#process = process;
    this.waiting = new WaitingEvents(redis, keys, receiversOf);
  }

  async states(): Promise<Map<string, SuspendedState>> {
    const found = new Map<string, SuspendedState>();
    const since = await this.#suspensions();
    if (since.size === 0) return found;
    for (const [key, suspension] of Object.entries(await this.redis.hgetall(this.keys.suspended))) {
      const sinceMs = since.get(suspension);
      if (sinceMs !== undefined) found.set(key, { state: stateOf(suspension), isMade: sinceMs > 0 });
    }
    return found;
  }

  /** Begins the suspensions of a sync. Until it is complete they neither release nor end anything. */
  async begin(plan: SuspensionPlan, fence: Fence): Promise<Making | null> {
    if (Object.values(plan).every((claimKeys) => claimKeys.length === 0)) return null;
    const nowMs = await redisTimeMs(this.redis);
    const making = { out: `out:${nowMs}`, back: `back:${nowMs}` };
    const { suspensions } = this.keys;
    if (plan.narrowed.length + plan.out.length > 0)
      await fence.write([['ZADD', suspensions, 'NX', '0', making.out]]);
    if (plan.back.length > 0) await fence.write([['ZADD', suspensions, 'NX', '0', making.back]]);
    await this.mark(making.back, plan.back, fence);
    const narrowed = plan.narrowed.map(({ key }) => key);
    await this.mark(making.out, narrowed, fence);
    return making;
  }

  /** Adds subscription keys to a suspension that was begun: their events wait from now on. */
  async mark(suspension: string, claimKeys: readonly string[], fence: Fence): Promise<void> {
    for (const chunk of chunks(claimKeys, CHUNK)) {
      await fence.write([['HSET', this.keys.suspended, ...chunk.flatMap((key) => [key, suspension])]]);
    }
  }

  /**
   * Suspends the parts of suspended subscription keys since the same time, and releases the events of the whole to them: the
   * whole is on its way back, to be completed by the sync that splits it or by the next one.
   */
  async part(parts: readonly ContinuedKey[], fence: Fence): Promise<void> {
    const nowMs = await redisTimeMs(this.redis);
    const { suspended, suspensions } = this.keys;
    const wholes = new Set<string>();
    for (const { key, from } of parts) {
      for (const whole of from) {
        const suspension = await this.redis.hget(suspended, whole);
        if (suspension === null) continue;
        await fence.write([['HSETNX', suspended, key, suspension]]);
        wholes.add(whole);
      }
    }
    if (wholes.size === 0) return;
    await fence.write([['ZADD', suspensions, 'NX', '0', `back:${nowMs}`]]);
    await this.mark(`back:${nowMs}`, [...wholes], fence);
  }

  /** Completes the suspensions of a sync, and removes those that an earlier sync began and never completed. */
  async complete(making: Making | null, fence: Fence): Promise<void> {
    const nowMs = await readStamp(this.redis, this.keys);
    for (const [suspension, sinceMs] of await this.#suspensions()) {
      if (sinceMs > 0) continue;
      if (suspension === making?.out || suspension === making?.back)
        await fence.write([['ZADD', this.keys.suspensions, 'XX', String(nowMs), suspension]]);
      else await fence.write([['ZREM', this.keys.suspensions, suspension]]);
    }
    await this.#remove(fence);
  }

  /** Makes events wait again for keys suspended by now. Returns how many do not: their keys are in the config, or nowhere. */
  async waitAgain(waiting: readonly WaitingEvent[]): Promise<number> {
    let current = 0;
    for (const chunk of chunks(waiting, CHUNK)) {
      const some = chunk.map(({ entry, eventId, key }) => ({ entry, event: eventId, claimKey: key }));
      current += await scripts.waitAgain(this.redis, { keys: this.keys, args: { waiting: some } });
    }
    return current;
  }

  async #remove(fence: Fence): Promise<void> {
    const key = this.keys.suspended;
    const [since, claimKeys] = [await this.#suspensions(), Object.entries(await this.redis.hgetall(key))];
    const over = claimKeys.filter(([, suspension]) => !since.has(suspension)).map(([key]) => key);
    for (const chunk of chunks(over, CHUNK)) await fence.write([['HDEL', key, ...chunk]]);
  }

  /**
   * Makes the moves that are due: releases the events of suspensions that are back, ends those whose span is over (`spanMs`;
   * null where another process has a newer config, which decides) by confirmed time, and drops events that leave the log. One
   * process at a time, and not during a sync.
   */
  async settle({
    spanMs,
    confirmedMs,
    trimMs,
  }: {
    spanMs: number | null;
    confirmedMs: number;
    trimMs: number;
  }): Promise<Settled[]> {
    await this.waiting.trimDropped(trimMs);
    const due = async (): Promise<[string, number][]> =>
      [...(await this.#suspensions())].filter(
        ([suspension, sinceMs]) =>
          sinceMs > 0 &&
          (stateOf(suspension) === 'back' || (spanMs !== null && sinceMs + spanMs <= confirmedMs)),
      );
    const { claimKeys, waiting } = await this.counts();
    if (claimKeys + waiting === 0) return [];
    if ((await due()).length === 0 && !(await this.waiting.hasBefore(trimMs)) && !(await this.#isLeft()))
      return [];
    return this.#alone(async (fence) => {
      const settled: Settled[] = [];
      if (await this.waiting.hasBefore(trimMs))
        await this.waiting.removeDelivered({ suspension: '', trimMs });
      if (await this.waiting.hasBefore(trimMs))
        settled.push(await this.waiting.drop({ suspension: '', reason: 'retention', claimKeys: [], trimMs }));
      for (const [suspension] of (await due()).sort(([, one], [, other]) => one - other)) {
        if (stateOf(suspension) === 'back') settled.push(await this.#release(suspension));
        else settled.push(...(await this.#end(suspension)));
      }
      await this.#remove(fence);
      return settled;
    });
  }

  /** True when a crash interrupted the end of a suspension. */
  async #isLeft(): Promise<boolean> {
    return (await this.redis.exists(this.keys.suspensions)) === 0;
  }

  /** Ends suspended subscription keys at once. Returns the results; none where none of them is suspended. */
  async end(isMeant: (key: string) => boolean): Promise<Settled[]> {
    return this.#alone(async (fence) => {
      const states = await this.states();
      const claimKeys = [...states].flatMap(([key, { state, isMade }]) =>
        state === 'out' && isMade && isMeant(key) ? [key] : [],
      );
      if (claimKeys.length === 0) return [];
      const nowMs = await redisTimeMs(this.redis);
      // A suspension of their own, whose span is over in any case: after a crash the check ends it.
      const suspension = `out:${nowMs}${REMOVED}`;
      await fence.write([['ZADD', this.keys.suspensions, '1', suspension]]);
      await this.mark(suspension, claimKeys, fence);
      return this.#end(suspension);
    });
  }

  async #alone<T>(work: (fence: Fence) => Promise<T>): Promise<T> {
    const { configLease: lease, configFence: fence } = this.keys;
    return new FencedLease(this.redis, { lease, fence }, this.#process).during(work);
  }

  async #suspensions(): Promise<Map<string, number>> {
    const rows = await this.redis.zrange(this.keys.suspensions, '0', '-1', 'WITHSCORES');
    const found = new Map<string, number>();
    for (let index = 0; index + 1 < rows.length; index += 2)
      found.set(rows[index] ?? '', Number(rows[index + 1]));
    return found;
  }

  async #release(suspension: string): Promise<Settled> {
    await this.#restorePolling();
    let events = 0;
    let from = '';
    do {
      const args = { suspension, from, count: CHUNK };
      const { next, released } = await scripts.releaseWaiting(this.redis, { keys: this.keys, args });
      from = next;
      events += released;
    } while (from !== '');
    return { move: 'released', suspension, events };
  }

  /** Ends a suspension. It can be repeated: the report is stored before anything is dropped. */
  async #end(suspension: string): Promise<Settled[]> {
    const reason = suspension.endsWith(REMOVED) ? 'removed' : 'span-over';
    const { wanted, suspended, suspensions } = this.keys;
    const all = Object.entries(await this.redis.hgetall(suspended));
    const claimKeys = all.flatMap(([key, of]) => (of === suspension ? [key] : []));
    for (const chunk of chunks(claimKeys, CHUNK))
      await scripts.endSuspended(this.redis, { keys: this.keys, args: { suspension, keys: chunk } });
    await this.waiting.removeDelivered({ suspension, trimMs: 0 });
    const settled =
      claimKeys.length === 0 ? [] : [await this.waiting.drop({ suspension, reason, claimKeys })];
    const named = new Set((await this.redis.hkeys(wanted)).map((key) => parseClaimKey(key).subject));
    const left = new Set(claimKeys.map((key) => parseClaimKey(key).subject)).difference(named);
    await Promise.all([...left].map((subject) => this.#subjects.expire(asSubjectId(subject))));
    await this.#restorePolling();
    for (const chunk of chunks(claimKeys, CHUNK)) await this.redis.hdel(suspended, ...chunk);
    await this.redis.zrem(suspensions, suspension);
    return settled;
  }

  /** Restores usual polling of subjects that a claim in the config wants, or no claim at all. */
  async #restorePolling(): Promise<void> {
    const [claimsPrefix, { wanted }] = [this.keys.claims(''), this.keys];
    for (const endpointGroup of ENDPOINT_GROUPS) {
      const keys = { plan: this.keys.plan(endpointGroup), wanted };
      for (const place of [':spareWallets', ':spare'] as const) {
        let from = '0';
        do {
          const args = { atMs: null, claimsPrefix, place, from, count: CHUNK };
          from = (await scripts.restorePolling(this.redis, { keys, args })).next;
        } while (from !== '');
      }
    }
  }

  async counts(): Promise<{ claimKeys: number; waiting: number }> {
    const [claimKeys, waiting] = await Promise.all([
      this.redis.hlen(this.keys.suspended),
      this.redis.zcard(this.keys.withheld),
    ]);
    return { claimKeys, waiting };
  }

  /** Lists the suspended subscription keys after one, ordered by name. */
  async list({ after, count }: { after: string | null; count: number }): Promise<SuspendedKey[]> {
    const since = await this.#suspensions();
    const all = Object.entries(await this.redis.hgetall(this.keys.suspended)).flatMap(([key, suspension]) => {
      const sinceMs = since.get(suspension) ?? 0;
      return sinceMs > 0 ? [{ key, state: stateOf(suspension), sinceMs }] : [];
    });
    const rest = all.filter(({ key }) => after === null || key > after);
    return rest.sort((one, other) => (one.key < other.key ? -1 : 1)).slice(0, count);
  }
}

const REMOVED = '.removed';

function stateOf(suspension: string): SuspendedState['state'] {
  return suspension.startsWith('back:') ? 'back' : 'out';
}
