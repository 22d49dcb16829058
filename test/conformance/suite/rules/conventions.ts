import { z } from 'zod';
import { accepting, changing, changingQuery, jsonOf, member, sending } from '../breakage.ts';
import { bodyOf, call, names, refused, refusedByGateway } from '../call.ts';
import { conforms, holds, list, read, same, text } from '../expectation.ts';
import { fundingOf, newVault, requestVault, submit } from '../funding.ts';
import {
  bare,
  changed,
  newFundableQuote,
  newQuote,
  QUOTES,
  quoteRequest,
  requestQuote,
  requestStatus,
  STATUS,
  statusOf,
} from '../quoting.ts';
import { given, inSection, type Need, type Rule } from '../rule.ts';
import { baseUnits, prefixedJob, prefixedQuote, unixSeconds } from '../shape.ts';

function addressRule(
  id: string,
  { of, need, place, wrong }: { of: string; need?: Need; place: string; wrong: string },
): Omit<Rule, 'section'> {
  return {
    id,
    title: `an address of ${of} is accepted, and one that is malformed is 400 and named`,
    ...(need === undefined ? {} : { needs: [need] }),
    check: async (target) => {
      const { solanaRoute, tronRoute, route } = target.material;
      const wanted = need === 'solanaRoute' ? solanaRoute : need === 'tronRoute' ? tronRoute : route;
      const body = quoteRequest(target, wanted);
      bodyOf(await requestQuote(target, body));
      const problem = refused(
        await requestQuote(target, changed(body, place, wrong)),
        400,
        'invalid-request',
      );
      names(problem, place);
    },
    breakage: accepting({ path: QUOTES, status: 400 }),
  };
}

export const CONVENTION_RULES: readonly Rule[] = inSection('Conventions', [
  {
    id: 'conventions: JSON',
    title: 'a request whose body is no JSON is 400 invalid-request',
    check: async (target) => {
      refused(await requestQuote(target, '{'), 400, 'invalid-request');
      const asText = {
        method: 'POST',
        path: '/v1/quotes',
        headers: { 'content-type': 'text/plain' },
      } as const;
      const reply = await call(target, { ...asText, body: 'a quote, please' });
      holds(reply.status >= 400 && reply.status < 500, `text/plain: found ${reply.status}, expected 4xx`);
    },
    breakage: accepting({ path: QUOTES, status: 400 }),
  },
  {
    id: 'conventions: unknown keys a',
    title: 'an unknown key is 400',
    check: async (target) => {
      const body = changed(quoteRequest(target), 'note', 'x');
      names(refused(await requestQuote(target, body), 400, 'invalid-request'), 'note');
    },
    breakage: sending(QUOTES, '', 'note'),
  },
  {
    id: 'conventions: unknown keys b',
    title: 'a misplaced key is 400',
    check: async (target) => {
      const { amount } = target.material.route;
      const body = changed(quoteRequest(target), 'amount', amount);
      names(refused(await requestQuote(target, body), 400, 'invalid-request'), 'amount');
    },
    breakage: sending(QUOTES, '', 'amount'),
  },
  {
    id: 'conventions: amounts a',
    title: 'amounts are answered as base-unit decimal strings',
    check: async (target) => {
      const quote = await newQuote(target);
      // The interface shows the type of a fee alone.
      const fees = list(quote, 'fees').flatMap((fee) => read(fee, 'amount') ?? []);
      const amounts = [
        read(quote, 'destination.amountOut'),
        read(quote, 'destination.minAmountOut'),
        ...fees,
      ];
      for (const amount of amounts) conforms(baseUnits, amount, 'amount');
    },
    breakage: member({ path: QUOTES }, 'destination', 'amountOut', Number),
  },
  {
    id: 'conventions: amounts b',
    title: 'an amount that is no base-unit decimal string is 400',
    check: async (target) => {
      for (const amount of [100_000_000, '1.5', '0x10', '-5']) {
        const body = changed(quoteRequest(target), 'source.amount', amount);
        names(refused(await requestQuote(target, body), 400, 'invalid-request'), 'source.amount');
      }
    },
    breakage: sending(QUOTES, 'source', 'amount', '100000000'),
  },
  {
    id: 'conventions: slippage',
    title: '0.005 lowers the least output by 0.5 %',
    check: async (target) => {
      const body = changed(quoteRequest(target), 'slippage', 0.005);
      const half = bodyOf(await requestQuote(target, body));
      const [out, least] = [
        BigInt(text(half, 'destination.amountOut')),
        BigInt(text(half, 'destination.minAmountOut')),
      ];
      same(String(out - least), String((out * 5n) / 1000n), 'what the output may slip');
    },
    breakage: sending(QUOTES, '', 'slippage', 0.5),
  },
  {
    id: 'conventions: timestamps',
    title: 'timestamps are Unix seconds',
    check: async (target) => {
      const quote = await newQuote(target);
      conforms(unixSeconds, read(quote, 'expiresAt'), 'expiresAt');
      const status = await statusOf(target, { quoteId: bare(text(quote, 'id')) });
      conforms(unixSeconds, read(status, 'results.0.updatedAt'), 'updatedAt');
    },
    breakage: member(
      { path: STATUS },
      'results.*',
      'updatedAt',
      (seconds: unknown) => Number(seconds) * 1000,
    ),
  },
  {
    id: 'conventions: type',
    title: 'every discriminator is named type',
    check: async (target) => {
      const quote = await newQuote(target);
      const things = [...list(quote, 'fees'), ...list(quote, 'steps'), quote];
      for (const thing of [...things, read(quote, 'execution.transaction')]) text(thing, 'type');
      same(read(quote, 'type'), 'exact-in', 'type of the quote');
    },
    breakage: member({ path: QUOTES }, 'fees.*', 'type', undefined),
  },
  {
    id: 'conventions: identifiers a',
    title: 'identifiers of quotes, jobs and intents carry their prefix',
    needs: ['funder'],
    check: async (target) => {
      const quote = await newFundableQuote(target);
      const quoteId = conforms(prefixedQuote, read(quote, 'id'), 'id of a quote');
      const job = bodyOf(await submit(target, { payload: await fundingOf(target, { quoteId }) }), 202);
      conforms(prefixedJob, read(job, 'id'), 'id of a job');
      const intentHash = text(quote, 'intentHash');
      const status = await statusOf(target, { intentHash });
      same(read(status, 'results.0.id'), `intent:${intentHash.toLowerCase()}`, 'id of an intent');
    },
    breakage: member({ path: /^\/v1\/gasless/ }, '', 'id', (id: unknown) => bare(String(id))),
  },
  {
    id: 'conventions: identifiers b',
    title: 'the filters quoteId and jobId take the bare UUID',
    needs: ['funder'],
    check: async (target) => {
      const quoteId = text(await newFundableQuote(target), 'id');
      const job = bodyOf(await submit(target, { payload: await fundingOf(target, { quoteId }) }), 202);
      const jobId = text(job, 'id');
      same(read(await statusOf(target, { quoteId: bare(quoteId) }), 'results.0.id'), quoteId, 'quote');
      same(read(await statusOf(target, { jobId: bare(jobId) }), 'results.0.id'), jobId, 'job');
    },
    breakage: changingQuery(STATUS, 'jobId', '00000000-0000-4000-8000-000000000000'),
  },
  addressRule('conventions: addresses a', {
    of: 'an EVM chain (0x and 40 hex characters)',
    place: 'source.funder',
    wrong: '0x5290840009852788',
  }),
  addressRule('conventions: addresses b', {
    of: 'Solana (base58)',
    need: 'solanaRoute',
    place: 'source.funder',
    wrong: '0OIl0OIl0OIl0OIl0OIl0OIl0OIl0OIl',
  }),
  addressRule('conventions: addresses c', {
    of: 'Tron (T and base58)',
    need: 'tronRoute',
    place: 'destination.recipient',
    wrong: 'AR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
  }),
  {
    id: 'conventions: page size',
    title: 'a page has 1 to 50 results, 20 when no limit is given',
    stage: 'finished',
    needs: ['wallet'],
    check: async (target) => {
      const wallet = given(target, 'wallet');
      for (const limit of ['1', '50']) bodyOf(await requestStatus(target, { wallet, limit }));
      same(list(await statusOf(target, { wallet, limit: '1' }), 'results').length, 1, 'results of limit 1');
      same(list(await statusOf(target, { wallet }), 'results').length, 20, 'results of no limit');
    },
    breakage: {
      request: (request) =>
        STATUS.test(request.path) && !request.path.includes('limit=')
          ? { ...request, path: `${request.path}&limit=10` }
          : request,
    },
  },
  {
    id: 'conventions: vault envelope a',
    title: 'creating and requesting a vault answer in a data envelope',
    needs: ['vaultRequest'],
    check: async (target) => {
      const { record } = await newVault(target);
      conforms(z.looseObject({ vaultAddress: z.string() }), record, 'data');
    },
    breakage: changing({ path: /deposit-addresses/ }, (answered) => {
      return { ...answered, body: JSON.stringify(read(jsonOf(answered.body), 'data')) };
    }),
  },
  {
    id: 'conventions: vault envelope b',
    title: 'creating a vault refuses in an error format of its own',
    needs: ['vaultRequest'],
    check: async (target) => {
      const reply = await requestVault(target, { nothing: 'of use' });
      refusedByGateway(reply, 400);
      holds(read(reply.body, 'type') === undefined, 'type: found one, as in a Problem');
    },
    breakage: member(
      { path: /deposit-addresses/, status: 400 },
      '',
      'type',
      'https://example.com/v1/errors/x',
    ),
  },
]);
