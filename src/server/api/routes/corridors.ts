import { z } from 'zod';
import { CORRIDOR, corridorsOf } from '../../../domain/cadence/corridors.ts';
import { defineRoute, NO_INPUT } from '../route.ts';

/** What was learned of each pair of chains. */
export const listCorridors = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/corridors',
  operation: 'listCorridors',
  group: 'corridors',
  summary: 'List what was learned per pair of chains',
  description:
    'How long transfers take to be filled and settled, and how many were filled, not filled, told as overdue and refunded. `expectedBy` of events is made from the same. What was seen a day ago counts half.',
  scope: 'read',
  answers: {
    200: {
      description: 'All of them, that of which most was seen first; all pairs together are `*`.',
      schema: z.object({ corridors: z.array(CORRIDOR.meta({ id: 'Corridor' })) }).meta({ id: 'Corridors' }),
    },
  },
  handle: async (_input, { parts }) => {
    const corridors = corridorsOf(await parts().operations.knowledge());
    return { status: 200, body: { corridors } };
  },
});
