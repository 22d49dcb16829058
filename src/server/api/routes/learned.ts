import { z } from 'zod';
import { forgetLearned, LEARNED, readLearned } from '../../../operations/learned.ts';
import { defineRoute, NO_INPUT } from '../route.ts';

/** What was learned. */
export const readAllLearned = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/learned',
  operation: 'readLearned',
  group: 'corridors',
  summary: 'See all that was learned',
  description:
    'How long each stage takes on each route, and how often new transfers come, beside `/corridors`.',
  scope: 'read',
  answers: { 200: { description: 'All of it.', schema: LEARNED.meta({ id: 'Learned' }) } },
  handle: async (_input, { parts }) => ({ status: 200, body: await readLearned(parts().operations) }),
});

/** Removes what was learned. */
export const forgetAllLearned = defineRoute({
  ...NO_INPUT,
  method: 'DELETE',
  path: '/learned',
  operation: 'forgetLearned',
  group: 'corridors',
  summary: 'Forget what was learned',
  description: 'On one route, or on all. Polling begins with what is expected before anything is learned.',
  scope: 'admin',
  query: z.strictObject({
    route: z
      .string()
      .min(1, { error: 'a route, such as 8453:10' })
      .exactOptional()
      .describe('Only on this route, such as `8453:10`.'),
  }),
  answers: {
    200: {
      description: 'It is removed.',
      schema: z
        .object({ forgotten: z.int().describe('How many entries that were.') })
        .meta({ id: 'Forgotten' }),
    },
  },
  problems: { 404: 'Nothing was learned on this route.' },
  handle: async ({ query }, { parts }) => ({
    status: 200,
    body: { forgotten: await forgetLearned(query.route ?? null, parts().operations) },
  }),
});
