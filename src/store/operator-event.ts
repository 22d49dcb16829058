import type { Event } from '../domain/events/event.ts';
import type { JsonObject } from '../domain/json.ts';

/** What an operator's event is about, what happened to it and when (Redis time). */
export type OperatorEventParts = {
  kind: 'upstream' | 'receiver';
  /** The subject's id without its kind. */
  name: string;
  word: string;
  nowMs: number;
  record: JsonObject;
};

/** The subject id of something in the daemon's surroundings. */
export function operatorSubject(kind: OperatorEventParts['kind'], name: string): string {
  return `${kind}:${name}`;
}

/** An operator's event as JSON, with its id, its sequence and the state before left for a script to fill in. */
export function operatorEventTemplate({ kind, name, word, nowMs, record }: OperatorEventParts): string {
  const event: Event = {
    id: '%ID%',
    type: `${kind}.${word}`,
    timestamp: new Date(nowMs).toISOString(),
    data: {
      subject: { kind, id: operatorSubject(kind, name) },
      sequence: 0,
      status: word,
      previousStatus: '%FROM%',
      changes: ['status'],
      record,
      upstreamUpdatedAt: null,
      detectionDelaySeconds: null,
    },
  };
  return JSON.stringify(event).replace('"sequence":0', '"sequence":%SEQ%');
}
