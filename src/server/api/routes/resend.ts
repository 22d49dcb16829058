import { z } from 'zod';
import {
  REPLAY,
  readReplay as readReplayOf,
  resendEvent,
  resendSubject,
} from '../../../operations/resend.ts';
import { defineRoute, NO_INPUT } from '../route.ts';
import { EVENT_ID, RECEIVER_NAME, RESENT, RESENT_SUBJECT, SUBJECT_ID } from '../shapes.ts';

const RESEND_BODY = z.strictObject(
  {
    receivers: z
      .array(RECEIVER_NAME, { error: 'a list of names of receivers' })
      .min(1, { error: 'at least one name, or no list' })
      .max(100, { error: 'at most 100 names' })
      .exactOptional()
      .describe('Only to these; left out: to all that match.'),
  },
  { error: 'an object' },
);

const RESENDING = {
  ...NO_INPUT,
  method: 'POST',
  group: 'deliveries',
  scope: 'admin',
  body: RESEND_BODY,
} as const;

const REFUSED =
  'No receiver matches (`detail` names what the event waits for, where it does), or one of them is paused or disabled.';

export const resendOfEvent = defineRoute({
  ...RESENDING,
  path: '/events/{id}/resend',
  operation: 'resendEvent',
  summary: 'Send an event once more',
  description:
    'Under its id, to the receivers that match it. One that waits for what is suspended is sent at once to those that are in the config, with `data.suspended: true`; it goes on waiting, and comes again in its turn.',
  params: z.strictObject({ id: EVENT_ID }),
  answers: { 202: { description: 'One replay per receiver.', schema: RESENT } },
  problems: {
    404: 'No receiver matched it, its retention is over, or there is no such receiver.',
    409: REFUSED,
  },
  handle: async ({ params, body }, { deps, key }) => {
    const options = { receivers: body.receivers ?? null, key };
    return { status: 202, body: { replays: await resendEvent(params.id, options, deps().operations) } };
  },
});

export const resendOfSubject = defineRoute({
  ...RESENDING,
  path: '/subjects/{subject}/resend',
  operation: 'resendSubject',
  summary: 'Send the events of a subject once more',
  description:
    'Its newest 100 that are in the log, in their order and under their ids, to the receivers that match them.',
  params: z.strictObject({ subject: SUBJECT_ID }),
  answers: { 202: { description: 'One replay per receiver.', schema: RESENT_SUBJECT } },
  problems: {
    404: 'Nobody watches this subject, its retention is over, or there is no such receiver.',
    409: REFUSED,
  },
  handle: async ({ params, body }, { deps, key }) => {
    const options = { receivers: body.receivers ?? null, key };
    return { status: 202, body: await resendSubject(params.subject, options, deps().operations) };
  },
});

export const readReplay = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/replays/{id}',
  operation: 'readReplay',
  group: 'deliveries',
  summary: 'See how far a replay is',
  scope: 'read',
  params: z.strictObject({
    id: z
      .string()
      .regex(/^[0-9a-f]{16}$/, { error: 'the id of a replay: 16 hex digits' })
      .describe('The id of a replay.'),
  }),
  answers: { 200: { description: 'The replay.', schema: REPLAY } },
  handle: async ({ params }, { deps }) => ({
    status: 200,
    body: await readReplayOf(params.id, deps().operations),
  }),
});
