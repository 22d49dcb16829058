import { z } from 'zod';
import { retryDeadLetters, TESTED } from '../../../operations/deliveries.ts';
import {
  disableReceiver,
  enableReceiver,
  listReceivers,
  pauseReceiver,
  RECEIVER,
  readReceiver,
  resumeReceiver,
} from '../../../operations/receivers.ts';
import { LOG_RANGE, resendTime } from '../../../operations/resend.ts';
import { testReceiver } from '../../../operations/test-receiver.ts';
import { type ApiContext, defineRoute, NO_INPUT, type RouteAnswer } from '../route.ts';
import { EVENT_ID, RECEIVER_NAME, RETRIED, TIME, TYPE_LIST } from '../shapes.ts';

const NAMED = z.strictObject({ name: RECEIVER_NAME });

const UNKNOWN = 'There is no such receiver.';

export const listOfReceivers = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/receivers',
  operation: 'listReceivers',
  group: 'receivers',
  summary: 'List the receivers',
  description:
    'With their state and what they are owed. Of backlogs behind cursors 10,000 entries of the log are counted together, at most 1,000 of each receiver.',
  scope: 'read',
  answers: {
    200: {
      description: 'All receivers, by name.',
      schema: z.object({ receivers: z.array(RECEIVER) }).meta({ id: 'ReceiverList' }),
    },
  },
  handle: async (_input, { deps }) => {
    const { operations, apiReceivers } = deps();
    return { status: 200, body: { receivers: await listReceivers(apiReceivers.originOf, operations) } };
  },
});

export const readOneReceiver = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/receivers/{name}',
  operation: 'readReceiver',
  group: 'receivers',
  summary: 'Read a receiver',
  scope: 'read',
  params: NAMED,
  answers: { 200: { description: 'The receiver.', schema: RECEIVER } },
  problems: { 404: UNKNOWN },
  handle: async ({ params }, { deps }) => answerOf(params.name, deps()),
});

async function answerOf(name: string, { operations, apiReceivers }: ApiContext): Promise<RouteAnswer> {
  return { status: 200, body: await readReceiver(name, apiReceivers.originOf, operations) };
}

function action(facts: {
  word: string;
  summary: string;
  description: string;
  refused?: string;
  act: (name: string, deps: ApiContext['operations']) => Promise<unknown>;
}) {
  const { word, summary, description, refused, act } = facts;
  return defineRoute({
    ...NO_INPUT,
    method: 'POST',
    path: `/receivers/{name}/${word}`,
    operation: `${word}Receiver`,
    group: 'receivers',
    summary,
    description,
    scope: 'admin',
    params: NAMED,
    answers: {
      200: { description: 'The receiver as it is now. A repeat changes nothing.', schema: RECEIVER },
    },
    problems: { 404: UNKNOWN, ...(refused === undefined ? {} : { 409: refused }) },
    handle: async ({ params }, { deps }) => {
      await act(params.name, deps().operations);
      return answerOf(params.name, deps());
    },
  });
}

export const RECEIVER_ACTIONS = {
  pause: action({
    word: 'pause',
    summary: 'Pause a receiver',
    description:
      'No attempts are made, and nothing is queued: its events wait in the log, for `retention` at most. Reported as `receiver.paused`.',
    refused: 'It is disabled.',
    act: pauseReceiver,
  }),
  resume: action({
    word: 'resume',
    summary: 'Resume a paused receiver',
    description: 'It gets what waited, the oldest first. Reported as `receiver.resumed`.',
    act: resumeReceiver,
  }),
  disable: action({
    word: 'disable',
    summary: 'Disable a receiver',
    description:
      'As a span of failures does: enabling it also takes up the dead letters of its last failures.',
    act: disableReceiver,
  }),
  enable: action({
    word: 'enable',
    summary: 'Enable a disabled receiver',
    description: 'It gets what it missed, the oldest first. It is `enabling` until that is queued.',
    refused: 'It is paused.',
    act: enableReceiver,
  }),
};

export const testOneReceiver = defineRoute({
  ...NO_INPUT,
  method: 'POST',
  path: '/receivers/{name}/test',
  operation: 'testReceiver',
  group: 'receivers',
  summary: 'Send a test event to a receiver',
  description: 'An `intentwatch.test` event, signed, once. It is in no log, and changes no state.',
  scope: 'admin',
  timeoutMs: 65_000,
  params: NAMED,
  answers: { 200: { description: 'The response of the receiver, whatever it was.', schema: TESTED } },
  problems: { 404: UNKNOWN },
  handle: async ({ params }, { deps }) => ({
    status: 200,
    body: await testReceiver(params.name, deps().setup()),
  }),
});

const CODE = 'an HTTP or SMTP code such as 503, or none';

const RANGE = {
  since: TIME.describe('From when on.'),
  until: TIME.exactOptional().describe('Up to when; left out: the newest.'),
  types: TYPE_LIST.exactOptional().describe('Only these types.'),
};

export const resendToReceiver = defineRoute({
  ...NO_INPUT,
  method: 'POST',
  path: '/receivers/{name}/resend',
  operation: 'resendToReceiver',
  group: 'deliveries',
  summary: 'Send the events of a time to a receiver once more',
  description: 'Under their ids, as `intentwatch resend` does.',
  scope: 'admin',
  params: NAMED,
  body: z.strictObject(RANGE, { error: 'an object' }),
  answers: {
    202: {
      description: 'The replay. How far it is: `GET /replays/{id}`.',
      schema: z
        .object({ receiver: z.string(), replay: z.string(), log: LOG_RANGE.nullable() })
        .meta({ id: 'ReplayRequested' }),
    },
  },
  problems: { 404: UNKNOWN, 409: 'It is paused or disabled, or the time is none.' },
  handle: async ({ params: { name }, body }, { deps, key }) => {
    const { since, until = null, types = null } = body;
    const { id, log } = await resendTime({ name, since, until, types, key }, deps().operations);
    return { status: 202, body: { receiver: name, replay: id, log } };
  },
});

export const retryOfReceiver = defineRoute({
  ...NO_INPUT,
  method: 'POST',
  path: '/receivers/{name}/retry',
  operation: 'retryDeadLetters',
  group: 'deliveries',
  summary: 'Deliver dead letters of a receiver again',
  description: 'With all attempts before them, as `intentwatch retry` does. With `{}`: all of them.',
  scope: 'admin',
  timeoutMs: 30_000,
  params: NAMED,
  body: z.strictObject(
    {
      events: z
        .array(EVENT_ID, { error: 'a list of ids of events' })
        .min(1)
        .max(1_000)
        .exactOptional()
        .describe('Those of these events: all of them or none.'),
      ...RANGE,
      since: RANGE.since.exactOptional(),
      statuses: z
        .array(z.string({ error: CODE }).regex(/^([1-5]\d\d|none)$/, { error: CODE }), {
          error: 'a list of codes',
        })
        .min(1)
        .max(50)
        .exactOptional()
        .describe('Whose last answer was one of these HTTP or SMTP codes; `none` for no answer.'),
    },
    { error: 'an object' },
  ),
  answers: { 202: { description: 'They are queued.', schema: RETRIED } },
  problems: { 404: 'There is no such receiver, or no dead letter of one of these events.' },
  handle: async ({ params: { name }, body }, { deps }) => {
    const { events = [], types, statuses, ...range } = body;
    const wanted = {
      events,
      ...range,
      ...(types === undefined ? {} : { type: types }),
      ...(statuses === undefined ? {} : { status: statuses }),
    };
    const { renewed, all, gone } = await retryDeadLetters(name, wanted, deps().operations);
    return { status: 202, body: { renewed, deadLetters: all, gone } };
  },
});
