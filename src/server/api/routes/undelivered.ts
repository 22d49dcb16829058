import { z } from 'zod';
import {
  listQuarantined,
  listUndelivered,
  listUnmatched,
  QUARANTINE_REPLAYED,
  QUARANTINED_ENTRY,
  replayQuarantined,
  UNDELIVERED,
  UNDELIVERED_PLACE,
  UNMATCHED,
  UNMATCHED_PLACE,
} from '../../../operations/undelivered.ts';
import { defineRoute, NO_INPUT } from '../route.ts';
import {
  cursorField,
  limitField,
  listField,
  NEXT,
  RECEIVER_NAME,
  SUBJECT_ID,
  TYPES,
  writeCursor,
} from '../shapes.ts';

export const listOfUndelivered = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/undelivered',
  operation: 'listUndelivered',
  group: 'deliveries',
  summary: 'List what was not delivered',
  description:
    'Over all receivers: deliveries that failed and are tried again, and dead letters, which were given up. What waits for its first attempt is in the backlog of its receiver.',
  scope: 'read',
  query: z.strictObject({
    receiver: listField(RECEIVER_NAME).describe('To one of these.'),
    state: z.enum(['retrying', 'dead']).exactOptional().describe('Only these.'),
    type: TYPES,
    subject: SUBJECT_ID.exactOptional().describe('About this subject.'),
    limit: limitField({ most: 200, preset: 50 }).describe('How many.'),
    cursor: cursorField(UNDELIVERED_PLACE).exactOptional().describe('`next` of the page before.'),
  }),
  answers: {
    200: {
      description: 'Some of them.',
      schema: z.object({ undelivered: z.array(UNDELIVERED), next: NEXT }).meta({ id: 'UndeliveredPage' }),
    },
  },
  problems: { 404: 'There is no such receiver.' },
  handle: async ({ query }, { deps }) => {
    const { receiver, type, limit, cursor = null, ...rest } = query;
    const filter = { receivers: receiver, types: type, ...rest };
    const { undelivered, next } = await listUndelivered({ filter, from: cursor, limit }, deps().operations);
    return { status: 200, body: { undelivered, next: writeCursor(next) } };
  },
});

/** Lists events that no receiver gets. */
export const listOfUnmatched = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/unmatched',
  operation: 'listUnmatched',
  group: 'deliveries',
  summary: 'List events that no receiver gets',
  description:
    'The newest first, at most 10,000: those of subjects that nothing in the config leads to any more, and those of subscriptions that name a receiver that is not there. Events that filters withhold from all receivers, or that are only pulled, are counted in `intentwatch_events_unmatched_total` alone.',
  scope: 'read',
  query: z.strictObject({
    limit: limitField({ most: 200, preset: 50 }).describe('How many.'),
    cursor: cursorField(UNMATCHED_PLACE).exactOptional().describe('`next` of the page before.'),
  }),
  answers: {
    200: {
      description: 'Some of them.',
      schema: z.object({ unmatched: z.array(UNMATCHED), next: NEXT }).meta({ id: 'UnmatchedPage' }),
    },
  },
  handle: async ({ query: { limit, cursor = null } }, { deps }) => {
    const { unmatched, next } = await listUnmatched({ from: cursor, limit }, deps().operations);
    return { status: 200, body: { unmatched, next: writeCursor(next) } };
  },
});

export const listOfQuarantine = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/quarantine',
  operation: 'listQuarantined',
  group: 'events',
  summary: 'List entries of the log that could not be read',
  description: 'A newer version wrote them, or something else did. At most 1,000 are stored.',
  scope: 'read',
  answers: {
    200: {
      description: 'All of them, the oldest first.',
      schema: z
        .object({ entries: z.array(QUARANTINED_ENTRY.meta({ id: 'QuarantinedEntry' })) })
        .meta({ id: 'Quarantine' }),
    },
  },
  handle: async (_input, { deps }) => ({
    status: 200,
    body: { entries: await listQuarantined(deps().operations) },
  }),
});

export const replayOfQuarantine = defineRoute({
  ...NO_INPUT,
  method: 'POST',
  path: '/quarantine/replay',
  operation: 'replayQuarantined',
  group: 'events',
  summary: 'Put entries that can be read by now back into the log',
  description: 'Receivers get what they have not got yet.',
  scope: 'admin',
  timeoutMs: 30_000,
  answers: {
    200: { description: 'It is done.', schema: QUARANTINE_REPLAYED.meta({ id: 'QuarantineReplayed' }) },
  },
  handle: async (_input, { deps }) => ({
    status: 200,
    body: await replayQuarantined(deps().operations),
  }),
});
