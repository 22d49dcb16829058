import { z } from 'zod';
import { UnknownError } from '../../../operations/errors.ts';
import { defineRoute, NO_INPUT } from '../route.ts';
import { EVENT, EVENT_ID, RECEIVER_NAME } from '../shapes.ts';

/** An event, whole, as one receiver gets it: also by the link that an event carries that was cut. */
export const readEvent = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/events/{id}',
  operation: 'readEvent',
  group: 'events',
  summary: 'Read an event as a receiver gets it',
  description:
    'The event whole, also where the webhook was cut. A signed link (`data.recordUrl`) to this very event needs no token: it carries `expires` and `signature`.',
  scope: 'read',
  acceptsLink: true,
  params: z.strictObject({ id: EVENT_ID }),
  query: z.strictObject({
    receiver: RECEIVER_NAME.describe('As which receiver gets it: metadata of others is not shown.'),
    expires: z.string().exactOptional().describe('Of a link: until when it is good.'),
    signature: z.string().exactOptional().describe('Of a link: that it was made here.'),
  }),
  answers: { 200: { description: 'The event.', schema: EVENT } },
  problems: { 404: 'The receiver has no delivery of this event, or its retention is over.' },
  handle: async ({ params: { id }, query: { receiver } }, { findEvent }) => {
    const event = await findEvent({ id, receiver });
    if (event !== null) return { status: 200, body: event };
    throw new UnknownError(`receiver ${receiver} has no delivery of this event, or its retention is over`);
  },
});
