import { z } from 'zod';
import { changingQuery, member } from '../breakage.ts';
import { bodyOf, refused } from '../call.ts';
import { conforms, holds, list, read, same, text } from '../expectation.ts';
import { fundingOf, newVault, submit } from '../funding.ts';
import { bare, newFundableQuote, newQuote, requestStatus, STATUS, statusOf } from '../quoting.ts';
import { given, inSection, type Rule } from '../rule.ts';

const WORDS = ['pending', 'filled', 'settled', 'refunded', 'refundable', 'expired', 'failed', 'unknown'];
const UNKNOWN = '00000000-0000-4000-8000-000000000000';

export const STATE_RULES: readonly Rule[] = inSection('States and transitions', [
  {
    id: 'states: status filter a',
    title: `accepts ${WORDS.join(', ')}`,
    check: async (target) => {
      for (const status of WORDS) bodyOf(await requestStatus(target, { wallet: 'nobody-at-all', status }));
    },
    breakage: {
      request: (request) => ({
        ...request,
        path: request.path.replace('status=refundable', 'status=REFUNDABLE'),
      }),
    },
  },
  {
    id: 'states: status filter b',
    title: 'refuses any other value',
    check: async (target) => {
      for (const status of ['active', 'submitted', 'PENDING']) {
        refused(await requestStatus(target, { wallet: 'nobody-at-all', status }), 400, 'invalid-request');
      }
    },
    breakage: changingQuery(STATUS, 'status', 'pending'),
  },
  {
    id: 'states: other words a',
    title: 'a quote that is not yet funded is active',
    check: async (target) => {
      const quoteId = bare(text(await newQuote(target), 'id'));
      same(read(await statusOf(target, { quoteId }), 'results.0.status'), 'active', 'status');
    },
    breakage: member({ path: STATUS }, 'results.*', 'status', 'ACTIVE'),
  },
  {
    id: 'states: other words b',
    title: 'a job is published at the status endpoint, and its sub-status too',
    stage: 'finished',
    needs: ['publishedJob'],
    check: async (target) => {
      const job = await statusOf(target, { jobId: given(target, 'publishedJob') });
      same(read(job, 'results.0.status'), 'published', 'status');
      same(read(job, 'results.0.subStatuses.0.state'), 'published', 'state of the sub-status');
    },
    breakage: member({ path: STATUS }, 'results.*.subStatuses.*', 'state', 'pending'),
  },
  {
    id: 'states: other words c',
    title: 'the step of a transfer that is filled is FULFILLED',
    stage: 'finished',
    needs: ['filledIntent'],
    check: async (target) => {
      const intent = await statusOf(target, { intentHash: given(target, 'filledIntent') });
      same(read(intent, 'results.0.steps.0.status'), 'FULFILLED', 'status of the step');
    },
    breakage: member({ path: STATUS }, 'results.*.steps.*', 'status', 'fulfilled'),
  },
  {
    id: 'states: other words d',
    title: 'a new vault is PENDING',
    needs: ['vaultRequest'],
    check: async (target) => {
      const { record } = await newVault(target);
      same(read(record, 'state'), 'PENDING', 'state');
    },
    breakage: member({ path: /deposit-addresses/ }, 'data', 'state', 'pending'),
  },
  {
    id: 'states: quote active to submitted a',
    title: 'a quote that is funded is submitted and carries intentHashes, steps and its transactions',
    stage: 'finished',
    needs: ['fundedQuote'],
    check: async (target) => {
      const quote = await statusOf(target, { quoteId: given(target, 'fundedQuote') });
      same(read(quote, 'results.0.status'), 'submitted', 'status');
      holds(list(quote, 'results.0.intentHashes').length > 0, 'found no intent hashes');
      holds(list(quote, 'results.0.steps').length > 0, 'found no steps');
      text(quote, 'results.0.sourceTx.txHash');
    },
    breakage: member({ path: STATUS }, 'results.*', 'status', 'active'),
  },
  {
    id: 'states: quote active to submitted b',
    title: 'a quote that is not yet funded has an empty list of steps, and names no intents',
    check: async (target) => {
      const quoteId = bare(text(await newQuote(target), 'id'));
      const record = read(await statusOf(target, { quoteId }), 'results.0');
      same(read(record, 'steps'), [], 'steps');
      same(read(record, 'intentHashes'), undefined, 'intentHashes');
    },
    breakage: member({ path: STATUS }, 'results.*', 'intentHashes', [`0x${'1'.repeat(64)}`]),
  },
  {
    id: 'states: quote active to submitted c',
    title: 'the job that funds a quote is found under its id as soon as it is queued',
    needs: ['funder'],
    check: async (target) => {
      const quoteId = text(await newFundableQuote(target), 'id');
      const queued = bodyOf(await submit(target, { payload: await fundingOf(target, { quoteId }) }), 202);
      const job = await statusOf(target, { jobId: bare(text(queued, 'id')) });
      same(read(job, 'results.0.subStatuses.0.quoteIds'), [quoteId], 'quoteIds');
    },
    breakage: member({ path: STATUS }, 'results.*.subStatuses.*', 'quoteIds', []),
  },
  {
    id: 'states: any id to unknown',
    title: 'an id that was not seen is 200 unknown, with updatedAt null and no other members',
    check: async (target) => {
      for (const filter of ['intentHash', 'sourceTxHash', 'destinationTxHash', 'quoteId', 'jobId']) {
        const value = filter.endsWith('Id') ? UNKNOWN : `0x${'0'.repeat(64)}`;
        const results = list(await statusOf(target, { [filter]: value }), 'results');
        const { id, type } = conforms(
          z.looseObject({ id: z.string(), type: z.string() }),
          results[0],
          filter,
        );
        same(results, [{ id, type, status: 'unknown', updatedAt: null }], `results of ${filter}`);
      }
      const [quote] = list(await statusOf(target, { quoteId: UNKNOWN }), 'results');
      same(read(quote, 'id'), `quote:${UNKNOWN}`, 'id');
    },
    breakage: member({ path: STATUS }, 'results.*', 'steps', []),
  },
]);
