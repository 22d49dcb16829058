import { z } from 'zod';
import {
  listQuarantined,
  QUARANTINE_REPLAYED,
  QUARANTINED_ENTRY,
  replayQuarantined,
} from '../../../operations/quarantine.ts';
import { defineRoute, NO_INPUT } from '../route.ts';

/** Entries of the event log that could not be read. */
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
  handle: async (_input, { parts }) => ({
    status: 200,
    body: { entries: await listQuarantined(parts().operations) },
  }),
});

/** Puts those that can be read by now back. */
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
  handle: async (_input, { parts }) => ({ status: 200, body: await replayQuarantined(parts().operations) }),
});
