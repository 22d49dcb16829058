import { z } from 'zod';
import { member } from '../breakage.ts';
import { bodyOf } from '../call.ts';
import { conforms, holds, list, read, same, text } from '../expectation.ts';
import { fundingOf, submit } from '../funding.ts';
import { memberRules } from '../member-rules.ts';
import { bare, newFundableQuote, requestStatus, STATUS, statusOf } from '../quoting.ts';
import { given, inSection, type Need, type Rule, type Target } from '../rule.ts';
import {
  anyAddress,
  baseUnits,
  chainId,
  intentHash,
  nonEmpty,
  prefixedQuote,
  stepSide,
  transaction,
  unixSeconds,
} from '../shape.ts';

const on = { path: STATUS, status: 200 };
const needs: readonly Need[] = [
  'filledIntent',
  'refundedIntent',
  'fundedQuote',
  'swappedQuote',
  'publishedJob',
  'failedJob',
  'depositAddressWallet',
];
const finished = { stage: 'finished', needs } as const;
/** No service takes longer to publish the intent of a job; a sandbox takes 10 s at most. */
const LONGEST_PUBLISHING_MS = 30_000;

const UNKNOWN = '00000000-0000-4000-8000-000000000000';

/** A record of every kind, one of them unknown. */
async function records(target: Target): Promise<unknown[]> {
  const queries: Record<string, string>[] = [
    { intentHash: given(target, 'filledIntent') },
    { intentHash: given(target, 'refundedIntent') },
    { quoteId: given(target, 'fundedQuote') },
    { quoteId: given(target, 'swappedQuote') },
    { jobId: given(target, 'publishedJob') },
    { jobId: given(target, 'failedJob') },
    { wallet: given(target, 'depositAddressWallet') },
    { quoteId: UNKNOWN },
  ];
  const found: unknown[] = [];
  for (const query of queries) found.push(...list(await statusOf(target, query), 'results'));
  return found;
}

const existing = async (target: Target): Promise<unknown[]> =>
  (await records(target)).filter((record) => read(record, 'status') !== 'unknown');

/** The elements of a list of the records. */
async function inner(target: Target, name: string): Promise<unknown[]> {
  return (await existing(target)).flatMap((record) =>
    read(record, name) === undefined ? [] : list(record, name),
  );
}

/** The values of one of two members of the records. */
async function summaries(target: Target): Promise<unknown[]> {
  const found = (await existing(target)).flatMap((record) => [
    read(record, 'sourceTx'),
    read(record, 'destinationTx'),
  ]);
  return found.filter((summary) => summary !== undefined);
}

const id = z
  .string()
  .regex(
    /^(intent:0x[0-9a-f]{64}|(quote|gasless):[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|deposit-address:.+)$/,
  );

const STATUS_RESULT_RULES = inSection(
  'Status result',
  [
    ...memberRules({
      prefix: 'status result',
      records,
      on,
      place: 'results.*',
      rows: [
        {
          name: 'id',
          title: 'is intent:<intent_hash>, quote:<uuid> or gasless:<uuid>, and never missing',
          schema: id,
          required: true,
          broken: (found: unknown) => String(found).split(':')[1],
        },
        {
          name: 'type',
          title: 'is intent, quote, gasless or deposit-address, and never missing',
          schema: z.enum(['intent', 'quote', 'gasless', 'deposit-address']),
          required: true,
          shows: ['intent', 'quote', 'gasless', 'deposit-address'],
        },
        { name: 'status', title: 'is one name, and never missing', schema: nonEmpty, required: true },
        {
          name: 'updatedAt',
          title: 'is Unix seconds or null, and never missing',
          schema: unixSeconds.nullable(),
          required: true,
        },
        {
          name: 'intentHashes',
          title: 'is a list of intent hashes where it is shown',
          schema: z.array(intentHash),
        },
        {
          name: 'txHash',
          title: 'is text or null where it is shown',
          schema: nonEmpty.nullable(),
        },
        { name: 'subStatuses', title: 'is a list where it is shown', schema: z.array(z.looseObject({})) },
        {
          name: 'sourceTx',
          title: 'is a transaction summary where it is shown',
          schema: z.looseObject({ chainId, txHash: nonEmpty }),
        },
        {
          name: 'destinationTx',
          title: 'is a transaction summary where it is shown',
          schema: z.looseObject({ chainId, txHash: nonEmpty }),
        },
        { name: 'steps', title: 'is a list where it is shown', schema: z.array(z.looseObject({})) },
      ],
    }),
    {
      id: 'status result: updatedAt a',
      title: 'is null when the id is unknown, and only then',
      check: async (target) => {
        for (const record of await records(target)) {
          const isUnknown = read(record, 'status') === 'unknown';
          same(read(record, 'updatedAt') === null, isUnknown, `updatedAt null in ${JSON.stringify(record)}`);
        }
      },
      breakage: member(on, 'results.*', 'updatedAt', (found: unknown) => found ?? 1_700_000_000),
    },
    {
      id: 'status response: results',
      title: 'is a list, and never missing',
      check: async (target) => {
        for (const query of [{ quoteId: UNKNOWN }, { wallet: 'nobody-at-all' }]) {
          conforms(z.looseObject({ results: z.array(z.unknown()) }), await statusOf(target, query), 'body');
        }
      },
      breakage: member(on, '', 'results', (found: unknown) =>
        Array.isArray(found) && found.length === 0 ? undefined : found,
      ),
    },
    {
      id: 'status response: nextCursor',
      title: 'is text or null, and never missing',
      check: async (target) => {
        for (const query of [{ quoteId: UNKNOWN }, { wallet: 'nobody-at-all' }]) {
          const body = bodyOf(await requestStatus(target, query));
          conforms(z.looseObject({ nextCursor: nonEmpty.nullable() }), body, 'body');
        }
      },
      breakage: member(on, '', 'nextCursor', (found: unknown) => found ?? undefined),
    },
  ],
  finished,
);

const SUB_STATUS_RULES = inSection(
  'Sub-status',
  memberRules({
    prefix: 'sub-status',
    records: (target) => inner(target, 'subStatuses'),
    on,
    place: 'results.*.subStatuses.*',
    rows: [
      { name: 'chainId', title: 'is an integer, and never missing', schema: chainId, required: true },
      {
        name: 'quoteIds',
        title: 'is a list of quote:<uuid>, and never missing',
        schema: z.array(prefixedQuote),
        required: true,
      },
      {
        name: 'txHash',
        title: 'is text or null, and never missing',
        schema: nonEmpty.nullable(),
        required: true,
      },
      {
        name: 'intentHashes',
        title: 'is a list of intent hashes, and never missing',
        schema: z.array(intentHash),
        required: true,
      },
      {
        name: 'state',
        title: 'is pending, submitted, published or failed, and never missing',
        schema: z.enum(['pending', 'submitted', 'published', 'failed']),
        required: true,
        shows: ['published', 'failed'],
        broken: 'PENDING',
      },
    ],
  }),
  finished,
);

const SUMMARY_RULES = inSection(
  'Transaction summary',
  memberRules({
    prefix: 'transaction summary',
    records: summaries,
    on,
    place: 'results.*.sourceTx',
    rows: [
      { name: 'chainId', title: 'is an integer, and never missing', schema: chainId, required: true },
      { name: 'txHash', title: 'is text, and never missing', schema: nonEmpty, required: true },
      { name: 'token', title: 'is an address, and never missing', schema: anyAddress, required: true },
      {
        name: 'amount',
        title: 'is base units, and never missing',
        schema: baseUnits,
        required: true,
        broken: 1,
      },
    ],
  }),
  finished,
);

const STEP_RULES = inSection(
  'Step',
  [
    ...memberRules({
      prefix: 'step',
      records: (target) => inner(target, 'steps'),
      on,
      place: 'results.*.steps.*',
      rows: [
        {
          name: 'type',
          title: 'is SWAP or BRIDGE, and never missing',
          schema: z.enum(['SWAP', 'BRIDGE']),
          required: true,
          shows: ['SWAP', 'BRIDGE'],
          broken: 'bridge',
        },
        { name: 'intentHash', title: 'is a hash, and never missing', schema: intentHash, required: true },
        { name: 'status', title: 'is one name, and never missing', schema: nonEmpty, required: true },
        {
          name: 'from',
          title: 'has token, amount and chainId, and is never missing',
          schema: stepSide,
          required: true,
          broken: (found: unknown) => ({ token: read(found, 'token'), amount: read(found, 'amount') }),
        },
        {
          name: 'to',
          title: 'has token, amount and chainId, and is never missing',
          schema: stepSide,
          required: true,
          broken: (found: unknown) => ({ token: read(found, 'token'), chainId: read(found, 'chainId') }),
        },
        {
          name: 'transactions',
          title:
            'may have created, fulfilled and refunded, each with chainId and txHash, and is never missing',
          schema: z.looseObject({
            created: transaction.optional(),
            fulfilled: transaction.optional(),
            refunded: transaction.optional(),
          }),
          required: true,
        },
      ],
    }),
    {
      id: 'step: type a',
      title: 'a quote whose token is swapped shows a step and an intent for each part of its way',
      check: async (target) => {
        const query = { quoteId: given(target, 'swappedQuote') };
        const [quote] = list(await statusOf(target, query), 'results');
        const steps = list(quote, 'steps');
        holds(steps.length > 1, `steps: found ${steps.length}, expected several`);
        const hashes = list(quote, 'intentHashes');
        same(new Set(steps.map((step) => read(step, 'intentHash'))), new Set(hashes), 'intents of the steps');
        holds(hashes.length > 1, `intentHashes: found ${hashes.length}, expected several`);
        target.tally?.shown(steps.length);
      },
      breakage: member(on, 'results.*', 'steps', (found: unknown) =>
        Array.isArray(found) ? found.slice(0, 1) : found,
      ),
    },
    {
      id: 'step: transactions a',
      title: 'each of created, fulfilled and refunded has both chainId and txHash',
      check: async (target) => {
        const steps = await inner(target, 'steps');
        for (const name of ['created', 'fulfilled', 'refunded']) {
          const found = steps
            .map((step) => read(step, `transactions.${name}`))
            .filter((one) => one !== undefined);
          holds(found.length > 0, `found no step with ${name}`);
          for (const one of found) conforms(transaction, one, name);
        }
      },
      breakage: member(on, 'results.*.steps.*.transactions.refunded', 'chainId', undefined),
    },
  ],
  finished,
);

/** The statuses of a newly queued job in order, with the txHash of each. */
async function wordsOfNewJob(target: Target): Promise<Map<unknown, unknown[]>> {
  const quoteId = text(await newFundableQuote(target, given(target, 'swapRoute')), 'id');
  const payload = await fundingOf(target, { quoteId });
  const jobId = bare(text(bodyOf(await submit(target, { payload }), 202), 'id'));
  const words = new Map<unknown, unknown[]>();
  for (const endMs = Date.now() + LONGEST_PUBLISHING_MS; Date.now() < endMs; ) {
    const job = read(await statusOf(target, { jobId }), 'results.0');
    const subStatuses = list(job, 'subStatuses');
    holds(subStatuses.length > 1, `subStatuses: found ${subStatuses.length}, expected several`);
    words.set(
      read(subStatuses[0], 'state'),
      subStatuses.map((sub) => read(sub, 'txHash')),
    );
    if (read(job, 'status') === 'published') break;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return words;
}

const NEW_JOB_RULES = inSection(
  'Sub-status',
  [
    {
      id: 'sub-status: state a',
      title: 'a job goes from pending over submitted to published, each of its parts with a state',
      check: async (target) => {
        const words = [...(await wordsOfNewJob(target)).keys()];
        same(words, ['pending', 'submitted', 'published'], 'states');
        target.tally?.shown(words.length);
      },
      breakage: member(on, 'results.*.subStatuses.*', 'state', (found: unknown) =>
        found === 'submitted' ? 'pending' : found,
      ),
    },
    {
      id: 'sub-status: txHash a',
      title: 'is null before there is a transaction',
      check: async (target) => {
        const quoteId = text(await newFundableQuote(target, given(target, 'swapRoute')), 'id');
        const payload = await fundingOf(target, { quoteId });
        const jobId = bare(text(bodyOf(await submit(target, { payload }), 202), 'id'));
        const subStatuses = list(await statusOf(target, { jobId }), 'results.0.subStatuses');
        for (const sub of subStatuses) same(read(sub, 'txHash'), null, 'txHash');
        target.tally?.shown(subStatuses.length);
      },
      breakage: member(on, 'results.*.subStatuses.*', 'txHash', ''),
    },
  ],
  { needs: ['funder', 'swapRoute'] },
);

const NEW_INTENT_RULES = inSection(
  'Status result',
  [
    {
      id: 'status result: txHash a',
      title: 'of an intent without a transaction is null, and later text',
      check: async (target) => {
        const quote = await newFundableQuote(target, given(target, 'swapRoute'));
        const intentHash = text(quote, 'steps.1.intents.0.intentHash');
        const payload = await fundingOf(target, { quoteId: text(quote, 'id') });
        bodyOf(await submit(target, { payload }), 202);
        for (const endMs = Date.now() + LONGEST_PUBLISHING_MS; Date.now() < endMs; ) {
          const intent = read(await statusOf(target, { intentHash }), 'results.0');
          if (read(intent, 'status') !== 'unknown') {
            same(read(intent, 'txHash'), null, 'txHash');
            target.tally?.shown(1);
            return;
          }
          await new Promise((resolve) => setTimeout(resolve, 200));
        }
        holds(false, 'the intent was not published');
      },
      breakage: member(on, 'results.*', 'txHash', ''),
    },
  ],
  { needs: ['funder', 'swapRoute'] },
);

export const STATUS_RECORD_RULES: readonly Rule[] = [
  ...STATUS_RESULT_RULES,
  ...NEW_INTENT_RULES,
  ...SUB_STATUS_RULES,
  ...NEW_JOB_RULES,
  ...SUMMARY_RULES,
  ...STEP_RULES,
];
