import { z } from 'zod';
import {
  listSetAside,
  replaySetAside,
  SET_ASIDE_ENTRY,
  SET_ASIDE_REPLAYED,
} from '../../../operations/set-aside.ts';
import { defineRoute, NO_INPUT } from '../route.ts';

/** Entries of the event log that could not be read. */
export const listOfSetAside = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/set-aside',
  operation: 'listSetAside',
  group: 'events',
  summary: 'List entries of the log that could not be read',
  description: 'A newer version wrote them, or something else did. At most 1,000 are kept.',
  scope: 'read',
  answers: {
    200: {
      description: 'All of them, the oldest first.',
      schema: z
        .object({ entries: z.array(SET_ASIDE_ENTRY.meta({ id: 'SetAsideEntry' })) })
        .meta({ id: 'SetAside' }),
    },
  },
  handle: async (_input, { parts }) => ({
    status: 200,
    body: { entries: await listSetAside(parts().operations) },
  }),
});

/** Puts those that can be read by now back. */
export const replayOfSetAside = defineRoute({
  ...NO_INPUT,
  method: 'POST',
  path: '/set-aside/replay',
  operation: 'replaySetAside',
  group: 'events',
  summary: 'Put entries that can be read by now back into the log',
  description: 'Receivers get what they have not got yet.',
  scope: 'admin',
  timeoutMs: 30_000,
  answers: {
    200: { description: 'It is done.', schema: SET_ASIDE_REPLAYED.meta({ id: 'SetAsideReplayed' }) },
  },
  handle: async (_input, { parts }) => ({ status: 200, body: await replaySetAside(parts().operations) }),
});
