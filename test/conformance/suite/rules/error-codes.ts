import { instead, member, otherCode } from '../breakage.ts';
import { bodyOf, call, type Reply, refused } from '../call.ts';
import { holds, list, read, same, text } from '../expectation.ts';
import { atVaults, fundingOf, newVault, submit, submitPermit, VAULTS, vaultTransfer } from '../funding.ts';
import {
  changed,
  newFundableQuote,
  newQuote,
  QUOTES,
  quoteRequest,
  requestQuote,
  requestStatus,
} from '../quoting.ts';
import { given, inSection, type Need, type Rule, type Stage, type Target } from '../rule.ts';

type Answerer = (target: Target) => Promise<Reply>;

function code(
  status: number,
  name: string,
  rule: { title: string; bring: Answerer; needs?: readonly Need[]; stage?: Stage; orSolverError?: true },
): Omit<Rule, 'section'> {
  const { title, bring, orSolverError, ...common } = rule;
  return {
    id: `error ${status} ${name}`,
    title,
    ...common,
    check: async (target) => {
      const reply = await bring(target);
      // Other unfillable routes may still cause it, by rule 3 of the errors.
      if (orSolverError && reply.status === 502) refused(reply, 502, 'solver-error');
      else refused(reply, status, name);
    },
    breakage: otherCode(name),
  };
}

/** A code that the service returns only when it has a problem. */
function failure(status: number, name: string): Omit<Rule, 'section'> {
  return code(status, name, {
    title: 'a service in this trouble reports it, as a Problem',
    stage: { failing: name },
    bring: (target) => call(target, { path: '/v1/chains' }),
  });
}

const quoteWith =
  (place: string, value: (target: Target) => unknown): Answerer =>
  (target) =>
    requestQuote(target, changed(quoteRequest(target), place, value(target)));

const CODE_RULES: Omit<Rule, 'section'>[] = [
  code(400, 'invalid-request', {
    title: 'a missing dappId, and the field is named in errors',
    bring: async (target) => {
      const reply = await quoteWith('dappId', () => undefined)(target);
      same(read(reply.body, 'errors.0.field'), 'dappId', 'field');
      return reply;
    },
  }),
  failure(400, 'invalid-parameter'),
  failure(400, 'missing-parameter'),
  code(400, 'slippage-out-of-bounds', {
    title: 'a slippage of 50',
    bring: quoteWith('slippage', () => 50),
  }),
  code(401, 'invalid-api-key', {
    title: 'a key that nobody has',
    bring: (target) => call(target, { path: '/v1/chains', key: 'conformance-no-such-key' }),
  }),
  code(401, 'api-key-expired', {
    title: 'a key that has expired',
    needs: ['expiredKey'],
    bring: (target) => call(target, { path: '/v1/chains', key: given(target, 'expiredKey') }),
  }),
  code(401, 'invalid-signature', {
    title: 'a signature that nobody can have made',
    needs: ['funder'],
    bring: async (target) => {
      const quoteId = text(await newFundableQuote(target), 'id');
      const payload = { ...(await fundingOf(target, { quoteId })), signature: `0x${'00'.repeat(64)}1b` };
      return submit(target, { payload });
    },
  }),
  code(401, 'authorization-expired', {
    title: 'an authorization whose time has passed',
    needs: ['funder'],
    bring: async (target) => {
      const quoteId = text(await newFundableQuote(target), 'id');
      return submit(target, { payload: await fundingOf(target, { quoteId, until: 1_700_000_000n }) });
    },
  }),
  {
    id: 'error 403 {Message}',
    title: 'a missing key is answered by the gateway, without a code',
    check: async (target) => {
      const body = bodyOf(await call(target, { path: '/v1/chains', key: null }), 403);
      text(body, 'Message');
      same(read(body, 'code'), undefined, 'code');
    },
    breakage: member({ path: /^\/v1\/chains/, status: 403 }, '', 'Message', undefined),
  },
  code(403, 'permission-denied', {
    title: 'a key that lacks permission',
    needs: ['forbiddenKey'],
    bring: (target) => call(target, { path: '/v1/chains', key: given(target, 'forbiddenKey') }),
  }),
  code(403, 'funder-mismatch', {
    title: 'a quote for somebody else',
    needs: ['funder'],
    bring: async (target) => {
      const quoteId = text(await newQuote(target), 'id');
      return submit(target, { payload: await fundingOf(target, { quoteId }) });
    },
  }),
  {
    id: 'error 404 endpoint-not-found',
    title: 'a path that does not exist, unless the gateway answers 403',
    check: async (target) => {
      for (const method of ['GET', 'POST'] as const) {
        const replies = [
          await call(target, { method, path: '/v1/nothing-here' }),
          await call(target, { method, path: '/v1/intents/nothing-here' }),
        ];
        for (const reply of replies) {
          if (reply.status === 403) text(reply.body, 'Message');
          else refused(reply, 404, 'endpoint-not-found');
        }
      }
    },
    breakage: otherCode('endpoint-not-found'),
  },
  failure(404, 'token-not-found'),
  code(409, 'signature-already-bound', {
    title: 'a signature that has funded another quote',
    needs: ['funder'],
    bring: async (target) => {
      const quoteId = text(await newFundableQuote(target), 'id');
      const payload = await fundingOf(target, { quoteId });
      bodyOf(await submit(target, { payload }), 202);
      const otherId = text(await newFundableQuote(target), 'id');
      return submit(target, { payload: { ...payload, quoteId: otherId } });
    },
  }),
  code(409, 'nonce-used', {
    title: 'another signature with the same nonce',
    needs: ['funder'],
    bring: async (target) => {
      const first = await fundingOf(target, { quoteId: text(await newFundableQuote(target), 'id') });
      bodyOf(await submit(target, { payload: first }), 202);
      const quoteId = text(await newFundableQuote(target), 'id');
      const nonce = `0x${text(first.authorization, 'nonce').slice(2)}` as const;
      const value = BigInt(target.material.route.amount) + 1n;
      return submit(target, { payload: await fundingOf(target, { quoteId, nonce, value }) });
    },
  }),
  code(410, 'quote-expired', {
    title: 'a quote that is funded after expiresAt',
    stage: 'finished',
    needs: ['funder', 'expiredQuote'],
    bring: async (target) => {
      const quoteId = given(target, 'expiredQuote');
      return submit(target, { payload: await fundingOf(target, { quoteId }) });
    },
  }),
  code(422, 'chain-not-supported', {
    title: 'a chain that does not exist',
    bring: quoteWith('source.chainId', () => 999_999_937),
  }),
  code(422, 'no-route-found', {
    orSolverError: true,
    title: 'a least output that no solver reaches',
    bring: quoteWith('destination.minAmountOut', (target) => target.material.route.amount),
  }),
  code(422, 'chain-pair-unsupported', {
    orSolverError: true,
    title: 'a transfer from a chain to itself',
    bring: (target) => {
      const { source } = target.material.route;
      const body = changed(quoteRequest(target), 'destination.chainId', source.chainId);
      return requestQuote(target, changed(body, 'destination.token', source.token));
    },
  }),
  code(422, 'amount-too-low', {
    orSolverError: true,
    title: 'an amount of 1',
    bring: quoteWith('source.amount', () => '1'),
  }),
  code(422, 'amount-too-high', {
    orSolverError: true,
    title: 'more than anybody has',
    bring: quoteWith('source.amount', () => '9'.repeat(30)),
  }),
  code(422, 'insufficient-liquidity', {
    orSolverError: true,
    title: 'more than there is on the destination',
    needs: ['tronRoute'],
    bring: (target) =>
      requestQuote(
        target,
        changed(quoteRequest(target, given(target, 'tronRoute')), 'source.amount', '900000000000'),
      ),
  }),
  failure(422, 'simulation-failed'),
  failure(429, 'rate-limit-exceeded'),
  failure(500, 'internal-error'),
  code(502, 'solver-error', {
    title: 'a token that is not listed',
    bring: quoteWith('source.token', () => `0x${'12'.repeat(20)}`),
  }),
  failure(503, 'solver-timeout'),
  failure(503, 'service-unavailable'),
  {
    id: 'error 422 solverErrors',
    title: 'every solver states why it rejected the request',
    check: async (target) => {
      const problem = refused(await quoteWith('source.amount', () => '1')(target), 422, 'amount-too-low');
      const errors = list(problem, 'solverErrors');
      holds(errors.length > 0, 'found no solver errors');
      for (const error of errors) text(error, 'message');
    },
    breakage: member({ path: QUOTES, status: 422 }, '', 'solverErrors', undefined),
  },
  {
    id: 'errors: identical resend a',
    title: 'an identical signed payload sent again is 200 with the existing job, not a second one',
    needs: ['funder'],
    check: async (target) => {
      const quoteId = text(await newFundableQuote(target), 'id');
      const payload = await fundingOf(target, { quoteId });
      const job = text(bodyOf(await submit(target, { payload }), 202), 'id');
      for (let time = 0; time < 2; time++) {
        same(read(bodyOf(await submit(target, { payload })), 'id'), job, 'id of the job');
      }
    },
    breakage: instead({ path: /gasless\/submit/, status: 200 }, { status: 202 }),
  },
  {
    id: 'errors: identical resend b',
    title: 'an identical signed payload for a vault is 200 with the existing job too',
    needs: ['funder', 'vaultRequest'],
    check: async (target) => {
      for (const path of [VAULTS.erc3009, VAULTS.olderErc3009]) {
        const { place, amount } = await newVault(target);
        const body = await vaultTransfer(target, { vault: place, value: amount });
        const job = text(bodyOf(await atVaults(target, { path, body }), 202), 'data.id');
        same(read(bodyOf(await atVaults(target, { path, body })), 'data.id'), job, 'id of the job');
      }
      const { place, amount } = await newVault(target);
      const { reply, body } = await submitPermit(target, { vault: place, value: amount });
      const again = bodyOf(await atVaults(target, { path: VAULTS.erc2612, body }));
      same(read(again, 'data.id'), read(bodyOf(reply, 202), 'data.id'), 'id of the job');
    },
    breakage: instead({ path: /submit\/erc-2612/, status: 200 }, { status: 409 }),
  },
  {
    id: 'errors: identical resend c',
    title: 'an identical signed payload that arrives ten times at once makes one job',
    needs: ['funder'],
    check: async (target) => {
      const payload = await fundingOf(target, { quoteId: text(await newFundableQuote(target), 'id') });
      const replies = await Promise.all(Array.from({ length: 10 }, () => submit(target, { payload })));
      same(replies.filter(({ status }) => status === 202).length, 1, 'answers of 202');
      same(new Set(replies.map(({ body }) => text(body, 'id'))).size, 1, 'jobs');
    },
    breakage: instead({ path: /gasless\/submit/, status: 200 }, { status: 202 }),
  },
  {
    id: 'error 404 never at status',
    title: 'a status request never is 404',
    check: async (target) => {
      bodyOf(await requestStatus(target, { jobId: '00000000-0000-4000-8000-000000000000' }));
    },
    breakage: instead({ path: /jobId/ }, { status: 404 }),
  },
];

export const ERROR_CODE_RULES: readonly Rule[] = inSection('Errors: status and code table', CODE_RULES);
