import type { Event } from '../../src/domain/events/event.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { EventLog } from '../../src/store/event-log.ts';
import type { Keys } from '../../src/store/keys.ts';
import { type ExpectedEntry, type LogEntry, writtenEntry } from '../../src/store/log-entry.ts';

/** An event of an invented transfer, as the commit script stores one. */
export type MadeEvent = { subject: string; sequence: number; type?: string; atMs: number; key: string };

/** The id of an invented event. */
export function madeEventId({ subject, sequence }: Pick<MadeEvent, 'subject' | 'sequence'>): string {
  return `evt_${Buffer.from(`${subject} ${sequence}`).toString('hex').slice(-40).padStart(40, '0')}`;
}

/** The entry of an invented event, before it has an id. */
export function madeEntry({
  subject,
  sequence,
  type = 'intent.filled',
  atMs,
  key,
}: MadeEvent): ExpectedEntry {
  const event: Event = {
    id: madeEventId({ subject, sequence }),
    type,
    timestamp: new Date(atMs).toISOString(),
    data: {
      subject: { kind: 'intent', id: subject },
      sequence,
      epoch: 1,
      status: 'filled',
      previousStatus: 'pending',
      changes: ['status'],
      record: { id: subject, type: 'intent', status: 'filled', updatedAt: 1_700_000_000 },
      upstreamUpdatedAt: 1_700_000_000,
      detectionDelaySeconds: 1,
    },
  };
  return { event, packed: JSON.stringify(event), claimKeys: [key] };
}

/** Appends events to the log at their times, which may lie in the future: so a test lets time pass. */
export async function appendEvents(
  redis: RedisClient,
  keys: Keys,
  events: readonly MadeEvent[],
  entryOf = ({ atMs }: MadeEvent): string => `${atMs}-*`,
): Promise<string[]> {
  const added = events.map((made) => {
    const { fields } = writtenEntry('', madeEntry(made));
    return redis.xadd(keys.events, entryOf(made), ...fields);
  });
  return (await Promise.all(added)).map((entry) => entry ?? '');
}

/** Appends the release of an event that has expired from the log meanwhile. */
export async function appendLost(
  { redis, keys }: { redis: RedisClient; keys: Keys },
  { id, key, at = '*' }: { id: string; key: string; at?: string },
): Promise<string> {
  const fields = {
    kind: 'subscribers',
    event: id,
    entry: '1-0',
    claimKeys: JSON.stringify([key]),
    suspended: '1',
  };
  return (await redis.xadd(keys.events, at, ...Object.entries(fields).flat())) ?? '';
}

export async function logEntries(redis: RedisClient, keys: Keys): Promise<LogEntry[]> {
  const log = new EventLog(redis, keys);
  const found: LogEntry[] = [];
  for (;;) {
    const { entries, more } = await log.after(found.at(-1)?.id ?? '0-0', 10_000);
    found.push(...entries);
    if (!more) return found;
  }
}
