import { generatePrivateKey } from 'viem/accounts';
import { z } from 'zod';
import { accepting, changing, instead, member, otherCode } from '../breakage.ts';
import { bodyOf, call, type Question, refused, refusedByGateway, requestOpenly } from '../call.ts';
import { conforms, holds, read, same, text } from '../expectation.ts';
import {
  atVaults,
  type Changes,
  funderAddress,
  fundingOf,
  newVault,
  submit,
  VAULTS,
  vaultTransfer,
} from '../funding.ts';
import { OPEN_QUOTES, openRequest } from '../open-quoting.ts';
import { newFundableQuote, quoteRequest } from '../quoting.ts';
import { given, inSection, type Rule, type Target } from '../rule.ts';

const WRONG_KEY = 'conformance-no-such-key';
const ADDRESS = `0x${'0'.repeat(39)}1`;
const VAULT_REQUEST = { path: `/v1/deposit-gateway/${ADDRESS}`, query: { sourceChainId: '1' } };

const keyed = (target: Target): Question[] => [
  { path: '/v1/chains' },
  { path: '/v1/tokens' },
  { path: '/v1/intents/status', query: { wallet: 'nobody-at-all' } },
  { method: 'POST', path: '/v1/quotes', body: quoteRequest(target) },
  { method: 'POST', path: '/v1/gasless/submit/erc-3009', body: {} },
  { method: 'POST', path: '/v1/gasless/submit/permit2', body: {} },
  { method: 'POST', path: '/v1/gasless/submit/permit3', body: {} },
];

/** Requests to the deposit-vault endpoints under /v1, which need no key. */
const OPEN: readonly Question[] = [
  VAULT_REQUEST,
  { path: VAULTS.status, query: { id: 'none' } },
  { method: 'POST', path: VAULTS.create, body: {} },
  { method: 'POST', path: VAULTS.erc3009, body: {} },
  { method: 'POST', path: VAULTS.erc2612, body: {} },
];

async function submitWith(target: Target, changes: Changes) {
  const quoteId = text(await newFundableQuote(target), 'id');
  return submit(target, { payload: await fundingOf(target, { quoteId, ...changes }) });
}

export const AUTHENTICATION_RULES: readonly Rule[] = inSection('Authentication', [
  {
    id: 'authentication rule 1',
    title: 'the key is sent in the header x-api-key, and nowhere else',
    check: async (target) => {
      bodyOf(await call(target, { path: '/v1/chains' }));
      const bearer = { authorization: `Bearer ${target.apiKey}` };
      const others: Question[] = [
        { path: '/v1/chains', headers: bearer },
        { path: '/v1/chains', query: { 'x-api-key': target.apiKey } },
      ];
      for (const other of others)
        same((await call(target, { ...other, key: null })).status, 403, 'HTTP status');
    },
    breakage: accepting({ path: /x-api-key/, status: 403 }),
  },
  {
    id: 'authentication rule 2a',
    title: 'every /v1 endpoint requires the key',
    check: async (target) => {
      for (const question of keyed(target)) {
        same((await call(target, { ...question, key: null })).status, 403, question.path);
      }
    },
    breakage: accepting({ path: /permit3/, status: 403 }),
  },
  {
    id: 'authentication rule 2b',
    title: 'the deposit-vault endpoints are open',
    check: async (target) => {
      for (const question of OPEN) {
        const { status } = await call(target, { ...question, key: null });
        holds(status !== 401 && status !== 403, `${question.path}: found ${status}`);
      }
    },
    breakage: instead({ path: /submit\/erc-2612/ }, { status: 403, body: { Message: 'not authorized' } }),
  },
  {
    id: 'authentication rule 3',
    title: 'a missing key is 403 with a plain body whose only member is Message',
    check: async (target) => {
      for (const question of keyed(target)) {
        const body = bodyOf(await call(target, { ...question, key: null }), 403);
        const plain = z.strictObject({ Message: z.string().regex(/not authorized/i) });
        conforms(plain, body, question.path);
      }
    },
    breakage: member({ path: /^\/v1\/tokens/, status: 403 }, '', 'code', 'forbidden'),
  },
  {
    id: 'authentication rule 4a',
    title: 'an unknown key is 401 invalid-api-key, titled so, without detail, as application/json',
    check: async (target) => {
      const reply = await call(target, { path: '/v1/chains', key: WRONG_KEY });
      const problem = refused(reply, 401, 'invalid-api-key');
      holds(/missing, unknown,? or revoked/i.test(problem.title), `title: found ${problem.title}`);
      same(problem.detail, undefined, 'detail');
      const type = reply.headers['content-type'] ?? '';
      holds(/^application\/json/.test(type), `content type: found ${type}`);
    },
    breakage: member({ code: 'invalid-api-key' }, '', 'detail', 'no such key'),
  },
  {
    id: 'authentication rule 4b',
    title: 'an unknown key is 401 at every /v1 endpoint, including those that work without one',
    check: async (target) => {
      for (const question of [...keyed(target), ...OPEN]) {
        refused(await call(target, { ...question, key: WRONG_KEY }), 401, 'invalid-api-key');
      }
    },
    breakage: accepting({ path: /deposit-gateway\/status/, status: 401 }),
  },
  {
    id: 'authentication rule 4c',
    title: 'an unknown key is answered as application/json, unlike other Problems',
    check: async (target) => {
      const { headers } = await call(target, { path: '/v1/tokens', key: WRONG_KEY });
      holds(/^application\/json\b/.test(headers['content-type'] ?? ''), `found ${headers['content-type']}`);
    },
    breakage: instead({ code: 'invalid-api-key' }, { type: 'application/problem+json' }),
  },
  {
    id: 'authentication rule 5',
    title: 'on a submit, 401 with the detail "could not be attributed" means a key of no partner',
    needs: ['funder', 'unattributedKey'],
    check: async (target) => {
      const quoteId = text(await newFundableQuote(target), 'id');
      const payload = await fundingOf(target, { quoteId });
      const reply = await submit(target, { payload, key: given(target, 'unattributedKey') });
      const question = { method: 'POST', path: VAULTS.erc3009, body: {} } as const;
      const atVault = await call(target, { ...question, key: given(target, 'unattributedKey') });
      for (const refusal of [reply, atVault]) {
        const detail = String(read(bodyOf(refusal, 401), 'detail'));
        holds(detail.includes('could not be attributed'), `detail: found ${detail}`);
      }
      bodyOf(await call(target, { path: '/v1/chains', key: given(target, 'unattributedKey') }));
    },
    breakage: member({ path: /submit/, status: 401 }, '', 'detail', 'no such key'),
  },
  {
    id: 'authentication rule 6a',
    title: 'a key that has expired is 401 api-key-expired',
    needs: ['expiredKey'],
    check: async (target) => {
      const reply = await call(target, { path: '/v1/chains', key: given(target, 'expiredKey') });
      refused(reply, 401, 'api-key-expired');
    },
    breakage: otherCode('api-key-expired'),
  },
  {
    id: 'authentication rule 6b',
    title: 'a signature that nobody can have made is 401 invalid-signature',
    needs: ['funder'],
    check: async (target) => {
      const quoteId = text(await newFundableQuote(target), 'id');
      const payload = { ...(await fundingOf(target, { quoteId })), signature: `0x${'00'.repeat(64)}1b` };
      refused(await submit(target, { payload }), 401, 'invalid-signature');
    },
    breakage: otherCode('invalid-signature'),
  },
  {
    id: 'authentication rule 6c',
    title: 'an authorization whose time has passed is 401 authorization-expired',
    needs: ['funder'],
    check: async (target) => {
      refused(await submitWith(target, { until: 1_700_000_000n }), 401, 'authorization-expired');
    },
    breakage: otherCode('authorization-expired'),
  },
  {
    id: 'authentication rule 7a',
    title: 'a signer who is not the funder is 403 funder-mismatch',
    needs: ['funder'],
    check: async (target) => {
      const stranger = { key: generatePrivateKey(), from: funderAddress(target) };
      refused(await submitWith(target, stranger), 403, 'funder-mismatch');
    },
    breakage: otherCode('funder-mismatch'),
  },
  {
    id: 'authentication rule 7b',
    title: 'a key that lacks permission is 403 permission-denied',
    needs: ['forbiddenKey'],
    check: async (target) => {
      const reply = await call(target, { path: '/v1/chains', key: given(target, 'forbiddenKey') });
      refused(reply, 403, 'permission-denied');
    },
    breakage: otherCode('permission-denied'),
  },
  {
    id: 'authentication rule 8',
    title: 'the open quoting service wants no key, for any dAppID',
    needs: ['quotesUrl'],
    check: async (target) => {
      for (const dAppID of ['conformance', 'somebody-else']) {
        bodyOf(await requestOpenly(target, { ...openRequest(target), dAppID }), 201);
      }
    },
    breakage: instead({ path: OPEN_QUOTES, sent: /somebody-else/ }, { status: 401 }),
  },
  {
    id: 'authentication rule 9',
    title: 'a gasless authorization that the token owner has not signed is refused',
    needs: ['funder', 'vaultRequest'],
    check: async (target) => {
      const { place, amount } = await newVault(target);
      const stranger = { key: generatePrivateKey(), from: funderAddress(target) };
      const body = await vaultTransfer(target, { vault: place, value: amount, ...stranger });
      refusedByGateway(await atVaults(target, { path: VAULTS.olderErc3009, body }), 403);
    },
    breakage: changing({ path: /transferWithAuthorization/, status: 403 }, (answered) => ({
      ...answered,
      status: 202,
    })),
  },
]);
