import { z } from 'zod';
import { CORRIDOR, corridorsOf } from '../../../domain/cadence/corridors.ts';
import { defineRoute, NO_INPUT } from '../route.ts';

const CORRIDORS = z
  .object({
    corridors: z.array(CORRIDOR.meta({ id: 'Corridor' })),
    chains: z
      .record(z.string(), z.string())
      .describe('What the chains are called, by id, as far as is known.'),
  })
  .meta({ id: 'Corridors' });

/** What was learned of each pair of chains. */
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
  handle: async (_input, { parts }) => {
    const { knowledge, directory } = parts().operations;
    const corridors = corridorsOf(await knowledge());
    const ids = new Set(corridors.flatMap(({ corridor }) => corridor.split(':')));
    const names = [...ids].flatMap((id) => {
      const name = directory.chain(id)?.name;
      return name === undefined ? [] : [[id, name] as const];
    });
    return { status: 200, body: { corridors, chains: Object.fromEntries(names) } };
  },
});
