import { accepting, instead, member, sending } from '../breakage.ts';
import { bodyOf, call, names, refused, requestOpenly } from '../call.ts';
import { holds, list, read, same, text } from '../expectation.ts';
import { atVaults, fetchJob, fetchVault, VAULTS } from '../funding.ts';
import { OPEN_QUOTES, openRequest } from '../open-quoting.ts';
import { changed, newQuote, QUOTES, quoteRequest, requestQuote } from '../quoting.ts';
import { inSection, type Rule } from '../rule.ts';

const OLDER_PATHS = /^\/deposit-gateway\/v2/;

function retired(id: string, name: string, value: unknown): Omit<Rule, 'section'> {
  return {
    id,
    title: `${name} is refused with 400`,
    check: async (target) => {
      const body = changed(quoteRequest(target), name, value);
      names(refused(await requestQuote(target, body), 400, 'invalid-request'), name);
    },
    breakage: sending(QUOTES, '', name),
  };
}

export const VERSIONING_RULES: readonly Rule[] = inSection('Versioning', [
  {
    id: 'versioning rule 1',
    title: 'the v1 API is addressed under /v1',
    check: async (target) => {
      bodyOf(await call(target, { path: '/v1/chains' }));
      const { status } = await call(target, { path: '/chains' });
      holds(status >= 400, `without /v1: found ${status}`);
    },
    breakage: accepting({ path: /^\/chains/ }, { chains: [] }),
  },
  {
    id: 'versioning rule 2a',
    title: 'the discriminator of a quote is type',
    check: async (target) => same(read(await newQuote(target), 'type'), 'exact-in', 'type'),
    breakage: member({ path: QUOTES }, '', 'type', undefined),
  },
  {
    id: 'versioning rule 2b',
    title: 'the funder is under source.funder',
    check: async (target) => {
      const { funder } = target.material.route.source;
      same(read(await newQuote(target), 'source.funder'), funder, 'source.funder');
    },
    breakage: member({ path: QUOTES }, 'source', 'funder', undefined),
  },
  {
    id: 'versioning rule 2c',
    title: 'dappId is required',
    check: async (target) => {
      const body = changed(quoteRequest(target), 'dappId', undefined);
      names(refused(await requestQuote(target, body), 400, 'invalid-request'), 'dappId');
    },
    breakage: accepting({ path: QUOTES, status: 400 }),
  },
  {
    id: 'versioning rule 2d',
    title: 'the destination carries amountOut and minAmountOut',
    check: async (target) => {
      const quote = await newQuote(target);
      const [out, least] = [text(quote, 'destination.amountOut'), text(quote, 'destination.minAmountOut')];
      holds(BigInt(least) <= BigInt(out), `found the least output ${least} above ${out}`);
    },
    breakage: member({ path: QUOTES }, 'destination', 'minAmountOut', undefined),
  },
  {
    id: 'versioning rule 2e',
    title: 'steps[].intents lists every intent in the route with its role',
    check: async (target) => {
      const quote = await newQuote(target);
      const intents = list(quote, 'steps').flatMap((step) => list(step, 'intents'));
      const hashes = intents.map((intent) => text(intent, 'intentHash'));
      for (const intent of intents) text(intent, 'role');
      holds(hashes.includes(text(quote, 'intentHash')), 'the intent of the quote is in no step');
    },
    breakage: member({ path: QUOTES }, 'steps.*', 'intents', []),
  },
  retired('versioning rule 3a', 'swapType', 'exact-in'),
  retired('versioning rule 3b', 'funder', '0x52908400098527886E0F7030069857D2E4169EE7'),
  retired('versioning rule 3c', 'encodedRoute', '0x00'),
  {
    id: 'versioning rule 4a',
    title: 'the open quoting service has v3 in its path and answers 201 with { data }',
    needs: ['quotesUrl'],
    check: async (target) => {
      list(bodyOf(await requestOpenly(target, openRequest(target)), 201), 'data');
    },
    breakage: member({ path: OPEN_QUOTES }, '', 'data', undefined),
  },
  {
    id: 'versioning rule 4b',
    title: 'its field names are not those of v1',
    needs: ['quotesUrl'],
    check: async (target) => {
      const { dAppID, ...body } = openRequest(target);
      bodyOf(await requestOpenly(target, { ...body, dappId: dAppID }), 400);
    },
    breakage: accepting({ path: OPEN_QUOTES, status: 400 }, { data: [] }),
  },
  {
    id: 'versioning rule 4c',
    title: 'its quotes are funded with encodedRoute, those of v1 with a transaction',
    needs: ['quotesUrl'],
    check: async (target) => {
      const open = bodyOf(await requestOpenly(target, openRequest(target)), 201);
      text(open, 'data.0.quoteData.quoteResponse.encodedRoute');
      const quote = await newQuote(target);
      same(read(quote, 'encodedRoute'), undefined, 'encodedRoute of a v1 quote');
      text(quote, 'execution.transaction.type');
    },
    breakage: member({ path: QUOTES }, '', 'encodedRoute', '0x00'),
  },
  {
    id: 'versioning rule 5',
    title: 'deposit-vault endpoints carry v1 for gasless and v2 for requests in their older paths',
    check: async (target) => {
      const vault = { address: `0x${'0'.repeat(39)}1`, chainId: 1 };
      const replies = [
        await fetchJob(target, 'conformance-no-such-job'),
        await fetchVault(target, vault),
        await atVaults(target, { path: VAULTS.olderErc3009, body: {} }),
      ];
      const statuses = replies.map(({ status }) => status);
      same(statuses, [404, 404, 400], 'statuses of an unknown job, an unknown vault and an empty body');
      for (const { body } of replies) holds(body !== undefined, 'expected JSON');
    },
    breakage: instead({ path: OLDER_PATHS }, { status: 403 }),
  },
]);
