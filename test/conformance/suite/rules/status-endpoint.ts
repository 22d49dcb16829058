import { accepting, changing, changingQuery, instead, member } from '../breakage.ts';
import { bodyOf, call, names, type Reply, refused } from '../call.ts';
import { holds, list, read, same, text } from '../expectation.ts';
import { fundingOf, submit } from '../funding.ts';
import { bare, newFundableQuote, newQuote, requestStatus, STATUS, statusOf } from '../quoting.ts';
import { given, inSection, type Rule, type Target } from '../rule.ts';

const HASH = `0x${'0'.repeat(64)}`;
const UUID = '00000000-0000-4000-8000-000000000000';
const EMPTY_PAGE = { results: [], nextCursor: null };

async function isInvalid(target: Target, query: Record<string, string>, field?: string): Promise<Reply> {
  const reply = await requestStatus(target, query);
  const problem = refused(reply, 400, 'invalid-request');
  if (field !== undefined) names(problem, field);
  return reply;
}

async function only(target: Target, query: Record<string, string>): Promise<unknown> {
  const results = list(await statusOf(target, query), 'results');
  same(results.length, 1, `results of ${JSON.stringify(query)}`);
  return results[0];
}

const finished = { stage: 'finished', needs: ['filledIntent'] } as const;
const walletly = { stage: 'finished', needs: ['wallet'] } as const;

async function filled(target: Target): Promise<unknown> {
  return only(target, { intentHash: given(target, 'filledIntent') });
}

async function pages(target: Target, query: Record<string, string>): Promise<string[][]> {
  const found: string[][] = [];
  let cursor: string | null = null;
  do {
    const body: unknown = await statusOf(target, { ...query, ...(cursor === null ? {} : { cursor }) });
    found.push(list(body, 'results').map((result) => text(result, 'id')));
    const next = read(body, 'nextCursor');
    cursor = typeof next === 'string' ? next : null;
  } while (cursor !== null && found.length < 1_000);
  holds(cursor === null, 'found no end of the pages');
  return found;
}

const PARAMETER_RULES: Omit<Rule, 'section'>[] = [
  {
    id: 'status parameter: intentHash',
    title: 'finds one intent by its hash',
    ...finished,
    check: async (target) => {
      same(read(await filled(target), 'id'), `intent:${given(target, 'filledIntent')}`, 'id');
    },
    breakage: changingQuery(STATUS, 'intentHash', HASH),
  },
  {
    id: 'status parameter: sourceTxHash',
    title: 'finds an intent by the transaction that funded it',
    ...finished,
    check: async (target) => {
      const intent = await filled(target);
      same(await only(target, { sourceTxHash: text(intent, 'sourceTx.txHash') }), intent, 'intent');
    },
    breakage: changingQuery(STATUS, 'sourceTxHash', HASH),
  },
  {
    id: 'status parameter: destinationTxHash',
    title: 'finds an intent by the transaction that fulfilled it',
    ...finished,
    check: async (target) => {
      const intent = await filled(target);
      same(await only(target, { destinationTxHash: text(intent, 'destinationTx.txHash') }), intent, 'intent');
    },
    breakage: changingQuery(STATUS, 'destinationTxHash', HASH),
  },
  {
    id: 'status parameter: quoteId',
    title: 'finds a quote by its bare UUID, and is 400 for any other text',
    check: async (target) => {
      const id = text(await newQuote(target), 'id');
      for (const wrong of ['not-a-uuid', '']) await isInvalid(target, { quoteId: wrong }, 'quoteId');
      same(read(await only(target, { quoteId: bare(id) }), 'id'), id, 'id');
    },
    breakage: changingQuery(STATUS, 'quoteId', UUID),
  },
  {
    id: 'status parameter: jobId',
    title: 'finds a gasless job by its bare UUID, and is 400 for any other text',
    needs: ['funder'],
    check: async (target) => {
      const quoteId = text(await newFundableQuote(target), 'id');
      const job = bodyOf(await submit(target, { payload: await fundingOf(target, { quoteId }) }), 202);
      for (const wrong of ['not-a-uuid', '']) await isInvalid(target, { jobId: wrong }, 'jobId');
      same(read(await only(target, { jobId: bare(text(job, 'id')) }), 'id'), text(job, 'id'), 'id');
    },
    breakage: changingQuery(STATUS, 'jobId', UUID),
  },
  {
    id: 'status parameter: wallet a',
    title: 'pages through the intents of a wallet, each once',
    ...walletly,
    check: async (target) => {
      const query = { wallet: given(target, 'wallet'), limit: '7' };
      const ids = (await pages(target, query)).flat();
      same(new Set(ids).size, ids.length, 'different intents');
      holds(ids.length > 20, `found ${ids.length} intents, expected more than 20`);
      holds(
        ids.every((id) => id.startsWith('intent:')),
        'found something that is no intent',
      );
      const whole = (await pages(target, { ...query, limit: '50' })).flat();
      same([...ids].sort(), [...whole].sort(), 'intents in pages of 7 and of 50');
    },
    breakage: changing({ path: STATUS, sent: /cursor=.*limit=7|limit=7.*cursor=/ }, (answered) => ({
      ...answered,
      body: JSON.stringify(EMPTY_PAGE),
    })),
  },
  {
    id: 'status parameter: wallet b',
    title: 'has at least 1 character',
    check: async (target) => void (await isInvalid(target, { wallet: '' }, 'wallet')),
    breakage: accepting({ path: STATUS, status: 400 }, EMPTY_PAGE),
  },
  {
    id: 'status parameter: wallet c',
    title: 'cannot be combined with another filter than status',
    check: async (target) => {
      await isInvalid(target, { wallet: 'nobody-at-all', intentHash: HASH });
      bodyOf(await requestStatus(target, { wallet: 'nobody-at-all', status: 'pending' }));
    },
    breakage: changingQuery(STATUS, 'intentHash'),
  },
  {
    id: 'status parameter: status',
    title: 'narrows a page of a wallet to the intents that have it',
    ...walletly,
    check: async (target) => {
      const body = await statusOf(target, {
        wallet: given(target, 'wallet'),
        status: 'settled',
        limit: '50',
      });
      const words = list(body, 'results').map((result) => read(result, 'status'));
      holds(words.length > 0, 'found no settled intents');
      same([...new Set(words)], ['settled'], 'statuses');
      const none = await statusOf(target, { wallet: given(target, 'wallet'), status: 'pending' });
      same(list(none, 'results'), [], 'pending intents');
    },
    breakage: changingQuery(STATUS, 'status'),
  },
  {
    id: 'status parameter: cursor a',
    title: 'is read from nextCursor and leads to the page that follows',
    ...walletly,
    check: async (target) => {
      const query = { wallet: given(target, 'wallet'), limit: '5' };
      const first = await statusOf(target, query);
      const second = await statusOf(target, { ...query, cursor: text(first, 'nextCursor') });
      const seen = list(first, 'results').map((result) => text(result, 'id'));
      for (const result of list(second, 'results')) {
        holds(!seen.includes(text(result, 'id')), `found ${text(result, 'id')} on both pages`);
      }
    },
    breakage: changingQuery(STATUS, 'cursor'),
  },
  {
    id: 'status parameter: cursor b',
    title: 'has at least 1 character',
    check: async (target) =>
      void (await isInvalid(target, { wallet: 'nobody-at-all', cursor: '' }, 'cursor')),
    breakage: changingQuery(STATUS, 'cursor'),
  },
  {
    id: 'status parameter: limit',
    title: 'is an integer from 1 to 50',
    check: async (target) => {
      for (const limit of ['1', '50'])
        bodyOf(await requestStatus(target, { wallet: 'nobody-at-all', limit }));
      for (const limit of ['0', '-1', '1.5', 'ten', '']) {
        await isInvalid(target, { wallet: 'nobody-at-all', limit }, 'limit');
      }
    },
    breakage: changingQuery(STATUS, 'limit', '20'),
  },
];

const ENDPOINT_RULES: Omit<Rule, 'section'>[] = [
  {
    id: 'status rule 1a',
    title: 'no filter is 400 invalid-request',
    check: async (target) => void (await isInvalid(target, {})),
    breakage: accepting({ path: STATUS, status: 400 }, EMPTY_PAGE),
  },
  {
    id: 'status rule 1b',
    title: 'paging controls alone are not a filter: 400 invalid-request',
    check: async (target) => void (await isInvalid(target, { limit: '5' })),
    breakage: accepting({ path: STATUS, status: 400 }, EMPTY_PAGE),
  },
  {
    id: 'status rule 2a',
    title: 'an unknown id of any exact filter is 200 with one result, unknown, updatedAt null',
    check: async (target) => {
      for (const filter of ['intentHash', 'sourceTxHash', 'destinationTxHash', 'quoteId', 'jobId']) {
        const result = await only(target, { [filter]: filter.endsWith('Id') ? UUID : HASH });
        same([read(result, 'status'), read(result, 'updatedAt')], ['unknown', null], filter);
      }
    },
    breakage: instead({ path: STATUS, sent: /jobId/ }, { body: EMPTY_PAGE }),
  },
  {
    id: 'status rule 2b',
    title: 'a status request never is 404',
    check: async (target) => {
      for (const query of [{ intentHash: HASH }, { quoteId: UUID }, { wallet: 'nobody-at-all' }]) {
        bodyOf(await requestStatus(target, query));
      }
    },
    breakage: instead({ path: STATUS, sent: /wallet/ }, { status: 404 }),
  },
  {
    id: 'status rule 3',
    title: 'status without wallet is 400 invalid-request',
    check: async (target) => {
      await isInvalid(target, { status: 'pending' }, 'status');
      await isInvalid(target, { status: 'pending', intentHash: HASH }, 'status');
    },
    breakage: changingQuery(STATUS, 'status'),
  },
  {
    id: 'status rule 4',
    title: 'limit above 50 is 400 invalid-request',
    check: async (target) =>
      void (await isInvalid(target, { wallet: 'nobody-at-all', limit: '51' }, 'limit')),
    breakage: changingQuery(STATUS, 'limit', '50'),
  },
  {
    id: 'status rule 5',
    title: 'quoteId or jobId with its prefix is 400 invalid-request',
    check: async (target) => {
      await isInvalid(target, { quoteId: `quote:${UUID}` }, 'quoteId');
      await isInvalid(target, { jobId: `gasless:${UUID}` }, 'jobId');
    },
    breakage: changingQuery(STATUS, 'jobId', UUID),
  },
  {
    id: 'status rule 6',
    title: 'nextCursor is null when no further page exists',
    ...walletly,
    check: async (target) => {
      const wallet = given(target, 'wallet');
      const count = (await pages(target, { wallet, limit: '10' })).flat().length;
      holds(count > 10, `found ${count} intents, expected more than 10`);
      same(read(await statusOf(target, { wallet: 'nobody-at-all' }), 'nextCursor'), null, 'nextCursor');
    },
    breakage: member({ path: STATUS }, '', 'nextCursor', (found: unknown) => found ?? 'more'),
  },
  {
    id: 'status rule 7',
    title: 'the header x-api-key is required',
    check: async (target) => {
      const reply = await call(target, { path: '/v1/intents/status', query: { quoteId: UUID }, key: null });
      same(reply.status, 403, 'HTTP status');
    },
    breakage: accepting({ path: STATUS, status: 403 }, EMPTY_PAGE),
  },
];

export const STATUS_ENDPOINT_RULES: readonly Rule[] = [
  ...inSection('GET /v1/intents/status: parameters', PARAMETER_RULES),
  ...inSection('GET /v1/intents/status: rules', ENDPOINT_RULES),
];
