import type { StoredReceiver } from '../../store/definitions.ts';
import { compareEntries } from '../../store/log-entry.ts';
import { readBatch } from './log-batch.ts';
import { matchesOf } from './matches.ts';
import type { RelayParts, RelayStores } from './relay-parts.ts';

/** What events are dropped with. */
export type DropParts = Pick<RelayParts, 'directory' | 'signals' | 'log'> & {
  stores: Pick<RelayStores, 'registry' | 'events' | 'lease' | 'dropped'>;
};

/** The most events behind one cursor that are read in one round. */
const MOST_READ = 10_000;

/**
 * Drops what a receiver can no longer get as the retention has ended: its open deliveries, and events behind its cursor; and
 * reports what was dropped. Returns the moment (Redis time, ms) up to which the log may be trimmed: no event leaves it
 * uncounted.
 */
export async function dropExpired(
  parts: DropParts,
  receiver: StoredReceiver,
  beforeMs: number,
): Promise<number> {
  const { stores, signals, log } = parts;
  const { name, removed: isAway } = receiver;
  const open = await stores.dropped.dropExpired(name, beforeMs);
  const { count, reachedMs } = await dropBehind(parts, receiver, beforeMs);
  // What is lost while it is away counts once it is back: one that was removed for good has lost nothing.
  let lost = open + (isAway ? 0 : count);
  for (const { reason, ...report } of await stores.dropped.report(name, { isAway })) {
    log.error({ receiver: name, ...report, reason }, 'receiver.events_dropped');
    if (reason === 'away') lost += report.count;
  }
  if (lost > 0) signals.emit('receiver.events-dropped', { receiver: name, count: lost });
  return reachedMs;
}

/** Drops the events behind the cursor of a receiver. Returns how many it matched, and up to where it has come. */
async function dropBehind(
  { stores, directory }: DropParts,
  receiver: StoredReceiver,
  beforeMs: number,
): Promise<{ count: number; reachedMs: number }> {
  const { registry, events, lease, dropped } = stores;
  const { name, removed } = receiver;
  const reason = removed ? 'away' : 'retention';
  const cursor = await lease.cursor(name);
  let noted = await dropped.reached(name);
  let place = cursor === null || (noted !== null && compareEntries(noted, cursor) > 0) ? noted : cursor;
  let count = 0;
  if (cursor === null || place === null) return { count, reachedMs: beforeMs };
  for (let left = MOST_READ, more = msOf(place) < beforeMs; more; ) {
    if (left <= 0) return { count, reachedMs: msOf(place) };
    const piece = await events.between(place, { before: `${beforeMs}-0`, count: left });
    const { facts, last, isCut } = await readBatch(piece.entries, events);
    const to = isCut ? last : (piece.entries.at(-1)?.id ?? null);
    if (to === null) break;
    const matched = await matchesOf(receiver, facts, { registry, directory });
    const ids = matched.map(({ event }) => event.id);
    if (!(await dropped.noteBehind(name, { cursor, from: noted, to, reason }, ids))) {
      return { count, reachedMs: msOf(place) };
    }
    count += ids.length;
    left -= piece.entries.length;
    [noted, place] = [to, to];
    more = isCut || piece.more;
  }
  return { count, reachedMs: beforeMs };
}

function msOf(entry: string): number {
  return Number(entry.split('-')[0]);
}
