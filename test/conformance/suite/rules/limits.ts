import { accepting, changingQuery, instead, member, sending } from '../breakage.ts';
import { bodyOf, call, refused, refusedByGateway, requestOpenly } from '../call.ts';
import { holds, list, read, same } from '../expectation.ts';
import { atVaults, newVault, VAULTS, vaultTransfer } from '../funding.ts';
import { OPEN_QUOTES, openQuotes, openRequest } from '../open-quoting.ts';
import { changed, QUOTES, quoteRequest, requestQuote, requestStatus, STATUS, statusOf } from '../quoting.ts';
import { given, inSection, type Rule } from '../rule.ts';

const OLDER = /transferWithAuthorization/;

/** A field of a gasless transfer at the edge of the permitted values. */
function transferLimit(
  name: string,
  title: string,
  { wrong }: { wrong: readonly unknown[] },
): Omit<Rule, 'section'> {
  return {
    id: `limits: ${name}`,
    title,
    needs: ['vaultRequest', 'funder'],
    check: async (target) => {
      const { place, amount } = await newVault(target);
      const body = await vaultTransfer(target, { vault: place, value: amount });
      for (const value of wrong) {
        const reply = await atVaults(target, { path: VAULTS.olderErc3009, body: { ...body, [name]: value } });
        refusedByGateway(reply, 400);
      }
      bodyOf(await atVaults(target, { path: VAULTS.olderErc3009, body }), 202);
    },
    breakage: accepting({ path: OLDER, status: 400 }, { data: { status: 'PENDING' } }),
  };
}

export const LIMIT_RULES: readonly Rule[] = inSection('Limits', [
  {
    id: 'limits: limit a',
    title: '1 and 50 are accepted, 0 and 51 refused',
    check: async (target) => {
      const wallet = 'nobody-at-all';
      for (const limit of ['1', '50']) bodyOf(await requestStatus(target, { wallet, limit }));
      for (const limit of ['0', '51']) {
        refused(await requestStatus(target, { wallet, limit }), 400, 'invalid-request');
      }
    },
    breakage: changingQuery(STATUS, 'limit', '50'),
  },
  {
    id: 'limits: limit b',
    title: 'a page has at most 20 results by default, and 50 on request',
    stage: 'finished',
    needs: ['wallet'],
    check: async (target) => {
      const wallet = given(target, 'wallet');
      same(list(await statusOf(target, { wallet }), 'results').length, 20, 'results by default');
      const most = list(await statusOf(target, { wallet, limit: '50' }), 'results').length;
      holds(most > 20 && most <= 50, `found ${most} results, expected 21 to 50`);
    },
    breakage: changingQuery(STATUS, 'limit'),
  },
  {
    id: 'limits: slippage',
    title: '0.0001 and 1 are accepted, 0.00009 and 1.01 refused',
    check: async (target) => {
      for (const slippage of [0.0001, 1]) {
        bodyOf(await requestQuote(target, changed(quoteRequest(target), 'slippage', slippage)));
      }
      for (const slippage of [0.00009, 1.01]) {
        const reply = await requestQuote(target, changed(quoteRequest(target), 'slippage', slippage));
        refused(reply, 400, 'slippage-out-of-bounds');
      }
    },
    breakage: sending(QUOTES, '', 'slippage', 0.01),
  },
  {
    id: 'limits: dAppID',
    title: '64 characters are accepted, 65 and other characters refused',
    needs: ['quotesUrl'],
    check: async (target) => {
      const body = openRequest(target);
      bodyOf(await requestOpenly(target, { ...body, dAppID: 'a'.repeat(64) }), 201);
      for (const dAppID of ['a'.repeat(65), '', 'ä', 'a b']) {
        bodyOf(await requestOpenly(target, { ...body, dAppID }), 400);
      }
    },
    breakage: sending(OPEN_QUOTES, '', 'dAppID', (found: unknown) => String(found).slice(0, 64)),
  },
  transferLimit('chainId', '1 or more', { wrong: [0, -8453] }),
  transferLimit('nonce', '64 hex digits after 0x', { wrong: [`0x${'1'.repeat(63)}`, `0x${'1'.repeat(65)}`] }),
  transferLimit('signature', '130 hex digits after 0x', {
    wrong: [`0x${'1'.repeat(129)}`, `0x${'1'.repeat(131)}`],
  }),
  {
    id: 'limits: Retry-After',
    title: 'a 429 may carry Retry-After, in seconds',
    stage: { failing: 'rate-limit-exceeded', retryAfterSeconds: 7 },
    check: async (target) => {
      const reply = await call(target, { path: '/v1/chains' });
      refused(reply, 429, 'rate-limit-exceeded');
      same(reply.headers['retry-after'], '7', 'Retry-After');
    },
    breakage: {
      answer: (answered) => ({ ...answered, headers: { ...answered.headers, 'retry-after': 'soon' } }),
    },
  },
  {
    id: 'limits: short-lived quotes a',
    title: 'a v1 quote expires, after now and within a day',
    check: async (target) => {
      const reply = await requestQuote(target, quoteRequest(target));
      const nowSeconds = Date.parse(reply.headers.date ?? '') / 1000;
      const left = Number(read(bodyOf(reply), 'expiresAt')) - nowSeconds;
      holds(left > 0 && left < 86_400, `found ${left} s left`);
    },
    breakage: member({ path: QUOTES }, '', 'expiresAt', 9_999_999_999),
  },
  {
    id: 'limits: short-lived quotes b',
    title: 'a quote of the open service has a deadline and a quoteExpiry that is no later',
    needs: ['quotesUrl'],
    check: async (target) => {
      for (const quote of await openQuotes(target)) {
        const [expiry, deadline] = [Number(read(quote, 'quoteExpiry')), Number(read(quote, 'deadline'))];
        holds(expiry > 0 && expiry <= deadline, `found quoteExpiry ${expiry} and deadline ${deadline}`);
      }
    },
    breakage: member({ path: OPEN_QUOTES }, 'data.*.quoteData.quoteResponse', 'deadline', 1_700_000_000),
  },
  {
    id: 'limits: short-lived quotes c',
    title: 'a vault has a deadline, after now and within a day',
    needs: ['vaultRequest'],
    check: async (target) => {
      const { record } = await newVault(target);
      const left = Number(read(record, 'deadline')) - Date.now() / 1000;
      holds(left > 0 && left < 86_400, `found ${left} s left`);
    },
    breakage: instead({ path: /deposit-addresses/ }, { body: { data: { vaultAddress: '0x', amount: '1' } } }),
  },
]);
