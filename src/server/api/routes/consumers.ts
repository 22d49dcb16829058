import { z } from 'zod';
import { entryOf, LOG_PLACE, type LogPlace } from '../../../operations/events.ts';
import { type OperationContext, RefusedError, UnknownError } from '../../../operations/operation.ts';
import { defineRoute, NO_INPUT } from '../route.ts';
import { cursorField } from '../shapes.ts';

export const CONSUMER_NAME = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, {
    error: 'a name of 1 to 100 letters, digits, dots, hyphens and underscores',
  })
  .describe('The name of a consumer, whose place is stored here.');

const NAMED = z.strictObject({ name: CONSUMER_NAME });

const CONSUMER = z.object({ consumer: z.string() }).meta({ id: 'Consumer' });

export const acknowledgeEvents = defineRoute({
  ...NO_INPUT,
  method: 'POST',
  path: '/consumers/{name}/ack',
  operation: 'acknowledgeEvents',
  group: 'events',
  summary: 'Acknowledge events of the log',
  description:
    'The consumer has received all up to the cursor: it does not get them again. Its place never goes back.',
  scope: 'consume',
  params: NAMED,
  body: z.strictObject(
    {
      cursor: cursorField(LOG_PLACE, 'a cursor: `next` of GET /events').describe('`next` of `GET /events`.'),
    },
    { error: 'an object' },
  ),
  answers: { 200: { description: 'It is stored.', schema: CONSUMER } },
  problems: {
    409: 'There are as many consumers as can be stored.',
    410: 'Behind the cursor events have left the log (`retention`).',
  },
  handle: async ({ params: { name }, body: { cursor } }, { deps }) => {
    await acknowledge(name, cursor, deps().operations);
    return { status: 200, body: { consumer: name } };
  },
});

export const removeConsumer = defineRoute({
  ...NO_INPUT,
  method: 'DELETE',
  path: '/consumers/{name}',
  operation: 'removeConsumer',
  group: 'events',
  summary: 'Remove a consumer',
  description:
    'It begins anew when it comes again: also the way on for one that stayed away for longer than `retention`.',
  scope: 'consume',
  params: NAMED,
  answers: { 200: { description: 'It is removed.', schema: CONSUMER } },
  problems: { 404: 'There is no such consumer.' },
  handle: async ({ params: { name } }, { deps }) => {
    if (await deps().operations.stores.consumers.remove(name))
      return { status: 200, body: { consumer: name } };
    throw new UnknownError(`found no consumer ${name}, expected one that has acknowledged events`);
  },
});

/** Marks all entries up to a place as consumed. A consumer never moves back. */
async function acknowledge(name: string, place: LogPlace, deps: OperationContext): Promise<void> {
  await entryOf(place, deps);
  const done = await deps.stores.consumers.acknowledge(name, place);
  if (done === 'full') {
    throw new RefusedError(
      'found as many consumers as can be stored, expected fewer: remove one (DELETE /consumers/{name})',
    );
  }
}
