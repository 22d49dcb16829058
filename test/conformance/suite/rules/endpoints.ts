import { z } from 'zod';
import { accepting, instead, member, sending } from '../breakage.ts';
import { bodyOf, call, names, refused } from '../call.ts';
import { conforms, holds, list, read, same, text } from '../expectation.ts';
import { atVaults, fundingOf, type Scheme, submit, VAULTS } from '../funding.ts';
import {
  changed,
  entriesOf,
  newFundableQuote,
  newQuote,
  QUOTES,
  quoteRequest,
  requestQuote,
  requestStatus,
  STATUS,
} from '../quoting.ts';
import { inSection, type Rule } from '../rule.ts';

function requiredKey(place: string): Omit<Rule, 'section'> {
  return {
    id: `POST /v1/quotes: ${place}`,
    title: 'a request without it is 400 and names it',
    check: async (target) => {
      const body = changed(quoteRequest(target), place, undefined);
      names(refused(await requestQuote(target, body), 400, 'invalid-request'), place);
    },
    breakage: accepting({ path: QUOTES, status: 400 }),
  };
}

function gaslessSubmit(scheme: Scheme, name: string): Omit<Rule, 'section'> {
  return {
    id: `endpoint POST gasless submit: ${name}`,
    title: 'queues a gasless funding job',
    needs: ['funder'],
    check: async (target) => {
      const quoteId = text(await newFundableQuote(target), 'id');
      const payload = await fundingOf(target, { quoteId, scheme });
      text(bodyOf(await submit(target, { payload, scheme }), 202), 'id');
    },
    breakage: instead({ path: new RegExp(`^/v1/gasless/submit/${scheme}`) }, { status: 404 }),
  };
}

const V1_RULES = inSection('Endpoints: v1 API', [
  {
    id: 'endpoint GET /v1/chains',
    title: 'lists chains whose entries carry quoteSigner',
    check: async (target) => {
      const chains = entriesOf(bodyOf(await call(target, { path: '/v1/chains' })));
      holds(chains.length > 0, 'found no chains');
      for (const chain of chains) text(chain, 'quoteSigner');
    },
    breakage: member({ path: /^\/v1\/chains/ }, 'chains.*', 'quoteSigner', undefined),
  },
  {
    id: 'endpoint GET /v1/tokens',
    title: 'lists tokens',
    check: async (target) => {
      holds(entriesOf(bodyOf(await call(target, { path: '/v1/tokens' }))).length > 0, 'found no tokens');
    },
    breakage: instead({ path: /^\/v1\/tokens/ }, { body: { tokens: [] } }),
  },
  {
    id: 'endpoint POST /v1/quotes',
    title: 'prices a transfer',
    check: async (target) => {
      const out = BigInt(text(await newQuote(target), 'destination.amountOut'));
      holds(out > 0n, `found an output of ${out}`);
    },
    breakage: instead({ path: QUOTES }, { status: 502 }),
  },
  gaslessSubmit('permit3', 'Permit3'),
  gaslessSubmit('permit2', 'Permit2'),
  gaslessSubmit('erc-3009', 'ERC-3009'),
  {
    id: 'endpoint GET /v1/intents/status',
    title: 'states the status of intents, quotes and gasless jobs',
    check: async (target) => {
      const uuid = '00000000-0000-4000-8000-000000000000';
      const lookups = [
        { filter: 'intentHash', value: `0x${'0'.repeat(64)}`, type: 'intent' },
        { filter: 'quoteId', value: uuid, type: 'quote' },
        { filter: 'jobId', value: uuid, type: 'gasless' },
      ];
      for (const { filter, value, type } of lookups) {
        const body = bodyOf(await requestStatus(target, { [filter]: value }));
        same(read(body, 'results.0.type'), type, `type for ${filter}`);
      }
    },
    breakage: member({ path: STATUS }, 'results.*', 'type', 'intent'),
  },
  {
    id: 'endpoint deposit-vault endpoints',
    title: 'are beside the v1 endpoints on the same address',
    check: async (target) => {
      for (const path of [VAULTS.create, VAULTS.erc3009, VAULTS.erc2612]) {
        same((await atVaults(target, { path, body: {} })).status, 400, `${path} of an empty body`);
      }
    },
    breakage: instead({ path: /submit\/erc-2612/ }, { status: 404 }),
  },
]);

const QUOTE_REQUEST_RULES = inSection('POST /v1/quotes', [
  {
    id: 'POST /v1/quotes: type a',
    title: 'is exact-in, exact-out or custom',
    check: async (target) => {
      const base = quoteRequest(target);
      const { amount } = target.material.route;
      const least = String((BigInt(amount) * 9n) / 10n);
      const out = changed(base, 'destination.amountOut', least);
      const bodies = {
        'exact-in': base,
        'exact-out': changed(out, 'source.amount', undefined),
        custom: out,
      };
      for (const [type, body] of Object.entries(bodies)) {
        const quote = bodyOf(await requestQuote(target, { ...body, type }));
        same(read(quote, 'type'), type, 'type of the quote');
      }
      names(refused(await requestQuote(target, { ...base, type: 'exact' }), 400, 'invalid-request'), 'type');
    },
    breakage: member({ path: QUOTES }, '', 'type', 'exact-in'),
  },
  { ...requiredKey('type'), id: 'POST /v1/quotes: type b' },
  requiredKey('dappId'),
  requiredKey('source.funder'),
  requiredKey('source.chainId'),
  requiredKey('source.token'),
  {
    id: 'POST /v1/quotes: destination.amountOut',
    title: 'is the output of an exact-out quote',
    check: async (target) => {
      const body = { ...changed(quoteRequest(target), 'source.amount', undefined), type: 'exact-out' };
      const request = changed(body, 'destination.amountOut', '77777777');
      same(read(bodyOf(await requestQuote(target, request)), 'destination.amountOut'), '77777777', 'output');
    },
    breakage: sending(QUOTES, 'destination', 'amountOut', '70000000'),
  },
  {
    id: 'POST /v1/quotes: destination.minAmountOut',
    title: 'is a least output that is promised',
    check: async (target) => {
      const least = String((BigInt(target.material.route.amount) * 9n) / 10n);
      const body = changed(quoteRequest(target), 'destination.minAmountOut', least);
      same(read(bodyOf(await requestQuote(target, body)), 'destination.minAmountOut'), least, 'least output');
    },
    breakage: sending(QUOTES, 'destination', 'minAmountOut'),
  },
  {
    id: 'POST /v1/quotes: slippage',
    title: 'is a decimal fraction that lowers the least output',
    check: async (target) => {
      const body = changed(quoteRequest(target), 'slippage', 0.02);
      const quote = bodyOf(await requestQuote(target, body));
      const out = BigInt(text(quote, 'destination.amountOut'));
      same(read(quote, 'destination.minAmountOut'), String(out - (out * 2n) / 100n), 'least output');
    },
    breakage: sending(QUOTES, '', 'slippage'),
  },
  {
    id: 'POST /v1/quotes: options.allQuotes',
    title: 'adds a list of quotes',
    check: async (target) => {
      const body = changed(quoteRequest(target), 'options', { allQuotes: true });
      holds(list(bodyOf(await requestQuote(target, body)), 'quotes').length > 0, 'found no quotes');
    },
    breakage: sending(QUOTES, '', 'options'),
  },
  {
    id: 'POST /v1/quotes: response',
    title: 'is 200 with one quote at the top',
    check: async (target) => {
      conforms(z.looseObject({ id: z.string().startsWith('quote:') }), await newQuote(target), 'body');
    },
    breakage: instead({ path: QUOTES }, { status: 201 }),
  },
  {
    id: 'gasless submits: resend',
    title: 'resending the identical payload is 200 with the existing job, for each scheme',
    needs: ['funder'],
    check: async (target) => {
      for (const scheme of ['permit3', 'permit2', 'erc-3009'] as const) {
        const quoteId = text(await newFundableQuote(target), 'id');
        const payload = await fundingOf(target, { quoteId, scheme });
        const job = bodyOf(await submit(target, { payload, scheme }), 202);
        same(read(bodyOf(await submit(target, { payload, scheme })), 'id'), read(job, 'id'), 'id of the job');
      }
    },
    breakage: member(
      { path: /permit2/, status: 200 },
      '',
      'id',
      'gasless:00000000-0000-4000-8000-000000000000',
    ),
  },
]);

export const ENDPOINT_RULES: readonly Rule[] = [...V1_RULES, ...QUOTE_REQUEST_RULES];
