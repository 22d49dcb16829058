import { z } from 'zod';
import { durationField } from '../../../config/fields/fields.ts';
import { MOST_SECRETS, signingSecretField } from '../../../config/fields/signing-secret.ts';
import {
  addReceiver,
  changeReceiver,
  ReceiverFaultsError,
  removeReceiver,
  replaceReceiver,
  rotateSecret,
} from '../../../operations/added-receivers.ts';
import { isoTime } from '../../../operations/time.ts';
import { ProblemError } from '../../problem.ts';
import { defineRoute, NO_INPUT, type RouteAnswer } from '../route.ts';
import { RECEIVER_NAME } from '../shapes.ts';

const NAMED = z.strictObject({ name: RECEIVER_NAME });

const MEMBERS = z.record(z.string(), z.json(), { error: 'an object' });

const DEFINITION = MEMBERS.describe(
  'As an item of `receivers` in the config, but for `tls`: `name`, `type`, `url`, `secrets`, `to`, `events`, …',
).meta({ id: 'ReceiverDefinition' });

const STORED = z
  .object({ name: z.string(), type: z.enum(['webhook', 'email', 'postgres']) })
  .describe('What is secret of it is not shown again.')
  .meta({ id: 'StoredReceiver' });

const MISSING = 'There is no such receiver that was made through the API.';
const NO_KEY = 'The config has no `server.secretsKey`.';

/** Wait until this process uses the changed receivers. */
const TIMEOUT_MS = 15_000;

/** Default time for which a replaced secret signs beside the new one. */
const OVERLAP = '1d';

async function answered(status: number, act: () => Promise<unknown>): Promise<RouteAnswer> {
  try {
    return { status, body: await act() };
  } catch (error) {
    if (error instanceof ReceiverFaultsError) throw new ProblemError(400, error.message);
    throw error;
  }
}

export const addOneReceiver = defineRoute({
  ...NO_INPUT,
  method: 'POST',
  path: '/receivers',
  operation: 'addReceiver',
  group: 'receivers',
  summary: 'Make a receiver',
  description:
    'Beside those of the config, for what is tracked through the API. All processes take it up within seconds. Its URL, secrets and headers are stored encrypted with `server.secretsKey`.',
  scope: 'admin',
  timeoutMs: TIMEOUT_MS,
  body: DEFINITION,
  answers: { 201: { description: 'It gets events from now on.', schema: STORED } },
  problems: { 409: `A receiver has this name, or there are as many as there may be. ${NO_KEY}` },
  handle: async ({ body }, { deps }) =>
    answered(201, async () => {
      const { name, type } = await addReceiver(body, deps().apiReceivers);
      return { name, type };
    }),
});

export const replaceOneReceiver = defineRoute({
  ...NO_INPUT,
  method: 'PUT',
  path: '/receivers/{name}',
  operation: 'replaceReceiver',
  group: 'receivers',
  summary: 'Replace a receiver',
  description: 'Of those that were made through the API. An attempt under way ends as it began.',
  scope: 'admin',
  timeoutMs: TIMEOUT_MS,
  params: NAMED,
  body: DEFINITION,
  answers: { 200: { description: 'It is called so from now on.', schema: STORED } },
  problems: { 404: MISSING, 409: NO_KEY },
  handle: async ({ params, body }, { deps }) =>
    answered(200, async () => {
      const { name, type } = await replaceReceiver(params.name, body, deps().apiReceivers);
      return { name, type };
    }),
});

export const changeOneReceiver = defineRoute({
  ...NO_INPUT,
  method: 'PATCH',
  path: '/receivers/{name}',
  operation: 'changeReceiver',
  group: 'receivers',
  summary: 'Change members of a receiver',
  description:
    'Of those that were made through the API. What is not named stays; null takes a member back to its default. Where the origin of `url` or `proxy` changes, stored `headers` and `secrets` have to be named too.',
  scope: 'admin',
  timeoutMs: TIMEOUT_MS,
  params: NAMED,
  body: MEMBERS.refine((members) => members.name === undefined, {
    error: 'no name: a name cannot change',
  }).meta({ id: 'ReceiverChanges' }),
  answers: { 200: { description: 'It is called so from now on.', schema: STORED } },
  problems: { 404: MISSING, 409: NO_KEY },
  handle: async ({ params, body }, { deps }) =>
    answered(200, async () => {
      const { name, type } = await changeReceiver(params.name, body, deps().apiReceivers);
      return { name, type };
    }),
});

export const removeOneReceiver = defineRoute({
  ...NO_INPUT,
  method: 'DELETE',
  path: '/receivers/{name}',
  operation: 'removeReceiver',
  group: 'receivers',
  summary: 'Remove a receiver',
  description: 'Of those that were made through the API. Its backlog is stored for the `retention`.',
  scope: 'admin',
  timeoutMs: TIMEOUT_MS,
  params: NAMED,
  answers: {
    200: {
      description: 'It gets nothing more.',
      schema: z.object({ name: z.string() }).meta({ id: 'RemovedReceiver' }),
    },
  },
  problems: { 404: MISSING },
  handle: async ({ params: { name } }, { deps }) => {
    await removeReceiver(name, deps().apiReceivers);
    return { status: 200, body: { name } };
  },
});

export const rotateOneSecret = defineRoute({
  ...NO_INPUT,
  method: 'POST',
  path: '/receivers/{name}/rotate',
  operation: 'rotateSecret',
  group: 'receivers',
  summary: 'Rotate the secret of a receiver',
  description:
    'Of those that were made through the API. Every request is signed with the new secret and, until `until`, with those before it.',
  scope: 'admin',
  answerHasSecret: true,
  timeoutMs: TIMEOUT_MS,
  params: NAMED,
  body: z
    .strictObject(
      {
        secret: signingSecretField.exactOptional().describe('The new secret; left out: one is made.'),
        overlap: durationField({ min: '1s', max: '365d' })
          .prefault(OVERLAP)
          .describe('How long those before it sign as well.'),
      },
      { error: 'an object' },
    )
    .meta({ id: 'Rotation' }),
  answers: {
    200: {
      description: 'The new secret, which is shown this once.',
      schema: z
        .object({ name: z.string(), secret: z.string(), until: z.string().describe('When the others end.') })
        .meta({ id: 'Rotated' }),
    },
  },
  problems: { 404: MISSING, 409: `It signs with ${MOST_SECRETS} secrets already. ${NO_KEY}` },
  handle: async ({ params: { name }, body }, { deps }) =>
    answered(200, async () => {
      const nowMs = Date.now();
      const untilMs = nowMs + body.overlap;
      const chosen = { secret: body.secret?.reveal() ?? null, untilMs, nowMs };
      const secret = await rotateSecret(name, chosen, deps().apiReceivers);
      return { name, secret, until: isoTime(untilMs) };
    }),
});
