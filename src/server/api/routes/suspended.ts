import { z } from 'zod';
import {
  DROPPED,
  DROPPED_PLACE,
  listDropped,
  listSuspended,
  REMOVED,
  removeSuspended,
  SUSPENDED,
  SUSPENDED_PLACE,
} from '../../../operations/suspended.ts';
import { defineRoute, NO_INPUT } from '../route.ts';
import { cursorField, limitField, NEXT, writeCursor } from '../shapes.ts';

export const listOfSuspended = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/suspended',
  operation: 'listSuspended',
  group: 'config',
  summary: 'List what left the config and may come back',
  description:
    'It is polled with spare budget, and its events wait. They are delivered when it comes back into the config within `removal.graceSpan`.',
  scope: 'read',
  query: z.strictObject({
    limit: limitField({ most: 200, preset: 50 }).describe('How many.'),
    cursor: cursorField(SUSPENDED_PLACE).exactOptional().describe('`next` of the page before.'),
  }),
  answers: {
    200: {
      description: 'Some of it, by name.',
      schema: z.object({ suspended: z.array(SUSPENDED), next: NEXT }).meta({ id: 'SuspendedPage' }),
    },
  },
  handle: async ({ query: { limit, cursor = null } }, { deps }) => {
    const { suspended, next } = await listSuspended({ from: cursor, limit }, deps().operations);
    return { status: 200, body: { suspended, next: writeCursor(next) } };
  },
});

export const listOfDropped = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/suspended/dropped',
  operation: 'listDropped',
  group: 'config',
  summary: 'List events that waited in vain',
  description:
    'What was dropped last comes first: events of what did not come back into the config in time, for `retention`. An event that is still in the log can be sent again.',
  scope: 'read',
  query: z.strictObject({
    limit: limitField({ most: 200, preset: 50 }).describe('How many.'),
    cursor: cursorField(DROPPED_PLACE).exactOptional().describe('`next` of the page before.'),
  }),
  answers: {
    200: {
      description: 'Some of them.',
      schema: z.object({ dropped: z.array(DROPPED), next: NEXT }).meta({ id: 'DroppedPage' }),
    },
  },
  handle: async ({ query: { limit, cursor = null } }, { deps }) => {
    const { dropped, next } = await listDropped({ from: cursor, limit }, deps().operations);
    return { status: 200, body: { dropped, next: writeCursor(next) } };
  },
});

export const removeOfSuspended = defineRoute({
  ...NO_INPUT,
  method: 'POST',
  path: '/suspended/remove',
  operation: 'removeSuspended',
  group: 'config',
  summary: 'Remove what left the config at once',
  description: 'It is polled no more, and the events that wait for it are dropped.',
  scope: 'admin',
  timeoutMs: 30_000,
  body: z
    .strictObject(
      {
        id: z
          .string({ error: 'an id as text' })
          .min(1, { error: 'an id' })
          .max(400, { error: 'an id of at most 400 characters' })
          .describe(
            'The id of a subject, with or without the prefix of its kind, or the name of a subscription.',
          ),
      },
      { error: 'an object' },
    )
    .meta({ id: 'Remove' }),
  answers: { 200: { description: 'It is removed.', schema: REMOVED } },
  problems: { 404: 'Nothing of that name is suspended.' },
  handle: async ({ body: { id } }, { deps }) => ({
    status: 200,
    body: await removeSuspended(id, deps().endSuspended),
  }),
});
