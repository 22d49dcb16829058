import { z } from 'zod';
import { walletField } from '../../../config/fields/addresses.ts';
import { editDistance } from '../../../domain/edit-distance.ts';
import { PROOF_OUTCOMES } from '../../../domain/proof/proof-flags.ts';
import { isPollable } from '../../../domain/subjects/kinds.ts';
import { SUBJECT_KINDS } from '../../../domain/subjects/subject.ts';
import { RefusedError, watchedSubject } from '../../../operations/operation.ts';
import {
  DELIVERIES_PLACE,
  listSubjectDeliveries,
  SUBJECT_DELIVERY,
} from '../../../operations/subject-deliveries.ts';
import { listSubjects, SUBJECT, SUBJECT_PLACE } from '../../../operations/subjects.ts';
import { readSubject as readState, TIMELINE_PLACE } from '../../../operations/timeline.ts';
import { defineRoute, NO_INPUT } from '../route.ts';
import {
  cursorField,
  FLAG,
  limitField,
  listField,
  NEXT,
  NEXT_AFTER,
  SUBJECT_DETAILS,
  SUBJECT_ID,
  spanField,
  writeCursor,
} from '../shapes.ts';

const WORD = z.string({ error: 'a word' }).min(1).max(200);

const KINDS: readonly string[] = SUBJECT_KINDS.filter((kind) => kind !== 'other');

const KIND_EXPECTED = { error: `one of ${KINDS.join(', ')}, or a kind of the upstream’s own` };

/** The upstream may have any kind, but one that differs by a character from ours is a misspelling. */
const KIND = z
  .string(KIND_EXPECTED)
  .regex(/^[a-z][a-z0-9-]{0,31}$/, KIND_EXPECTED)
  .refine(
    (word) => KINDS.includes(word) || KINDS.every((kind) => editDistance(word, kind) > 1),
    KIND_EXPECTED,
  );

const METADATA = z
  .string({ error: 'key=value' })
  .regex(/^[^=]+=/, { error: 'key=value' })
  .transform((text): readonly [string, string] => {
    const at = text.indexOf('=');
    return [text.slice(0, at), text.slice(at + 1)];
  });

const SUBJECT_PAGE = z.object({ subjects: z.array(SUBJECT), next: NEXT }).meta({ id: 'SubjectPage' });

const RECHECKED = z.object({ subject: z.string() }).meta({ id: 'Rechecked' });

export const listWatched = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/subjects',
  operation: 'listSubjects',
  group: 'subjects',
  summary: 'List what is watched',
  description:
    'Those that changed last come first; behind them come those of which the upstream has reported nothing yet, and wallets, in no order. One request reads about 500 subjects: a page can be short, or empty, and still carry `next`.',
  scope: 'read',
  query: z.strictObject({
    kind: listField(KIND).describe('Of these kinds, such as `intent`.'),
    status: listField(WORD.transform((word) => word.toLowerCase())).describe('In one of these statuses.'),
    wallet: walletField
      .exactOptional()
      .describe('Shown by pages of this watched wallet, or naming it in the record.'),
    subscription: WORD.exactOptional().describe('To which this subscription leads.'),
    metadata: listField(METADATA).describe('With this metadata, as `key=value`. All of several must hold.'),
    mentions: WORD.exactOptional().describe(
      'With this text in the record or id, such as a hash or an address, or as a value of its metadata; or shown by pages of the watched wallet with this address.',
    ),
    underWay: FLAG.exactOptional().describe('Whether it is polled.'),
    overdue: FLAG.exactOptional().describe('Whether it still waits, and was reported as overdue.'),
    proof: z
      .enum(PROOF_OUTCOMES, { error: `one of ${PROOF_OUTCOMES.join(', ')}` })
      .exactOptional()
      .describe('The reported result of checking it on the chain, the worst of its payments.'),
    age: spanField({ most: '365d' })
      .exactOptional()
      .describe('Has waited for at least so long, such as `10m`.'),
    limit: limitField({ most: 200, preset: 50 }).describe('How many.'),
    cursor: cursorField(SUBJECT_PLACE).exactOptional().describe('`next` of the page before.'),
  }),
  answers: { 200: { description: 'Some of them.', schema: SUBJECT_PAGE } },
  problems: { 404: 'There is no such subscription.' },
  handle: async ({ query }, { deps }) => {
    const { kind, status, limit, cursor = null, age, proof, ...rest } = query;
    const filter = {
      kinds: kind,
      statuses: status,
      ...rest,
      ...(age === undefined ? {} : { atLeastMs: age }),
      ...(proof === undefined ? {} : { proofs: [proof] }),
    };
    const { subjects, next } = await listSubjects({ filter, from: cursor, limit }, deps().operations);
    return { status: 200, body: { subjects, next: writeCursor(next) } };
  },
});

/** Events per page, over the timelines of one transfer and of the subjects that led to it. */
export const MOST_EVENTS = 100;

export const MOST_DELIVERIES = 200;

export const readSubject = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/subjects/{subject}',
  operation: 'readSubject',
  group: 'subjects',
  summary: 'Read a subject with its timeline',
  description:
    'What is known of it now, and a page of its events that are still in the log, the newest first. The timeline of a transfer has also that of its quote, where it is known. Events that are made meanwhile move no page. `GET /subjects/{subject}/deliveries` has the deliveries of the events.',
  scope: 'read',
  params: z.strictObject({ subject: SUBJECT_ID }),
  query: z.strictObject({
    limit: limitField({ most: MOST_EVENTS, preset: 50 }).describe('How many events.'),
    after: cursorField(TIMELINE_PLACE).exactOptional().describe('`next` of the page before.'),
  }),
  answers: { 200: { description: 'The subject.', schema: SUBJECT_DETAILS } },
  problems: { 404: 'Nobody watches this subject, or its retention is over.' },
  handle: async ({ params, query }, { deps }) => {
    const { limit, after = null } = query;
    const { subject, next } = await readState({ id: params.subject, after, limit }, deps().operations);
    return { status: 200, body: { ...subject, next: writeCursor(next) } };
  },
});

export const listDeliveriesOfSubject = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/subjects/{subject}/deliveries',
  operation: 'listSubjectDeliveries',
  group: 'subjects',
  summary: 'List the deliveries of a subject',
  description:
    'To whom each event of its timeline was delivered, with the attempts: what was answered, and when the next one is. They come in the order of the timeline, those of one event by receiver. One request reads `limit` pairs of event and receiver: a page can be short, or empty, and still carry `next`. For the events of one page of the timeline pass the `after` of that page, and its `next` as `until`.',
  scope: 'read',
  params: z.strictObject({ subject: SUBJECT_ID }),
  query: z.strictObject({
    limit: limitField({ most: MOST_DELIVERIES, preset: 50 }).describe('How many.'),
    after: cursorField(
      DELIVERIES_PLACE,
      'a cursor: `next` of the answer before, or of a page of the timeline',
    )
      .exactOptional()
      .describe('`next` of the page before, or of a page of the timeline.'),
    until: cursorField(TIMELINE_PLACE, 'a cursor: `next` of a page of the timeline')
      .exactOptional()
      .describe('Where the list ends: `next` of a page of the timeline, with the last event of that page.'),
  }),
  answers: {
    200: {
      description: 'Some of them.',
      schema: z
        .object({ deliveries: z.array(SUBJECT_DELIVERY), next: NEXT_AFTER })
        .meta({ id: 'SubjectDeliveryPage' }),
    },
  },
  problems: { 404: 'Nobody watches this subject, or its retention is over.' },
  handle: async ({ params, query }, { deps }) => {
    const { limit, after = null, until = null } = query;
    const wanted = { id: params.subject, after, until, limit };
    const { deliveries, next } = await listSubjectDeliveries(wanted, deps().operations);
    return { status: 200, body: { deliveries, next: writeCursor(next) } };
  },
});

export const recheckSubject = defineRoute({
  ...NO_INPUT,
  method: 'POST',
  path: '/subjects/{subject}/recheck',
  operation: 'recheckSubject',
  group: 'subjects',
  summary: 'Poll a subject now',
  description:
    'It is polled as soon as the budget allows, also one that has ended. A subject whose polls fail now is polled at its own time.',
  scope: 'admin',
  params: z.strictObject({ subject: SUBJECT_ID }),
  answers: { 202: { description: 'It is next.', schema: RECHECKED } },
  problems: {
    404: 'Nobody watches this subject, or its retention is over.',
    409: 'It is seen on pages of wallets only.',
  },
  handle: async ({ params }, { deps }) => {
    const { operations } = deps();
    const { subject } = await watchedSubject(params.subject, operations);
    if (!isPollable(subject))
      throw new RefusedError(`${subject} is seen on pages of wallets only; recheck the wallet`);
    await operations.stores.plan.pollSoon([subject]);
    return { status: 202, body: { subject } };
  },
});
