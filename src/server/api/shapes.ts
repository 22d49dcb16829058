import { z } from 'zod';
import { RENDERED_EVENT } from '../../domain/events/event-schema.ts';

/** The id of an event in a path. */
export const EVENT_ID = z
  .string()
  .regex(/^evt_[0-9a-f]{40}$/, { error: 'an event id: evt_ and 40 hex digits' })
  .describe('The id of an event.');

/** The name of a receiver. */
export const RECEIVER_NAME = z
  .string({ error: 'the name of a receiver' })
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, { error: 'the name of a receiver' })
  .describe('The name of a receiver.');

/** An event as a receiver gets it. */
export const EVENT = RENDERED_EVENT.meta({ id: 'Event' });

/** What every refused request is answered with (RFC 9457). */
export const PROBLEM = z
  .object({
    type: z.literal('about:blank'),
    title: z.string(),
    status: z.int(),
    detail: z.string().describe('What was found and what was expected.'),
    errors: z
      .array(z.object({ place: z.string(), found: z.string(), expected: z.string() }))
      .exactOptional()
      .describe('Where in the request, when it could not be read.'),
  })
  .meta({ id: 'Problem' });
