import { z } from 'zod';
import { PROOF_OUTCOMES } from '../../../domain/proof/proof-flags.ts';
import { isPollable } from '../../../domain/subjects/kinds.ts';
import { RefusedError } from '../../../operations/errors.ts';
import { listSubjects, SUBJECT, SUBJECT_PLACE } from '../../../operations/subjects.ts';
import { knownSubject, readSubject as readDetails, SUBJECT_DETAILS } from '../../../operations/timeline.ts';
import { cursorField, writeCursor } from '../cursor.ts';
import { defineRoute, NO_INPUT } from '../route.ts';
import { FLAG, limitField, listField, NEXT, SUBJECT_ID, spanField } from '../shapes.ts';

const WORD = z.string({ error: 'a word' }).min(1).max(200);

const METADATA = z
  .string({ error: 'key=value' })
  .regex(/^[^=]+=/, { error: 'key=value' })
  .transform((text): readonly [string, string] => {
    const at = text.indexOf('=');
    return [text.slice(0, at), text.slice(at + 1)];
  });

const SUBJECT_PAGE = z.object({ subjects: z.array(SUBJECT), next: NEXT }).meta({ id: 'SubjectPage' });

const RECHECKED = z.object({ subject: z.string() }).meta({ id: 'Rechecked' });

/** What is watched. */
export const listWatched = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/subjects',
  operation: 'listSubjects',
  group: 'subjects',
  summary: 'List what is watched',
  description:
    'Those that changed last come first; behind them come those of which the upstream has said nothing yet, and wallets, in no order. One request looks at about 500 subjects: a page can be short, or empty, and still carry `next`.',
  scope: 'read',
  query: z.strictObject({
    kind: listField(WORD).describe('Of these kinds, such as `intent`.'),
    status: listField(WORD.transform((word) => word.toLowerCase())).describe('In one of these statuses.'),
    wallet: WORD.exactOptional().describe(
      'Shown by pages of this watched wallet, or naming it in the record.',
    ),
    subscription: WORD.exactOptional().describe('To which this subscription leads.'),
    metadata: listField(METADATA).describe('With this metadata, as `key=value`. All of several must hold.'),
    mentions: WORD.exactOptional().describe(
      'With this text in the record or id, such as a hash or an address, or as a value of its metadata.',
    ),
    underWay: FLAG.exactOptional().describe('Whether it is polled.'),
    overdue: FLAG.exactOptional().describe('Whether it still waits, and was told as overdue.'),
    proof: z
      .enum(PROOF_OUTCOMES, { error: `one of ${PROOF_OUTCOMES.join(', ')}` })
      .exactOptional()
      .describe('Of which the chain was told to say so, the worst of its payments.'),
    age: spanField({ most: '365d' })
      .exactOptional()
      .describe('Has waited for at least so long, such as `10m`.'),
    limit: limitField({ most: 200, preset: 50 }).describe('How many.'),
    cursor: cursorField(SUBJECT_PLACE).exactOptional().describe('`next` of the page before.'),
  }),
  answers: { 200: { description: 'Some of them.', schema: SUBJECT_PAGE } },
  handle: async ({ query }, { parts }) => {
    const { kind, status, limit, cursor = null, age, proof, ...rest } = query;
    const filter = {
      kinds: kind,
      statuses: status,
      ...rest,
      ...(age === undefined ? {} : { atLeastMs: age }),
      ...(proof === undefined ? {} : { proofs: [proof] }),
    };
    const { subjects, next } = await listSubjects({ filter, from: cursor, limit }, parts().operations);
    return { status: 200, body: { subjects, next: writeCursor(next) } };
  },
});

/** One subject, with all that happened to it. */
export const readSubject = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/subjects/{subject}',
  operation: 'readSubject',
  group: 'subjects',
  summary: 'Read a subject with its timeline',
  description:
    'Its statuses with their times, the events, and of each event every delivery with its attempts: what was answered, and when the next one is. The timeline of a transfer has also that of its quote, where it is known. It has the newest 100 events that are still in the log.',
  scope: 'read',
  params: z.strictObject({ subject: SUBJECT_ID }),
  answers: { 200: { description: 'The subject.', schema: SUBJECT_DETAILS } },
  problems: { 404: 'Nobody watches this subject, or its retention is over.' },
  handle: async ({ params }, { parts }) => ({
    status: 200,
    body: await readDetails(params.subject, parts().operations),
  }),
});

/** Asks the upstream for a subject now. */
export const recheckSubject = defineRoute({
  ...NO_INPUT,
  method: 'POST',
  path: '/subjects/{subject}/recheck',
  operation: 'recheckSubject',
  group: 'subjects',
  summary: 'Poll a subject now',
  description:
    'It is polled as soon as the budget allows, also one that has ended. What fails now keeps its time.',
  scope: 'admin',
  params: z.strictObject({ subject: SUBJECT_ID }),
  answers: { 202: { description: 'It is next.', schema: RECHECKED } },
  problems: {
    404: 'Nobody watches this subject, or its retention is over.',
    409: 'It is seen on pages of wallets only.',
  },
  handle: async ({ params }, { parts }) => {
    const { operations } = parts();
    const { subject } = await knownSubject(params.subject, operations);
    if (!isPollable(subject))
      throw new RefusedError(`${subject} is seen on pages of wallets only; recheck the wallet`);
    await operations.stores.plan.ask([subject]);
    return { status: 202, body: { subject } };
  },
});
