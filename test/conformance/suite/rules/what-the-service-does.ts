import { z } from 'zod';
import { accepting, instead, member } from '../breakage.ts';
import { bodyOf, call, requestOpenly } from '../call.ts';
import { conforms, holds, read, same, text } from '../expectation.ts';
import {
  atVaults,
  fetchJob,
  fundingOf,
  newVault,
  submit,
  submitPermit,
  VAULTS,
  vaultTransfer,
} from '../funding.ts';
import { OPEN_QUOTES, openRequest } from '../open-quoting.ts';
import {
  bare,
  entriesOf,
  newFundableQuote,
  newQuote,
  QUOTES,
  quoteRequest,
  quoteSigner,
  requestQuote,
  STATUS,
  signerOf,
  statusOf,
} from '../quoting.ts';
import { given, inSection, type Rule, type Target } from '../rule.ts';
import { unixSeconds } from '../shape.ts';

const knowsRoute = async (target: Target): Promise<void> => {
  const { source } = target.material.route;
  const chains = entriesOf(bodyOf(await call(target, { path: '/v1/chains' })));
  const tokens = entriesOf(bodyOf(await call(target, { path: '/v1/tokens' })));
  const hasChain = chains.some((chain) => read(chain, 'chainId') === source.chainId);
  const hasToken = tokens.some(
    (token) => String(read(token, 'address')).toLowerCase() === source.token.toLowerCase(),
  );
  holds(hasChain, `GET /v1/chains: expected chain ${source.chainId}`);
  holds(hasToken, `GET /v1/tokens: expected ${source.token}`);
};

export const SERVICE_RULES: readonly Rule[] = inSection('What the service does', [
  {
    id: 'service 1',
    title: 'a transfer is priced, its funding transaction supplied and its status reported',
    check: async (target) => {
      const quote = await newQuote(target);
      conforms(z.string().regex(/^[1-9]\d*$/), read(quote, 'destination.amountOut'), 'destination.amountOut');
      conforms(z.looseObject({ type: z.string() }), read(quote, 'execution.transaction'), 'transaction');
      const status = await statusOf(target, { quoteId: bare(text(quote, 'id')) });
      same(read(status, 'results.0.id'), text(quote, 'id'), 'id of the status');
    },
    breakage: member({ path: STATUS }, 'results.*', 'id', 'quote:00000000-0000-4000-8000-000000000000'),
  },
  {
    id: 'service 2.1',
    title: 'GET /v1/chains and GET /v1/tokens list the chains and tokens that can be quoted',
    check: knowsRoute,
    breakage: instead({ path: /^\/v1\/tokens/ }, { body: { tokens: [] } }),
  },
  {
    id: 'service 2.2',
    title: 'the answer of POST /v1/quotes includes the exact transaction to send',
    check: async (target) => {
      const { chainId } = target.material.route.source;
      const transaction = read(await newQuote(target), 'execution.transaction');
      const schema = z.looseObject({ chainId: z.literal(chainId), to: z.string(), data: z.string() });
      conforms(schema, transaction, 'execution.transaction');
    },
    breakage: member({ path: QUOTES }, 'execution', 'transaction', undefined),
  },
  {
    id: 'service 2.3',
    title: 'a quote is funded by posting a signed authorization to a submit endpoint',
    needs: ['funder'],
    check: async (target) => {
      const quoteId = text(await newFundableQuote(target), 'id');
      bodyOf(await submit(target, { payload: await fundingOf(target, { quoteId }) }), 202);
    },
    breakage: instead({ path: /^\/v1\/gasless/ }, { status: 422 }),
  },
  {
    id: 'service 2.4',
    title: 'GET /v1/intents/status?intentHash= reports the intent until it is filled',
    stage: 'finished',
    needs: ['filledIntent'],
    check: async (target) => {
      const status = await statusOf(target, { intentHash: given(target, 'filledIntent') });
      conforms(z.enum(['filled', 'settled']), read(status, 'results.0.status'), 'status');
    },
    breakage: member({ path: STATUS }, 'results.*', 'status', 'pending'),
  },
  {
    id: 'service 3',
    title: 'every quote is signed, and who signed it can be verified',
    check: async (target) => {
      const quote = await newQuote(target);
      const { chainId } = target.material.route.source;
      same(await signerOf(quote, chainId), await quoteSigner(target, chainId), 'signer');
    },
    breakage: member({ path: QUOTES }, '', 'signature', `0x${'11'.repeat(64)}1b`),
  },
  {
    id: 'service 4a',
    title: 'each vault is quoted for one intent, with a deadline of its own address',
    needs: ['vaultRequest'],
    check: async (target) => {
      const [one, other] = [await newVault(target), await newVault(target)];
      holds(one.place.address !== other.place.address, `found the vault ${one.place.address} twice`);
      conforms(unixSeconds, read(one.record, 'deadline'), 'deadline');
    },
    breakage: member({ path: /deposit-addresses/ }, 'data', 'vaultAddress', `0x${'1'.repeat(40)}`),
  },
  {
    id: 'service 4b',
    title: 'a vault can be funded by an ERC-3009 signed authorization',
    needs: ['vaultRequest', 'funder'],
    check: async (target) => {
      const { place, amount } = await newVault(target);
      const body = await vaultTransfer(target, { vault: place, value: amount });
      bodyOf(await atVaults(target, { path: VAULTS.erc3009, body }), 202);
    },
    breakage: instead({ path: /submit\/erc-3009/ }, { status: 400 }),
  },
  {
    id: 'service 4c',
    title: 'a vault can be funded by an EIP-2612 permit',
    needs: ['vaultRequest', 'funder'],
    check: async (target) => {
      const { place, amount } = await newVault(target);
      bodyOf((await submitPermit(target, { vault: place, value: amount })).reply, 202);
    },
    breakage: instead({ path: /submit\/erc-2612/, status: 202 }, { status: 400 }),
  },
  {
    id: 'service 4d',
    title: 'a gasless job is queued and can be polled',
    needs: ['vaultRequest', 'funder'],
    check: async (target) => {
      const { place, amount } = await newVault(target);
      const body = await vaultTransfer(target, { vault: place, value: amount });
      const queued = bodyOf(await atVaults(target, { path: VAULTS.erc3009, body }), 202);
      const job = bodyOf(await fetchJob(target, text(queued, 'data.id')));
      same(read(job, 'data.id'), read(queued, 'data.id'), 'id of the polled job');
    },
    breakage: instead({ path: /gasless\/jobs/ }, { status: 404 }),
  },
  {
    id: 'service 5a',
    title: 'the open quoting service returns exact-input quotes without a key',
    needs: ['quotesUrl'],
    check: async (target) => {
      const body = bodyOf(await requestOpenly(target, openRequest(target)), 201);
      const amount = read(body, 'data.0.quoteData.quoteResponse.sourceAmount');
      same(amount, target.material.route.amount, 'sourceAmount');
    },
    breakage: instead({ path: OPEN_QUOTES }, { status: 403, body: { Message: 'not authorized' } }),
  },
  {
    id: 'service 5b',
    title: 'the formats of v1 and of the open quoting service are not interchangeable',
    needs: ['quotesUrl'],
    check: async (target) => {
      bodyOf(await requestQuote(target, openRequest(target)), 400);
      bodyOf(await requestOpenly(target, quoteRequest(target)), 400);
    },
    breakage: accepting({ path: OPEN_QUOTES, status: 400 }, { data: [] }),
  },
]);
