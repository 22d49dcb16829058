import { WebhookError } from './error.ts';
import { EVENT_TYPES, type EventEnvelope } from './event-types.ts';

/** Every event type that this version knows. A newer daemon, or a new status of the upstream, may send others. */
export type EventType = (typeof EVENT_TYPES)[number];

/** The text before the dot of a type: `intent`, `quote`, `gasless` … */
export type EventKind = KindOf<EventType>;

type KindOf<Type extends string> = Type extends `${infer Kind}.${string}` ? Kind : never;

type Data = EventEnvelope['data'];

/** The event of one type, or of each of several. */
export type EventOf<Type extends EventType> = Type extends EventType
  ? EventEnvelope & { type: Type; data: Data & { subject: Data['subject'] & { kind: KindOf<Type> } } }
  : never;

/** An event of a type that this version knows: switch on `type` to narrow it. */
export type KnownEvent = EventOf<EventType>;

/** Any event, also of a type that this version does not know. */
export type AnyEvent = EventEnvelope;

const CATALOGUE: ReadonlySet<string> = new Set(EVENT_TYPES);

/** True when an event is of a type that this version knows. */
export function isKnownEvent(event: AnyEvent): event is KnownEvent {
  return CATALOGUE.has(event.type);
}

/** Reads an event. Checks only the members that this package uses, so that additions pass. Throws `event_invalid`. */
export function parseEvent(bytes: Buffer): AnyEvent {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw new WebhookError(
      'event_invalid',
      `the body is not JSON: ${error instanceof Error ? error.message : error}`,
    );
  }
  requireEvent(value);
  return value;
}

function requireEvent(value: unknown): asserts value is AnyEvent {
  const problem = problemWith(value);
  if (problem !== null) throw new WebhookError('event_invalid', `the body is no event: ${problem}`);
}

function problemWith(event: unknown): string | null {
  if (!isObject(event)) return 'found no object';
  const { id, type, timestamp, data } = event;
  if (typeof id !== 'string' || id === '') return 'found no id, expected a text';
  if (typeof type !== 'string' || type === '') return 'found no type, expected a text';
  if (typeof timestamp !== 'string' || Number.isNaN(Date.parse(timestamp)))
    return 'found no timestamp, expected a time';
  if (!isObject(data)) return 'found no data, expected an object';
  if (!isObject(data.subject) || typeof data.subject.id !== 'string')
    return 'found no data.subject.id, expected a text';
  if (!Number.isSafeInteger(data.sequence)) return 'found no data.sequence, expected a whole number';
  return null;
}

function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
