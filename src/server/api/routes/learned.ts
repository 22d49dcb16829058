import { z } from 'zod';
import { CORRIDOR, corridorsOf } from '../../../domain/cadence/corridors.ts';
import { LEARNED, readLearned, removeLearned } from '../../../operations/learned.ts';
import { defineRoute, NO_INPUT } from '../route.ts';

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
  handle: async (_input, { deps }) => ({
    status: 200,
    body: await readLearned(deps().operations),
  }),
});

export const removeAllLearned = defineRoute({
  ...NO_INPUT,
  method: 'DELETE',
  path: '/learned',
  operation: 'removeLearned',
  group: 'corridors',
  summary: 'Remove what was learned',
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
        .object({ removed: z.int().describe('How many entries that were.') })
        .meta({ id: 'RemovedLearned' }),
    },
  },
  problems: { 404: 'Nothing was learned on this route.' },
  handle: async ({ query }, { deps }) => ({
    status: 200,
    body: { removed: await removeLearned(query.route ?? null, deps().operations) },
  }),
});

const CORRIDORS = z
  .object({
    corridors: z.array(CORRIDOR.meta({ id: 'Corridor' })),
    chains: z
      .record(z.string(), z.string())
      .describe('What the chains are called, by id, as far as is known.'),
  })
  .meta({ id: 'Corridors' });

export const listCorridors = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/corridors',
  operation: 'listCorridors',
  group: 'corridors',
  summary: 'List what was learned per pair of chains',
  description:
    'How long transfers take to be filled and settled, and how many were filled, not filled, reported as overdue and refunded. `expectedBy` of events is made from the same. What was seen a day ago counts half.',
  scope: 'read',
  answers: {
    200: {
      description: 'All of them, that of which most was seen first; all pairs together are `*`.',
      schema: CORRIDORS,
    },
  },
  handle: async (_input, { deps }) => {
    const { knowledge, directory } = deps().operations;
    const corridors = corridorsOf(await knowledge());
    const ids = new Set(corridors.flatMap(({ corridor }) => corridor.split(':')));
    const names = [...ids].flatMap((id) => {
      const name = directory.chain(id)?.name;
      return name === undefined ? [] : [[id, name] as const];
    });
    return { status: 200, body: { corridors, chains: Object.fromEntries(names) } };
  },
});
