import { type Event, eventId } from '../domain/events/event.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Truncation } from './append-only.ts';
import { type RedisClient, redisTimeMs } from './commands.ts';
import type { Keys } from './keys.ts';
import { scripts } from './scripts.ts';

/** The subject, content and time (Redis time) of an operator event. */
export type OperatorEventFacts = {
  kind: 'upstream' | 'receiver' | 'intentwatch';
  name: string;
  word: string;
  nowMs: number;
  record: JsonObject;
};

/** Returns the subject id of a part of the daemon's surroundings. */
export function operatorSubject(kind: OperatorEventFacts['kind'], name: string): string {
  return `${kind}:${name}`;
}

/** Builds an operator event as JSON. A script fills in its id, sequence, epoch and previous state. */
export function operatorEventTemplate({ kind, name, word, nowMs, record }: OperatorEventFacts): string {
  const event: Event = {
    id: '%ID%',
    type: `${kind}.${word}`,
    timestamp: new Date(nowMs).toISOString(),
    data: {
      subject: { kind, id: operatorSubject(kind, name) },
      sequence: 0,
      epoch: 0,
      status: word,
      previousStatus: '%FROM%',
      changes: ['status'],
      record,
      upstreamUpdatedAt: null,
      detectionDelaySeconds: null,
    },
  };
  return JSON.stringify(event).replace('"sequence":0,"epoch":0', '"sequence":%SEQ%,"epoch":%EPOCH%');
}

type Reports = { redis: RedisClient; keys: Keys };

/** Reports a loss of writes in the append-only file: once for each truncation, under one id, from however many processes. */
export async function reportTruncation(
  reports: Reports,
  { file, bytes, lastWriteMs, changedAtMs }: Truncation,
): Promise<void> {
  await reportToOperator(reports, {
    name: 'storage',
    word: 'storage_truncated',
    mark: [file, String(bytes), String(changedAtMs)],
    isOnce: true,
    record: {
      file,
      lostBytes: bytes,
      lostFrom: lastWriteMs === null ? null : new Date(lastWriteMs).toISOString(),
      lostUntil: new Date(changedAtMs).toISOString(),
      reason: 'the append-only file of the embedded Redis was damaged: some of its writes are lost',
    },
  });
}

/** A report about a part of the daemon. `isOnce`: it happens once, and every report of it has one id. */
type Report = { name: string; word: string; mark: readonly string[]; isOnce?: boolean; record: JsonObject };

/** Reports an event of the daemon to the operator. The same `mark` is not reported twice in a row, with `isOnce` never again. */
export async function reportToOperator(
  { redis, keys }: Reports,
  { name, word, mark, isOnce = false, record }: Report,
): Promise<void> {
  const kind = 'intentwatch';
  const subject = operatorSubject(kind, name);
  const nowMs = await redisTimeMs(redis);
  const id = eventId([subject, word, ...mark, ...(isOnce ? [] : [String(nowMs)])]);
  const event = operatorEventTemplate({ kind, name, word, nowMs, record });
  await scripts.report(redis, {
    keys,
    args: { subject, id, event, mark: [word, ...mark].join('|'), isOnce },
  });
}

/** Makes the next report about a part of the daemon appended, also where it equals the one before. */
export async function removeReport({ redis, keys }: Reports, name: string): Promise<void> {
  await redis.hdel(keys.reports, `${operatorSubject('intentwatch', name)}|last`);
}
