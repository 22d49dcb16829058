import { z } from 'zod';
import { walletField } from '../../../config/fields/addresses.ts';
import { fitsMetadata, METADATA_LIMIT, nameField } from '../../../config/fields/fields.ts';
import { overdueField } from '../../../config/sections/subscription.ts';
import {
  readNamed,
  TRACKED_KINDS,
  trackSubject,
  unknownReceivers,
  untrackSubject,
} from '../../../operations/tracking.ts';
import { ProblemError } from '../../problem.ts';
import { defineRoute, NO_INPUT } from '../route.ts';
import { SUBJECT_ID } from '../shapes.ts';

/** Limits of the metadata that is stored with every tracked subject. */
const MOST_MEMBERS = 50;
const LONGEST_KEY = 100;
const LONGEST_VALUE = 1_000;
const MOST_RECEIVERS = 100;

const METADATA_EXPECTED = `at most ${MOST_MEMBERS} members of text, keys of up to ${LONGEST_KEY} and values of up to ${LONGEST_VALUE} characters`;

const TRACKED = z
  .object({
    subject: z.string().describe('The id under which it is watched and reported.'),
    created: z.boolean().describe('Whether it was not tracked before.'),
  })
  .meta({ id: 'Tracked' });

export const track = defineRoute({
  ...NO_INPUT,
  method: 'POST',
  path: '/subjects',
  operation: 'trackSubject',
  group: 'subjects',
  summary: 'Track a subject',
  description:
    'By `kind` and `id`, or a quote as `POST /v1/quotes` answered it. It need not be known to the upstream yet: every state that an answer shows from now on is reported. The same again changes nothing; other metadata, receivers, `recipient` or `overdueAfter` replace those that it had.',
  scope: 'admin',
  body: z
    .strictObject(
      {
        kind: z
          .enum(TRACKED_KINDS, { error: `one of ${TRACKED_KINDS.join(', ')}` })
          .exactOptional()
          .describe('What `id` is of.'),
        id: z
          .string({ error: 'an id as text' })
          .exactOptional()
          .describe('An address, a hash or a UUID, without the prefix of its kind.'),
        quote: z
          .record(z.string(), z.json(), { error: 'a quote as an object' })
          .exactOptional()
          .describe(
            'A whole quote, in the place of `kind` and `id`: its signature is verified, its expiry reported.',
          ),
        watchVault: z
          .boolean({ error: 'true or false' })
          .exactOptional()
          .describe(
            'Beside a whole quote: true to watch its `execution.vault` as a vault of the deposit gateway too. While no answer shows it, that ends an hour after its deadline.',
          ),
        endpoint: z
          .enum(['status', 'gateway'], { error: '"status" or "gateway"' })
          .exactOptional()
          .describe('Of a gasless job: who knows it. Default `status`.'),
        chainId: z
          .int({ error: 'the chain on which the vault is funded' })
          .exactOptional()
          .describe('Of a vault: the chain on which it is funded.'),
        metadata: z
          .record(
            z.string().max(LONGEST_KEY, { error: METADATA_EXPECTED }),
            z.string({ error: 'text' }).max(LONGEST_VALUE, { error: METADATA_EXPECTED }),
            { error: METADATA_EXPECTED },
          )
          .refine((metadata) => Object.keys(metadata).length <= MOST_MEMBERS, { error: METADATA_EXPECTED })
          .refine(fitsMetadata, { error: METADATA_LIMIT })
          .prefault({})
          .describe(
            'What every event of it carries for you, text to text. At most 4,096 bytes as JSON in UTF-8.',
          ),
        receivers: z
          .array(nameField, { error: 'a list of receiver names' })
          .max(MOST_RECEIVERS, { error: `at most ${MOST_RECEIVERS} receiver names` })
          .exactOptional()
          .describe(
            'Who is notified. `[]`: nobody, its events are only pulled. May be left out where there are no receivers.',
          ),
        overdueAfter: overdueField
          .exactOptional()
          .describe('After how long it is reported as overdue: a duration, or `learned`. Left out: never.'),
        recipient: walletField
          .exactOptional()
          .describe(
            'Who may rightly receive what it delivers, where its chain has RPC endpoints: a delivery to anybody else is disputed.',
          ),
      },
      { error: 'an object' },
    )
    .meta({ id: 'Track' }),
  answers: {
    201: { description: 'It is tracked from now on.', schema: TRACKED },
    200: {
      description: 'It was tracked already, and has this metadata and these receivers now.',
      schema: TRACKED,
    },
  },
  handle: async ({ body }, { deps }) => {
    const operations = deps().operations;
    const named = readNamed(body, operations);
    if ('member' in named) {
      const found = named.found === undefined ? '' : `found ${named.found}, `;
      throw new ProblemError(400, `body.${named.member}: ${found}expected ${named.expected}`);
    }
    const { receivers = [] } = body;
    const { unknown, existing } = await unknownReceivers(receivers, operations);
    if (body.receivers === undefined && existing.length > 0) {
      throw new ProblemError(
        400,
        `body.receivers: found none, expected who is notified (${existing.join(', ')}), or [] for nobody`,
      );
    }
    if (unknown.length > 0) {
      throw new ProblemError(
        400,
        `body.receivers: found ${unknown.join(', ')}, expected receivers that exist (${existing.join(', ')})`,
      );
    }
    const { metadata, overdueAfter = null, recipient, watchVault = false } = body;
    const wish = {
      metadata,
      receivers: [...new Set(receivers)],
      overdueAfterMs: overdueAfter,
      recipients: recipient === undefined ? [] : [recipient],
      watchVault,
    };
    const { created } = await trackSubject(named, wish, operations);
    return { status: created ? 201 : 200, body: { subject: named.subject, created } };
  },
});

export const untrack = defineRoute({
  ...NO_INPUT,
  method: 'DELETE',
  path: '/subjects/{subject}',
  operation: 'untrackSubject',
  group: 'subjects',
  summary: 'End the tracking of a subject',
  description:
    'Nothing more is reported of it, unless the config or a watched wallet leads to it too. What was reported before is still delivered.',
  scope: 'admin',
  params: z.strictObject({ subject: SUBJECT_ID }),
  answers: {
    200: {
      description: 'It is tracked no more.',
      schema: z.object({ subject: z.string() }).meta({ id: 'Untracked' }),
    },
  },
  problems: { 404: 'It is not tracked through the API.' },
  handle: async ({ params: { subject } }, { deps }) => {
    await untrackSubject(subject, deps().operations);
    return { status: 200, body: { subject } };
  },
});
