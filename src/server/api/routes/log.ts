import { z } from 'zod';
import {
  behindTrimmed,
  type EventFilter,
  type EventPage,
  eventsAfter,
  eventsBefore,
  LOG_PLACE,
  type LogPlace,
} from '../../../operations/events.ts';
import { followEvents, pullEvents, startOf } from '../../../operations/log-tail.ts';
import { type OperationContext, UnknownError } from '../../../operations/operation.ts';
import { type TimeInput, timeMs } from '../../../operations/time.ts';
import { redisTimeMs } from '../../../store/commands.ts';
import { ProblemError } from '../../problem.ts';
import { defineRoute, NO_INPUT, type RouteAnswer } from '../route.ts';
import {
  cursorField,
  EVENT,
  EVENT_ID,
  limitField,
  NEXT,
  RECEIVER_NAME,
  SUBJECT_ID,
  spanField,
  TIME,
  TYPES,
  writeCursor,
} from '../shapes.ts';
import { CONSUMER_NAME } from './consumers.ts';

const PAGE = z
  .object({
    events: z.array(EVENT),
    next: NEXT.describe(
      'Where it goes on, to be passed as `after`. Null at the end of `order=newest`; else there is one.',
    ),
    more: z.boolean().describe('Whether there is more at once.'),
  })
  .meta({ id: 'EventPage' });

/** A place from which the log is listed backward. */
const BACKWARD = z.object({ log: LOG_PLACE.shape.log, before: LOG_PLACE.shape.after });

const CURSOR_ERROR = 'a cursor: `next` of an answer, or the id of an event of the stream';

const FILTER = {
  type: TYPES,
  subject: SUBJECT_ID.exactOptional().describe('About this subject.'),
  since: TIME.exactOptional().describe('From when on; left out: all that are stored.'),
};

const LOST = 'Behind the cursor events have left the log (`retention`): some would be missing.';
const NEWER = 'A newer version wrote what comes next, and this one cannot read it.';

export const listEvents = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/events',
  operation: 'listEvents',
  group: 'events',
  summary: 'List events, or pull the log',
  description: [
    'Every event, whoever it is for, the oldest first: each once, those of a subject in their order. Without `after` it begins at `since`, or with the oldest that is stored. Pass `next` as `after` to go on. With `wait`, an answer without events comes only when none was made for so long.',
    'A consumer stores its cursor itself, or names itself by `consumer`: then its place is stored here. Only `POST /consumers/{name}/ack` moves it: until then the consumer gets the same events again. `consumer` and `after` together are refused.',
    '`order=newest` lists backward, from `until` down to `since`.',
  ].join('\n\n'),
  scope: 'read',
  follows: 'waiting',
  query: z.strictObject({
    ...FILTER,
    until: TIME.exactOptional().describe('Up to when; then nothing is waited for.'),
    order: z.enum(['oldest', 'newest']).default('oldest').describe('Which come first.'),
    after: cursorField(z.union([LOG_PLACE, BACKWARD]), CURSOR_ERROR)
      .exactOptional()
      .describe('`next` of the answer before.'),
    consumer: CONSUMER_NAME.exactOptional(),
    wait: spanField({ most: '60s' })
      .exactOptional()
      .describe('How long to wait when there is no event, such as `30s`.'),
    limit: limitField({ most: 500, preset: 100 }).describe('How many.'),
  }),
  answers: { 200: { description: 'Some of them.', schema: PAGE } },
  problems: { 409: NEWER, 410: LOST },
  handle: async ({ query }, { deps, signal }) => {
    const { operations, tail } = deps();
    const { type: types, subject, order, after = null, consumer, wait = 0, limit } = query;
    const filter = { types, ...(subject === undefined ? {} : { subject }) };
    if (consumer !== undefined && after !== null) {
      throw new ProblemError(
        400,
        'query.after: found it with consumer, expected one of them: POST /consumers/{name}/ack moves a consumer',
      );
    }
    const range = await rangeOf(query, operations);
    if (order === 'newest') {
      if (consumer !== undefined || wait > 0 || (after !== null && 'after' in after)) {
        throw new ProblemError(
          400,
          'found order=newest with wait, consumer or a cursor of the other order, expected it without',
        );
      }
      return newestFirst({ ...range, filter, limit, before: after?.before ?? null }, operations);
    }
    if (after !== null && 'before' in after) {
      throw new ProblemError(400, 'query.after: found a cursor of order=newest, expected one of this order');
    }
    const place = consumer === undefined ? after : await operations.stores.consumers.place(consumer);
    const start = place === null ? { sinceMs: range.sinceMs } : { place };
    if (range.untilMs === null) {
      const request = { start, filter, limit, waitMs: wait };
      const { page, next } = await pullEvents(request, { deps: operations, tail, signal });
      return pageAnswer(page, next);
    }
    const from = await startOf(start, operations);
    const page = await eventsAfter({ after: from, untilMs: range.untilMs, filter, limit }, operations);
    return pageAnswer(page, { log: await operations.stores.events.name(), after: page.reached });
  },
});

type Range = { sinceMs: number | null; untilMs: number | null };

async function rangeOf(
  { since, until }: { since?: TimeInput; until?: TimeInput },
  { redis }: OperationContext,
): Promise<Range> {
  const nowMs = await redisTimeMs(redis);
  return {
    // A place in the future would skip the entries until then.
    sinceMs: since === undefined ? null : Math.min(nowMs, timeMs(since, nowMs)),
    untilMs: until === undefined ? null : timeMs(until, nowMs),
  };
}

async function newestFirst(
  {
    sinceMs,
    untilMs,
    filter,
    limit,
    before,
  }: Range & { filter: EventFilter; limit: number; before: string | null },
  deps: OperationContext,
): Promise<RouteAnswer> {
  const end = untilMs === null ? '+' : `${Math.max(0, Math.floor(untilMs))}-0`;
  const page = await eventsBefore({ before: before ?? end, sinceMs, filter, limit }, deps);
  const place = page.more ? { log: await deps.stores.events.name(), before: page.reached } : null;
  return pageAnswer(page, place);
}

function pageAnswer(
  { events, more }: EventPage,
  next: LogPlace | { log: string; before: string } | null,
): RouteAnswer {
  return { status: 200, body: { events: events.map(({ event }) => event), next: writeCursor(next), more } };
}

export const streamEvents = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/events/stream',
  operation: 'streamEvents',
  group: 'events',
  summary: 'Follow events as server-sent events',
  description:
    'Each event as `id` (a cursor), `event` (its type) and `data` (the event as JSON). A client that was cut off passes the last `id` as `Last-Event-ID`, as browsers do by themselves, and gets what came since. Without it, the stream begins at `since`, or with the next event. At once, and every 5 s when nothing else does, an `id` comes alone: it goes on from there. While Redis does not answer, nothing comes.',
  scope: 'read',
  follows: 'always',
  query: z.strictObject({
    ...FILTER,
    since: TIME.exactOptional().describe('From when on; left out: from now on.'),
    after: cursorField(LOG_PLACE, CURSOR_ERROR)
      .exactOptional()
      .describe('As `Last-Event-ID`, which goes before it.'),
  }),
  answers: {
    200: { description: 'The events, without end.', schema: z.string(), contentType: 'text/event-stream' },
  },
  problems: { 409: NEWER, 410: LOST },
  handle: async ({ query }, { deps, signal, lastEventId }) => {
    const { operations, tail } = deps();
    const { type: types, subject } = query;
    const filter = { types, ...(subject === undefined ? {} : { subject }) };
    const { sinceMs } = await rangeOf(query, operations);
    const place = lastEventId === null ? (query.after ?? null) : placeOf(lastEventId);
    const start = place === null ? { sinceMs } : { place };
    const isNew = place === null && sinceMs === null;
    const after = isNew
      ? await behindTrimmed(await operations.stores.events.newest(), operations)
      : await startOf(start, operations);
    const events = followEvents({ after, filter }, { deps: operations, tail, signal });
    return { status: 200, stream: textOf(events), contentType: 'text/event-stream' };
  },
});

function placeOf(lastEventId: string): LogPlace {
  const read = cursorField(LOG_PLACE, CURSOR_ERROR).safeParse(lastEventId);
  if (read.success) return read.data;
  throw new ProblemError(400, `Last-Event-ID: expected ${CURSOR_ERROR}`);
}

async function* textOf(events: ReturnType<typeof followEvents>): AsyncGenerator<string> {
  yield 'retry: 2000\n';
  for await (const { place, event } of events) {
    const id = `id: ${writeCursor(place)}\n`;
    // An id alone is no event for a client, but the client stores it.
    yield event === null ? `${id}\n` : `${id}event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
  }
}

/** One whole event as one receiver gets it. A link in a shortened event leads here too. */
export const readEvent = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/events/{id}',
  operation: 'readEvent',
  group: 'events',
  summary: 'Read an event as a receiver gets it',
  description:
    'The event whole, also where the webhook was cut. A signed link (`data.recordUrl`) to this very event needs no token: it carries `expires` and `signature`.',
  scope: 'read',
  acceptsLink: true,
  params: z.strictObject({ id: EVENT_ID }),
  query: z.strictObject({
    receiver: RECEIVER_NAME.describe('As which receiver gets it: metadata of others is not shown.'),
    expires: z.string().exactOptional().describe('Of a link: until when it is good.'),
    signature: z.string().exactOptional().describe('Of a link: that it was made here.'),
  }),
  answers: { 200: { description: 'The event.', schema: EVENT } },
  problems: { 404: 'The receiver has no delivery of this event, or its retention is over.' },
  handle: async ({ params: { id }, query: { receiver } }, { findEvent }) => {
    const event = await findEvent({ id, receiver });
    if (event !== null) return { status: 200, body: event };
    throw new UnknownError(`receiver ${receiver} has no delivery of this event, or its retention is over`);
  },
});
