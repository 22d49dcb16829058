import { z } from 'zod';
import { listUndelivered, UNDELIVERED, UNDELIVERED_PLACE } from '../../../operations/undelivered.ts';
import { cursorField, writeCursor } from '../cursor.ts';
import { defineRoute, NO_INPUT } from '../route.ts';
import { limitField, listField, NEXT, RECEIVER_NAME, SUBJECT_ID, TYPE_GLOB } from '../shapes.ts';

/** What was not delivered. */
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
    type: listField(TYPE_GLOB).describe('Of these event types, with `*` and a leading `!`.'),
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
  handle: async ({ query }, { parts }) => {
    const { receiver, type, limit, cursor = null, ...rest } = query;
    const filter = { receivers: receiver, types: type, ...rest };
    const { undelivered, next } = await listUndelivered({ filter, from: cursor, limit }, parts().operations);
    return { status: 200, body: { undelivered, next: writeCursor(next) } };
  },
});
