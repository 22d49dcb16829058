import type { JsonObject } from '../domain/json.ts';
import { parseClaimKey } from '../domain/subjects/subscription.ts';
import { chunks, type RedisClient, redisTimeMs } from './commands.ts';
import type { Keys } from './keys.ts';
import { reportToOperator } from './operator-event.ts';
import { scripts } from './scripts.ts';
import { RedisStore } from './stored.ts';

/** An event that waits, or waited, for a subscription key: its place in the log, and its id. */
export type WaitingEvent = { entry: string; eventId: string; key: string };

/** An event that was dropped (Redis time, ms). `place` names it in the list. */
type DroppedEvent = WaitingEvent & { place: string; droppedMs: number };

/** The reasons for dropping waiting events. */
export const DROP_REASONS = ['span-over', 'removed', 'retention'] as const;

export type SuspendedDropReason = (typeof DROP_REASONS)[number];

/** The end of suspended subscription keys: how many, and the events that were dropped. */
export type EndedSuspension = {
  move: 'ended';
  reason: SuspendedDropReason;
  claimKeys: number;
  events: number;
  dropped: WaitingEvent[];
};

/** Dropped waiting events: those of a suspension and its subscription keys, or expired ones (`suspension` is empty). */
type Drop = { suspension: string; reason: SuspendedDropReason; claimKeys: readonly string[] };

const WAITING = /^\d+ (\d+-\d+) (\S+) (.+)$/;
const DROPPED = /^(\d+) \d+ (\d+-\d+) (\S+) (.+)$/;

const MOST_READ = 5_000;

const MOST_DROPPED_AT_ONCE = 200;

/** Most events and subscriptions that an operator event names. */
const MOST_NAMED = 100;

/** Returns the receivers of subscription keys, by key. */
export type KeyReceivers = (claimKeys: readonly string[]) => Promise<Map<string, readonly string[]>>;

/** Waiting events of a suspension, or those from before a time where it is empty. */
type WaitingSelection = { suspension: string; trimMs: number };

/** The events that wait for suspended subscription keys, and those that were dropped. */
export class WaitingEvents extends RedisStore {
  readonly #receiversOf: KeyReceivers;

  constructor(redis: RedisClient, keys: Keys, receiversOf: KeyReceivers) {
    super(redis, keys);
    this.#receiversOf = receiversOf;
  }

  /** Counts the waiting events of some subscription keys; omits a key without any. */
  async countOf(claimKeys: ReadonlySet<string>): Promise<Map<string, number>> {
    const found = new Map<string, number>();
    for await (const { key } of this.#each())
      if (claimKeys.has(key)) found.set(key, (found.get(key) ?? 0) + 1);
    return found;
  }

  /** Finds a waiting event, once for each subscription key. */
  async find(id: string): Promise<WaitingEvent[]> {
    const found: WaitingEvent[] = [];
    for await (const one of this.#each()) if (one.eventId === id) found.push(one);
    return found;
  }

  /** Reads all waiting events, once for each subscription key, in the order of the log. */
  async *#each(): AsyncGenerator<WaitingEvent> {
    for (let from = '-'; ; ) {
      const members = await this.redis.zrangebylex(this.keys.withheld, from, '+', 'LIMIT', 0, MOST_READ);
      yield* parsed(members);
      const last = members.at(-1);
      if (last === undefined || members.length < MOST_READ) return;
      from = `(${last}`;
    }
  }

  /** True when the first waiting event is older than a time: they wait about in the order of the log. */
  async hasBefore(trimMs: number): Promise<boolean> {
    const [first] = await this.redis.zrange(this.keys.withheld, '0', '0');
    const waiting = first === undefined ? null : parseWaiting(first);
    return waiting !== null && Number(waiting.entry.split('-')[0]) < trimMs;
  }

  /**
   * Removes events that each receiver of their subscription key got by another one, or that are on their way to it: they do not
   * wait in vain. An event of another type than a receiver wants stays.
   */
  async removeDelivered(which: WaitingSelection): Promise<void> {
    const members = await this.#select({ ...which, isDropped: false });
    const waiting = members.flatMap((member) => {
      const event = parseWaiting(member);
      return event === null ? [] : [{ ...event, member }];
    });
    const receivers = await this.#receiversOf([...new Set(waiting.map(({ key }) => key))]);
    for (const chunk of chunks(waiting, MOST_DROPPED_AT_ONCE)) {
      const isOver = await Promise.all(
        chunk.map(async ({ key, eventId }) => {
          const names = receivers.get(key) ?? [];
          const made = await Promise.all(names.map((name) => this.#isDelivered(name, eventId)));
          return made.length > 0 && made.every(Boolean);
        }),
      );
      const over = chunk.flatMap(({ member }, index) => (isOver[index] === true ? [member] : []));
      if (over.length > 0) await this.redis.zrem(this.keys.withheld, ...over);
    }
  }

  async #isDelivered(receiver: string, id: string): Promise<boolean> {
    const [delivered, outcome] = await Promise.all([
      this.redis.hexists(this.keys.delivery(receiver, ''), id),
      this.redis.hget(this.keys.delivery(receiver, id), 'outcome'),
    ]);
    return delivered === 1 || outcome === 'pending';
  }

  /** Reports events that wait in vain to the operator, then drops them. Expired are those from before `trimMs`. */
  async drop(what: Drop & { trimMs?: number }): Promise<EndedSuspension> {
    const { suspension, reason, trimMs = 0 } = what;
    const dropped = parsed(await this.#select({ suspension, trimMs, isDropped: false }));
    const ids = idsOf(dropped);
    const claimKeys =
      what.claimKeys.length > 0 ? what.claimKeys : [...new Set(dropped.map(({ key }) => key))];
    await this.#report({ suspension, reason, claimKeys }, ids);
    // What began to wait again meanwhile is named too.
    const named = new Set(ids);
    const all = parsed(await this.#select({ suspension, trimMs, isDropped: true }));
    const late = all.filter(({ eventId }) => !named.has(eventId));
    const lateIds = idsOf(late);
    if (late.length > 0) {
      const lateSuspension = suspension === '' ? '' : `${suspension}.late`;
      await this.#report({ suspension: lateSuspension, reason, claimKeys }, lateIds);
    }
    return {
      move: 'ended',
      reason,
      claimKeys: what.claimKeys.length,
      events: ids.length + lateIds.length,
      dropped: [...dropped, ...late],
    };
  }

  /** Returns the events of a suspension, or those from before a time; `isDropped` moves them to the dropped ones. */
  async #select({
    suspension,
    trimMs,
    isDropped,
  }: WaitingSelection & { isDropped: boolean }): Promise<string[]> {
    const found: string[] = [];
    let from = '';
    do {
      const args = { suspension, beforeMs: trimMs, from, count: MOST_DROPPED_AT_ONCE, isDropped };
      const { next, members } = await scripts.dropWaiting(this.redis, { keys: this.keys, args });
      found.push(...members);
      from = next;
    } while (from !== '');
    return found;
  }

  async #report({ suspension, reason, claimKeys }: Drop, ids: readonly string[]): Promise<void> {
    const removed = claimKeys.map(parseClaimKey);
    const subscriptions = [...new Set(removed.map(({ subscription }) => subscription))];
    const record: JsonObject = {
      reason,
      subjects: new Set(removed.map(({ subject }) => subject)).size,
      subscriptions: subscriptions.slice(0, MOST_NAMED),
      events: ids.length,
      eventIds: ids.slice(0, MOST_NAMED),
    };
    const mark = [reason, suspension === '' ? String(await redisTimeMs(this.redis)) : suspension];
    await reportToOperator(
      { redis: this.redis, keys: this.keys },
      { name: 'removal', word: 'suspension_ended', mark, record },
    );
  }

  /** Lists the dropped events, the last one first, before a place or from the newest on. */
  async dropped({ before, count }: { before: string | null; count: number }): Promise<DroppedEvent[]> {
    const key = this.keys.droppedWithheld;
    const from = before === null ? '+' : `(${before}`;
    const members = await this.redis.zrevrangebylex(key, from, '-', 'LIMIT', 0, count);
    return members.flatMap((place) => parseDropped(place) ?? []);
  }

  /** Removes dropped events from before a time (ms) from that list. */
  async trimDropped(trimMs: number): Promise<void> {
    const end = String(Math.max(0, Math.floor(trimMs))).padStart(16, '0');
    await this.redis.zremrangebylex(this.keys.droppedWithheld, '-', `(${end}`);
  }
}

function idsOf(events: readonly WaitingEvent[]): string[] {
  return [...new Set(events.map(({ eventId }) => eventId))];
}

function parsed(members: readonly string[]): WaitingEvent[] {
  return members.flatMap((member) => parseWaiting(member) ?? []);
}

/** Parses a waiting event; null for anything else. */
function parseWaiting(member: string): WaitingEvent | null {
  const [, entry, eventId, key] = WAITING.exec(member) ?? [];
  return entry === undefined || eventId === undefined || key === undefined ? null : { entry, eventId, key };
}

/** Parses a dropped event; null for anything else. */
function parseDropped(place: string): DroppedEvent | null {
  const [, ms, entry, eventId, key] = DROPPED.exec(place) ?? [];
  if (entry === undefined || eventId === undefined || key === undefined) return null;
  return { place, droppedMs: Number(ms), entry, eventId, key };
}
