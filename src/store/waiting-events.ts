import type { RedisClient } from './commands.ts';

/** An event that waits, or waited, for a subscription key: its place in the log, and its id. */
export type WaitingEvent = { entry: string; eventId: string; key: string };

/** An event that was dropped (Redis time, ms). `place` names it in the list. */
export type DroppedEvent = WaitingEvent & { place: string; droppedMs: number };

const WAITING = /^\d+ (\d+-\d+) (\S+) (.+)$/;
const DROPPED = /^(\d+) \d+ (\d+-\d+) (\S+) (.+)$/;

const MOST_READ = 5_000;

/** Parses a waiting event; null for anything else. */
export function parseWaiting(member: string): WaitingEvent | null {
  const [, entry, eventId, key] = WAITING.exec(member) ?? [];
  return entry === undefined || eventId === undefined || key === undefined ? null : { entry, eventId, key };
}

/** Parses a dropped event; null for anything else. */
export function parseDropped(place: string): DroppedEvent | null {
  const [, ms, entry, eventId, key] = DROPPED.exec(place) ?? [];
  if (entry === undefined || eventId === undefined || key === undefined) return null;
  return { place, droppedMs: Number(ms), entry, eventId, key };
}

/** Reads all waiting events, once for each subscription key, in the order of the log. */
export async function* eachWaiting(redis: RedisClient, key: string): AsyncGenerator<WaitingEvent> {
  for (let from = '-'; ; ) {
    const members = await redis.zrangebylex(key, from, '+', 'LIMIT', 0, MOST_READ);
    yield* members.flatMap((member) => parseWaiting(member) ?? []);
    const last = members.at(-1);
    if (last === undefined || members.length < MOST_READ) return;
    from = `(${last}`;
  }
}
