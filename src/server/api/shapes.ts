import { z } from 'zod';
import { parseDuration } from '../../config/fields/fields.ts';
import { RENDERED_EVENT } from '../../domain/events/event-schema.ts';
import { MAX_GLOB_LENGTH } from '../../domain/events/filter.ts';
import { readSubjectId, type SubjectId } from '../../domain/subjects/subject.ts';
import { parseTime, TIME_EXPECTED, type TimeInput } from '../../operations/time.ts';
import { SUBJECT_STATE } from '../../operations/timeline.ts';

export const EVENT_ID = z
  .string()
  .regex(/^evt_[0-9a-f]{40}$/, { error: 'an event id: evt_ and 40 hex digits' })
  .describe('The id of an event.');

export const RECEIVER_NAME = z
  .string({ error: 'the name of a receiver' })
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, { error: 'the name of a receiver' })
  .describe('The name of a receiver.');

export const EVENT = RENDERED_EVENT.meta({ id: 'Event' });

/** Body of every refused request (RFC 9457). */
export const PROBLEM = z
  .object({
    type: z.literal('about:blank'),
    title: z.string(),
    status: z.int(),
    detail: z.string().describe('What was found and what was expected.'),
    errors: z
      .array(z.object({ place: z.string(), found: z.string(), expected: z.string() }))
      .exactOptional()
      .describe('Where in the request, when it could not be read.'),
  })
  .meta({ id: 'Problem' });

const SUBJECT_EXPECTED = { error: 'the id of a subject, such as intent:0x…' };

export const SUBJECT_ID = z
  .string(SUBJECT_EXPECTED)
  .min(3, SUBJECT_EXPECTED)
  .max(300, SUBJECT_EXPECTED)
  .transform((text, context): SubjectId => {
    const subject = readSubjectId(text);
    if (subject !== null) return subject;
    context.addIssue({ code: 'custom', message: SUBJECT_EXPECTED.error });
    return z.NEVER;
  })
  .describe('The id of a subject, with its prefix, such as `intent:0x…`.');

export const TIME = z.string({ error: TIME_EXPECTED }).transform((text, context): TimeInput => {
  const time = parseTime(text);
  if (time !== null) return time;
  context.addIssue({ code: 'custom', message: TIME_EXPECTED });
  return z.NEVER;
});

/** A span of time in a query, in ms. */
export function spanField({ most }: { most: string }) {
  const mostMs = parseDuration(most) ?? 0;
  const expected = `a span of at most ${most}, such as 10s`;
  return z.string({ error: expected }).transform((text, context) => {
    const ms = parseDuration(text);
    if (ms !== null && ms <= mostMs) return ms;
    context.addIssue({ code: 'custom', message: expected });
    return z.NEVER;
  });
}

export const FLAG = z.enum(['true', 'false']).transform((word) => word === 'true');

/** A parameter of a query that may be repeated. */
export function listField<T>(item: z.ZodType<T>) {
  return z.preprocess(
    (value) => (value === undefined ? [] : Array.isArray(value) ? value : [value]),
    z.array(item).max(50, { error: 'at most 50 of them' }),
  );
}

export function limitField({ most, preset }: { most: number; preset: number }) {
  const error = `a whole number from 1 to ${most}`;
  return z.coerce.number({ error }).int({ error }).min(1, { error }).max(most, { error }).default(preset);
}

const TYPE_GLOB = z
  .string({ error: 'an event type' })
  .regex(new RegExp(`^!?[A-Za-z0-9._*-]{1,${MAX_GLOB_LENGTH}}$`), {
    error: `an event type such as intent.filled, at most ${MAX_GLOB_LENGTH} characters with *, after a leading !`,
  });

/** Refuses a list that selects nothing. */
function selectsTypes(patterns: readonly string[]): boolean {
  return patterns.length === 0 || patterns.some((pattern) => !pattern.startsWith('!'));
}

const SELECTS_TYPES = { error: 'at least one pattern without "!", like "*"' };

/** Event types in a query; none: all. */
export const TYPES = listField(TYPE_GLOB)
  .refine(selectsTypes, SELECTS_TYPES)
  .describe('Of these event types, with `*` and a leading `!`.');

/** Event types in a body. */
export const TYPE_LIST = z
  .array(TYPE_GLOB, { error: 'a list of event types' })
  .min(1)
  .max(50)
  .refine(selectsTypes, SELECTS_TYPES);

export const NEXT = z
  .string()
  .nullable()
  .describe('Where it goes on, to be passed as `cursor`; null at the end.');

export const NEXT_AFTER = NEXT.describe('Where it goes on, to be passed as `after`; null at the end.');

export const SUBJECT_DETAILS = SUBJECT_STATE.extend({ next: NEXT_AFTER }).meta({ id: 'SubjectDetails' });

/** A subject with a page of its timeline. */
export type SubjectDetails = z.infer<typeof SUBJECT_DETAILS>;

export const RESENT = z
  .object({
    replays: z.array(
      z.object({
        receiver: z.string(),
        replay: z.string().describe('How far it is: `GET /replays/{id}`.'),
        events: z.int().describe('How many events it sends.'),
      }),
    ),
  })
  .meta({ id: 'Resent' });

export const RESENT_SUBJECT = RESENT.extend({
  leftOut: z
    .int()
    .describe(
      'How many of its events are not sent: they have left the log, or are before its newest 100. `POST /receivers/{name}/resend` sends what is in the log by its time.',
    ),
}).meta({ id: 'ResentSubject' });

export const RETRIED = z
  .object({
    renewed: z.int().describe('How many are queued again.'),
    deadLetters: z.int().describe('Of how many.'),
    gone: z.int().describe('How many cannot be: their events have left the log.'),
  })
  .meta({ id: 'Retried' });

/** Encodes a place in a list as a cursor, which is opaque to clients. */
export function writeCursor(place: object | null): string | null {
  return place === null ? null : Buffer.from(JSON.stringify(place)).toString('base64url');
}

/** Reads a cursor that `writeCursor` made of such a place. */
export function cursorField<T>(place: z.ZodType<T>, error = 'a cursor: `next` of the answer before') {
  return z
    .string({ error })
    .max(500, { error })
    .transform((text, context): T => {
      const read = place.safeParse(parsed(Buffer.from(text, 'base64url').toString('utf8')));
      if (read.success) return read.data;
      context.addIssue({ code: 'custom', message: error });
      return z.NEVER;
    });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
