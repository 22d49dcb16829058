import { accepting, changing, instead, member, otherCode } from '../breakage.ts';
import { bodyOf, call, names, refused, refusedByGateway, requestOpenly } from '../call.ts';
import { holds, list, read, same, text } from '../expectation.ts';
import { atVaults, newVault, VAULTS, vaultTransfer } from '../funding.ts';
import { OPEN_QUOTES, openRequest } from '../open-quoting.ts';
import { changed, QUOTES, quoteRequest, requestQuote, requestStatus, STATUS } from '../quoting.ts';
import { given, inSection, type Rule, type Target } from '../rule.ts';

const UUID = '00000000-0000-4000-8000-000000000000';

async function messageOf(target: Target, query: Record<string, string>): Promise<string> {
  const reply = await requestStatus(target, query);
  refused(reply, 400, 'invalid-request');
  return reply.text;
}

const FORMAT_RULES = inSection('Errors: format', [
  {
    id: 'error format: core',
    title: 'errors of the core API are Problems, as application/problem+json',
    check: async (target) => {
      const replies = [
        await requestStatus(target, {}),
        await requestQuote(target, {}),
        await requestQuote(target, changed(quoteRequest(target), 'source.chainId', 999_999_937)),
        await call(target, { path: '/v1/intents/nothing-here' }),
      ];
      for (const { headers, body } of replies) {
        const type = headers['content-type'] ?? '';
        holds(type.startsWith('application/problem+json'), `content type: found ${type}`);
        text(body, 'code');
      }
    },
    breakage: instead({ path: /nothing-here/ }, { type: 'application/json' }),
  },
  {
    id: 'error format: gateway',
    title: 'the 403 of the gateway is a plain body',
    check: async (target) => {
      const { headers, body, status } = await call(target, { path: '/v1/tokens', key: null });
      same(status, 403, 'HTTP status');
      const type = headers['content-type'] ?? '';
      holds(!type.includes('problem+json'), `content type: found ${type}`);
      same(read(body, 'code'), undefined, 'code');
    },
    breakage: instead({ path: /tokens/, status: 403 }, { type: 'application/problem+json' }),
  },
  {
    id: 'error format: deposit vaults',
    title: 'the deposit-vault endpoints have a format of their own',
    check: async (target) => {
      for (const path of [VAULTS.create, VAULTS.erc3009, VAULTS.erc2612, VAULTS.olderErc3009]) {
        const reply = await atVaults(target, { path, body: {} });
        refusedByGateway(reply, 400);
        same(read(reply.body, 'type'), undefined, 'type');
      }
    },
    breakage: instead({ path: /erc-2612/ }, { type: 'application/problem+json' }),
  },
  {
    id: 'error format: open quoting service',
    title: 'its 400 has statusCode, createdBy ValidationFilter and validationErrors',
    needs: ['quotesUrl'],
    check: async (target) => {
      const body = bodyOf(await requestOpenly(target, { dAppID: 'conformance' }), 400);
      same([read(body, 'statusCode'), read(body, 'createdBy')], [400, 'ValidationFilter'], 'body');
      holds(list(body, 'validationErrors').length > 0, 'found no validation errors');
    },
    breakage: member({ path: OPEN_QUOTES, status: 400 }, '', 'createdBy', undefined),
  },
]);

const STATUS_DETAIL_RULES: Omit<Rule, 'section'>[] = [
  {
    id: 'errors rule 4a',
    title: 'no filter: the message lists the filters and states that paging controls alone are not a filter',
    check: async (target) => {
      const message = await messageOf(target, {});
      const words = ['intentHash', 'sourceTxHash', 'destinationTxHash', 'quoteId', 'jobId', 'wallet'];
      for (const word of [...words, 'paging controls alone are not a filter']) {
        holds(message.includes(word), `found ${message}, expected ${word}`);
      }
    },
    breakage: changing({ path: STATUS, status: 400 }, (answered) => ({
      ...answered,
      body: answered.body.replaceAll('destinationTxHash', 'destTx'),
    })),
  },
  {
    id: 'errors rule 4b',
    title: 'a prefixed UUID: Invalid UUID',
    check: async (target) => {
      const message = [
        await messageOf(target, { quoteId: `quote:${UUID}` }),
        await messageOf(target, { jobId: `gasless:${UUID}` }),
      ];
      for (const one of message) holds(one.includes('Invalid UUID'), `found ${one}, expected Invalid UUID`);
    },
    breakage: changing({ path: STATUS, status: 400 }, (answered) => ({
      ...answered,
      body: answered.body.replaceAll('Invalid UUID', 'Invalid'),
    })),
  },
  {
    id: 'errors rule 4c',
    title:
      'status without wallet: the message states that it narrows a collection and must be combined with wallet',
    check: async (target) => {
      const message = await messageOf(target, { status: 'pending' });
      holds(/narrows a collection/.test(message) && /combined with wallet/.test(message), `found ${message}`);
    },
    breakage: changing({ path: STATUS, status: 400 }, (answered) => ({
      ...answered,
      body: answered.body.replaceAll('narrows a collection', 'is wrong'),
    })),
  },
  {
    id: 'errors rule 4d',
    title: 'limit above 50: the message states that the value must be at most 50',
    check: async (target) => {
      const message = await messageOf(target, { wallet: 'nobody-at-all', limit: '51' });
      holds(/at most 50/.test(message), `found ${message}`);
    },
    breakage: changing({ path: STATUS, status: 400 }, (answered) => ({
      ...answered,
      body: answered.body.replaceAll('at most 50', 'less'),
    })),
  },
  {
    id: 'errors rule 5a',
    title: 'the status endpoint answers 401 with a Problem',
    check: async (target) => {
      const query = { wallet: 'nobody-at-all' };
      const reply = await call(target, { path: '/v1/intents/status', query, key: 'conformance-no-such-key' });
      refused(reply, 401, 'invalid-api-key');
    },
    breakage: otherCode('invalid-api-key'),
  },
  {
    id: 'errors rule 5b',
    title: 'the status endpoint answers 403 with the body of the gateway',
    check: async (target) => {
      const query = { wallet: 'nobody-at-all' };
      text(bodyOf(await call(target, { path: '/v1/intents/status', query, key: null }), 403), 'Message');
    },
    breakage: instead({ path: STATUS, status: 403 }, { body: { code: 'forbidden' } }),
  },
  {
    id: 'errors rule 5c',
    title: 'the status endpoint answers 429 with a Problem rate-limit-exceeded',
    stage: { failing: 'rate-limit-exceeded' },
    check: async (target) => {
      refused(await requestStatus(target, { wallet: 'nobody-at-all' }), 429, 'rate-limit-exceeded');
    },
    breakage: otherCode('rate-limit-exceeded'),
  },
  {
    id: 'errors rule 5d',
    title: 'the status endpoint answers 500 with a Problem internal-error',
    stage: { failing: 'internal-error' },
    check: async (target) => {
      refused(await requestStatus(target, { wallet: 'nobody-at-all' }), 500, 'internal-error');
    },
    breakage: otherCode('internal-error'),
  },
];

const OPEN_RULES: Omit<Rule, 'section'>[] = [
  {
    id: 'errors rule 6a',
    title: 'the open quoting service answers invalid fields with 400',
    needs: ['quotesUrl'],
    check: async (target) => {
      const body = changed(openRequest(target), 'quoteRequest.sourceAmount', 'much');
      bodyOf(await requestOpenly(target, body), 400);
    },
    breakage: accepting({ path: OPEN_QUOTES, status: 400 }, { data: [] }),
  },
  {
    id: 'errors rule 6b',
    title: 'the open quoting service answers 429, with Retry-After, when it limits the rate',
    stage: { failing: 'rate-limit-exceeded', retryAfterSeconds: 3 },
    needs: ['quotesUrl'],
    check: async (target) => {
      const reply = await requestOpenly(target, openRequest(target));
      same([reply.status, reply.headers['retry-after']], [429, '3'], 'status and Retry-After');
    },
    breakage: instead({ path: OPEN_QUOTES }, { status: 503 }),
  },
  {
    id: 'errors rule 6c',
    title: 'the open quoting service answers 5xx when it fails',
    stage: { failing: 'service-unavailable' },
    needs: ['quotesUrl'],
    check: async (target) => {
      same((await requestOpenly(target, openRequest(target))).status, 503, 'HTTP status');
    },
    breakage: instead({ path: OPEN_QUOTES }, { status: 201, body: { data: [] } }),
  },
  {
    id: 'errors rule 6d',
    title: 'an empty data array is a success',
    needs: ['quotesUrl'],
    check: async (target) => {
      const body = changed(openRequest(target), 'quoteRequest.sourceAmount', '1');
      same(list(bodyOf(await requestOpenly(target, body), 201), 'data'), [], 'data');
    },
    breakage: instead({ path: OPEN_QUOTES, status: 201 }, { status: 404 }),
  },
];

const RULES = inSection('Errors: rules', [
  {
    id: 'errors rule 1a',
    title: 'slippage-out-of-bounds has status 400 and an errors entry for slippage',
    check: async (target) => {
      for (const slippage of [0, 0.00009, 1.01, 50]) {
        const reply = await requestQuote(target, changed(quoteRequest(target), 'slippage', slippage));
        names(refused(reply, 400, 'slippage-out-of-bounds'), 'slippage');
      }
    },
    breakage: member({ code: 'slippage-out-of-bounds' }, 'errors.*', 'field', 'options'),
  },
  {
    id: 'errors rule 1b',
    title: 'its title states that slippage is a decimal fraction, not a percent',
    check: async (target) => {
      const reply = await requestQuote(target, changed(quoteRequest(target), 'slippage', 50));
      const { title } = refused(reply, 400, 'slippage-out-of-bounds');
      holds(/decimal fraction.*not a percent/i.test(title), `title: found ${title}`);
    },
    breakage: member({ code: 'slippage-out-of-bounds' }, '', 'title', 'The request is invalid'),
  },
  {
    id: 'errors rule 2',
    title: 'a token that is not listed is 502 solver-error',
    check: async (target) => {
      for (const place of ['source.token', 'destination.token']) {
        const body = changed(quoteRequest(target), place, `0x${'12'.repeat(20)}`);
        refused(await requestQuote(target, body), 502, 'solver-error');
      }
    },
    breakage: instead({ path: QUOTES, status: 502 }, { status: 422 }),
  },
  {
    id: 'errors rule 2 (causes)',
    title: 'an amount that no solver can fill is 502 solver-error, or 422 where every solver states why',
    needs: ['tronRoute'],
    check: async (target) => {
      const route = given(target, 'tronRoute');
      const reply = await requestQuote(target, quoteRequest(target, { ...route, amount: '999999999999' }));
      if (reply.status === 422) {
        holds(list(bodyOf(reply, 422), 'solverErrors').length > 0, 'found no solverErrors');
      } else refused(reply, 502, 'solver-error');
    },
    breakage: instead({ path: QUOTES, status: 422 }, { status: 400 }),
  },
  ...STATUS_DETAIL_RULES,
  ...OPEN_RULES,
  {
    id: 'errors rule 7a',
    title: 'a gasless transfer to a vault whose quote has expired is rejected',
    stage: 'finished',
    needs: ['funder', 'expiredVault'],
    check: async (target) => {
      const value = BigInt(target.material.route.amount);
      const body = await vaultTransfer(target, { vault: given(target, 'expiredVault'), value });
      const { status } = await atVaults(target, { path: VAULTS.olderErc3009, body });
      holds(status >= 400 && status < 500, `found ${status}, expected 4xx`);
    },
    breakage: accepting({ path: /transferWithAuthorization/ }, { data: { status: 'PENDING' } }),
  },
  {
    id: 'errors rule 7b',
    title: 'a gasless transfer of less than the quoted amount is rejected',
    needs: ['funder', 'vaultRequest'],
    check: async (target) => {
      const { place, amount } = await newVault(target);
      const body = await vaultTransfer(target, { vault: place, value: amount - 1n });
      const { status } = await atVaults(target, { path: VAULTS.olderErc3009, body });
      holds(status >= 400 && status < 500, `found ${status}, expected 4xx`);
    },
    breakage: accepting({ path: /transferWithAuthorization/ }, { data: { status: 'PENDING' } }),
  },
]);

export const ERROR_RULES: readonly Rule[] = [...FORMAT_RULES, ...RULES];
