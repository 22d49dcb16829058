import { z } from 'zod';
import type { Event } from '../domain/events/event.ts';
import { STORED_EVENT } from '../domain/events/event-schema.ts';
import { SCHEMA_VERSION } from './commands.ts';
import { unpack } from './packed.ts';
import { JSON_TEXT, reasonOf } from './stored.ts';

/** Move of a cursor from one entry of the log to a later one. */
export type CursorMove = { from: string; to: string };

/** An entry that cannot be parsed, with its raw fields. `version` is that of its writer. */
export type UnreadableEntry = {
  kind: 'unreadable';
  id: string;
  version: number;
  reason: string;
  fields: readonly string[];
};

/**
 * One entry of the log. `event`: a fact with the claims (by subscription key) that it matches, and the suspended ones for
 * which it waited (`withheld`). `subscribers`: claims that came later, or back (`isSuspended`), and match the event at
 * `entry`. `operator`: an event about the daemon's own surroundings. Content decides the kind of an unknown one.
 */
export type LogEntry =
  | { kind: 'event'; id: string; event: Event; claimKeys: string[]; withheld: string[] }
  | {
      kind: 'subscribers';
      id: string;
      entry: string;
      eventId: string;
      claimKeys: string[];
      isSuspended: boolean;
      fields: readonly string[];
    }
  | { kind: 'operator'; id: string; event: Event }
  | UnreadableEntry;

/** Subjects of operator events. Any other event goes only to the subscriptions that claimed its subject. */
const SURROUNDINGS: ReadonlySet<string> = new Set(['upstream', 'receiver', 'intentwatch']);

const EVENT_TEXT = JSON_TEXT.pipe(STORED_EVENT).transform((event): Event => event);

const CLAIM_KEYS = JSON_TEXT.pipe(z.array(z.string()));

const SUBSCRIBERS = z.object({
  event: z.string(),
  entry: z.string().regex(/^\d+-\d+$/),
  claimKeys: CLAIM_KEYS,
  suspended: z.string().optional(),
});

const VERSION = z
  .string()
  .regex(/^\d{1,9}$/)
  .transform(Number)
  .catch(SCHEMA_VERSION);

/** Parses an entry of the log: the only place that does so. Never throws. */
export function parseEntry(id: string, stored: readonly string[]): LogEntry {
  const list = stored.map(unpack);
  const fields = new Map<string, string>();
  for (let index = 0; index + 1 < list.length; index += 2)
    fields.set(list[index] ?? '', list[index + 1] ?? '');
  const kind = fields.get('kind');
  if (kind === 'subscribers') {
    const subscribers = SUBSCRIBERS.safeParse(Object.fromEntries(fields));
    if (!subscribers.success) return unreadable(id, { list, fields, error: subscribers.error });
    const { event: eventId, entry, claimKeys, suspended } = subscribers.data;
    return { kind, id, entry, eventId, claimKeys, isSuspended: suspended === '1', fields: list };
  }
  const event = EVENT_TEXT.safeParse(fields.get('event'));
  if (!event.success) return unreadable(id, { list, fields, error: event.error });
  const isOperators =
    kind === 'operator' || (kind !== 'event' && SURROUNDINGS.has(event.data.data.subject.kind));
  if (isOperators) return { kind: 'operator', id, event: event.data };
  const claimKeys = CLAIM_KEYS.safeParse(fields.get('claimKeys'));
  if (!claimKeys.success) return unreadable(id, { list, fields, error: claimKeys.error });
  const withheld = CLAIM_KEYS.safeParse(fields.get('withheld') ?? '[]').data ?? [];
  return eventEntry(id, event.data, { claimKeys: claimKeys.data, withheld });
}

/** An entry of the log with its fields, as Redis stores them. */
export type StoredEntry = { id: string; fields: readonly string[]; entry: LogEntry };

/** An entry of an event before it has an id. `packed` and `claimKeys` are the event and its subscription keys as it stores them. */
export type ExpectedEntry = { event: Event; packed: string; claimKeys: readonly string[] };

/** Builds the entry that was expected, once it has an id; or, with a name in place of that, before. */
export function writtenEntry(id: string, { event, packed, claimKeys }: ExpectedEntry): StoredEntry {
  return storedEntry(id, event, { packed, claimKeys: JSON.stringify(claimKeys), withheld: '' });
}

/**
 * Builds the entry of an event that this process has just stored with these texts, as `parseEntry` reads it. A proof has its
 * members in another order than its text is read in, and receivers get the same bytes each time.
 */
export function storedEntry(
  id: string,
  event: Event,
  { packed, claimKeys, withheld }: { packed: string; claimKeys: string; withheld: string },
): StoredEntry {
  const fields = eventFields(event.id, { packed, claimKeys, withheld });
  const keysOf = (text: string): string[] => CLAIM_KEYS.parse(text === '' ? '[]' : text);
  const entry =
    event.data.proof === undefined
      ? eventEntry(id, event, { claimKeys: keysOf(claimKeys), withheld: keysOf(withheld) })
      : parseEntry(id, fields);
  return { id, fields, entry };
}

function eventEntry(
  id: string,
  event: Event,
  { claimKeys, withheld }: { claimKeys: readonly string[]; withheld: readonly string[] },
): LogEntry {
  const { id: subject } = event.data.subject;
  const whole = (keys: readonly string[]): string[] => keys.map((key) => wholeKey(key, subject));
  return { kind: 'event', id, event, claimKeys: whole(claimKeys), withheld: whole(withheld) };
}

/** Returns the fields of an entry as commands/commit-12.lua stores them. */
function eventFields(
  id: string,
  { packed, claimKeys, withheld }: { packed: string; claimKeys: string; withheld: string },
): string[] {
  const fields = ['v', String(SCHEMA_VERSION), 'kind', 'event', 'event', packed, 'claimKeys', claimKeys];
  const beside = withheld === '' ? [] : ['withheld', withheld];
  return beside.length > 0 || claimKeys === '[]' ? [...fields, ...beside, 'id', id] : fields;
}

/** Completes a subscription key that ends with its bar by the subject of the event. */
function wholeKey(key: string, subject: string): string {
  return key.endsWith('|') ? `${key}${subject}` : key;
}

/** Returns a subscription key as the entries of a subject store it. */
export function shortKey(key: string, subject: string): string {
  return key.endsWith(`|${subject}`) ? key.slice(0, -subject.length) : key;
}

/** Returns the event of an entry; null for an entry without a readable one. */
export function eventOf(entry: LogEntry | null): Event | null {
  return entry?.kind === 'event' || entry?.kind === 'operator' ? entry.event : null;
}

/** True when a version after this one wrote an entry, and may be able to read it. */
export function isOfNewerVersion({ version }: UnreadableEntry): boolean {
  return version > SCHEMA_VERSION;
}

function unreadable(
  id: string,
  found: { list: readonly string[]; fields: ReadonlyMap<string, string>; error: z.ZodError },
): UnreadableEntry {
  const { list, fields, error } = found;
  const version = fields.has('v') ? VERSION.parse(fields.get('v')) : 0;
  return { kind: 'unreadable', id, version, reason: reasonOf(error), fields: list };
}

/** Orders places in the log, `<ms>-<count>`, oldest first. */
export function compareEntries(one: string, other: string): number {
  const [ms = 0, count = 0] = one.split('-').map(Number);
  const [otherMs = 0, otherCount = 0] = other.split('-').map(Number);
  return ms - otherMs || count - otherCount;
}

/** Returns the first place that an entry after this one can have. */
export function placeAfter(entry: string): string {
  const [ms = '0', count = '0'] = entry.split('-');
  return `${ms}-${BigInt(count) + 1n}`;
}
