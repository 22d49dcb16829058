import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { Sandbox } from '../../sandbox/sandbox.ts';

const EXACT_FILTERS = ['intentHash', 'sourceTxHash', 'destinationTxHash', 'quoteId', 'jobId'] as const;
const UNKNOWN_UUID = '00000000-0000-4000-8000-000000000000';
const UNKNOWN_HASH = `0x${'0'.repeat(64)}`;

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = new Sandbox({ timeScale: 2_000, transfersPerSecond: 0, pastTransfers: 300 });
  await sandbox.start();
  await vi.waitFor(() => expect(sandbox.pace().livingTransfers).toBe(0), { timeout: 170_000 });
});

afterAll(async () => {
  await sandbox.close();
});

const bodySchema = z.strictObject({
  results: z.array(z.record(z.string(), z.unknown())),
  nextCursor: z.string().nullable(),
});

const problemSchema = z.looseObject({ errors: z.array(z.object({ field: z.string(), detail: z.string() })) });

type Body = z.infer<typeof bodySchema>;

async function fetchStatus(query: Record<string, string> | string): Promise<Response> {
  const search = typeof query === 'string' ? query : new URLSearchParams(query).toString();
  return fetch(`${sandbox.url}/v1/intents/status?${search}`, { headers: { 'x-api-key': sandbox.apiKey } });
}

async function request(query: Record<string, string> | string): Promise<Body> {
  const response = await fetchStatus(query);
  expect(response.status).toBe(200);
  return bodySchema.parse(await response.json());
}

/** Expects a refusal as a Problem and returns its field errors. */
async function requestWrongly(
  query: Record<string, string> | string,
): Promise<{ field: string; detail: string }[]> {
  const response = await fetchStatus(query);
  expect(response.status).toBe(400);
  expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  const problem = problemSchema.parse(await response.json());
  expect(problem).toEqual({
    type: `${sandbox.url}/v1/errors/invalid-request`,
    title: expect.stringMatching(/./),
    status: 400,
    code: 'invalid-request',
    detail: expect.stringMatching(/./),
    errors: expect.arrayContaining([
      { field: expect.stringMatching(/./), detail: expect.stringMatching(/./) },
    ]),
    instance: '/v1/intents/status',
    legacyCode: '1001',
    requestId: expect.stringMatching(/./),
  });
  return problem.errors;
}

function wallet(pattern: RegExp): string {
  const found = sandbox.subjects().wallets.find((address) => pattern.test(address));
  if (found === undefined) throw new Error(`no wallet like ${pattern}`);
  return found;
}

const evmWallet = () => wallet(/^0x/);

async function allPages(query: Record<string, string>): Promise<Body[]> {
  const pages: Body[] = [];
  for (let cursor: string | null | undefined; cursor !== null; cursor = pages.at(-1)?.nextCursor ?? null) {
    pages.push(await request(cursor === undefined ? query : { ...query, cursor }));
  }
  return pages;
}

async function settledIntent() {
  const { results } = await request({ wallet: evmWallet(), status: 'settled', limit: '1' });
  const intent = results[0];
  if (intent === undefined) throw new Error('no settled intent');
  return intent;
}

describe('exact filters', () => {
  test('an intent hash is found in upper case too', async () => {
    const intent = await settledIntent();
    const digits = String(intent.id).slice('intent:0x'.length);
    expect((await request({ intentHash: `0x${digits.toUpperCase()}` })).results).toEqual([intent]);
  });

  test('a settled intent carries both transactions and its fulfilled step', async () => {
    const summary = {
      chainId: expect.any(Number),
      txHash: expect.stringMatching(/^\w+$/),
      token: expect.stringMatching(/^\w+$/),
      amount: expect.stringMatching(/^\d+$/),
    };
    const side = {
      token: expect.any(String),
      amount: expect.stringMatching(/^\d+$/),
      chainId: expect.any(Number),
    };
    const reference = { chainId: expect.any(Number), txHash: expect.any(String) };
    expect(await settledIntent()).toEqual({
      id: expect.stringMatching(/^intent:0x[0-9a-f]{64}$/),
      type: 'intent',
      status: 'settled',
      updatedAt: expect.any(Number),
      txHash: expect.any(String),
      sourceTx: summary,
      destinationTx: summary,
      steps: [
        {
          type: 'BRIDGE',
          intentHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
          status: 'FULFILLED',
          from: side,
          to: side,
          transactions: { created: reference, fulfilled: reference },
        },
      ],
    });
  });

  test('a published gasless job names its quote and its intent', async () => {
    const jobs = await Promise.all(sandbox.subjects().gaslessJobs.map((jobId) => request({ jobId })));
    const published = jobs.flatMap(({ results }) => results).find(({ status }) => status === 'published');
    const intentHashes = [expect.stringMatching(/^0x[0-9a-f]{64}$/)];
    expect(published).toEqual({
      id: expect.stringMatching(/^gasless:/),
      type: 'gasless',
      status: 'published',
      updatedAt: expect.any(Number),
      intentHashes,
      subStatuses: [
        {
          chainId: expect.any(Number),
          quoteIds: [expect.stringMatching(/^quote:/)],
          txHash: expect.stringMatching(/^0x/),
          intentHashes,
          state: 'published',
        },
      ],
    });
  });
});

describe('wallet pages', () => {
  test('cursors lead through all results once, newest first, and end with null', async () => {
    const whole = await allPages({ wallet: evmWallet(), limit: '50' });
    const pages = await allPages({ wallet: evmWallet(), limit: '3' });
    const results = pages.flatMap((page) => page.results);
    expect(results).toEqual(whole.flatMap((page) => page.results));
    expect(new Set(results.map(({ id }) => id)).size).toBe(results.length);
    const times = results.map(({ updatedAt }) => Number(updatedAt));
    expect(times).toEqual(times.toSorted((left, right) => right - left));
    expect(pages.slice(0, -1).every(({ nextCursor }) => nextCursor !== null)).toBe(true);
  });

  test('nextCursor is null when the results end with a full page', async () => {
    const query = { wallet: wallet(/^T/), status: 'settled' };
    const count = (await allPages(query)).flatMap((page) => page.results).length;
    expect(count).toBeGreaterThan(0);
    expect(count).toBeLessThanOrEqual(50);
    expect((await request({ ...query, limit: String(count) })).nextCursor).toBeNull();
  });

  test('an EVM wallet is found in any case', async () => {
    const address = evmWallet();
    const page = await request({ wallet: address });
    expect(await request({ wallet: address.toLowerCase() })).toEqual(page);
    expect((await request({ wallet: `0x${address.slice(2).toUpperCase()}` })).results).toEqual(page.results);
  });

  test.each([
    ['Solana', /^(?!T|0x)/],
    ['Tron', /^T/],
  ])('a %s wallet is found exactly as it is written', async (_name, pattern) => {
    const address = wallet(pattern);
    expect((await request({ wallet: address })).results.length).toBeGreaterThan(0);
    expect((await request({ wallet: address.toLowerCase() })).results).toEqual([]);
  });

  test('a wallet that was never seen has an empty page', async () => {
    expect(await request({ wallet: 'nobody' })).toEqual({ results: [], nextCursor: null });
  });

  test('status narrows a wallet to the results that have it', async () => {
    const everything = (await allPages({ wallet: evmWallet() })).flatMap((page) => page.results);
    for (const status of ['settled', 'refunded', 'pending']) {
      const narrowed = (await allPages({ wallet: evmWallet(), status, limit: '4' })).flatMap(
        (page) => page.results,
      );
      expect(narrowed).toEqual(everything.filter((result) => result.status === status));
    }
  });
});

describe('refusals', () => {
  test.each(EXACT_FILTERS.slice(0, 3))('an empty %s is no filter', async (filter) => {
    const [error] = await requestWrongly({ [filter]: '' });
    expect(error?.detail).toContain('paging controls alone are not a filter');
  });

  test('an unknown query parameter is refused by name', async () => {
    expect(await requestWrongly({ wallet: evmWallet(), walet: 'x' })).toMatchObject([{ field: 'walet' }]);
  });

  test('a filter given twice is refused', async () => {
    expect(await requestWrongly('wallet=a&wallet=b')).toMatchObject([{ field: 'wallet' }]);
  });

  test('two exact filters are refused together', async () => {
    await requestWrongly({ intentHash: UNKNOWN_HASH, quoteId: UNKNOWN_UUID });
  });

  test.each(EXACT_FILTERS)('%s is refused together with wallet', async (filter) => {
    await requestWrongly({ wallet: evmWallet(), [filter]: UNKNOWN_UUID });
  });

  test.each([
    '',
    'abc',
    '!!!',
    Buffer.from('{}').toString('base64url'),
    Buffer.from('{"before":"1"}').toString('base64url'),
  ])('a cursor that was never given ("%s") is refused', async (cursor) => {
    expect(await requestWrongly({ wallet: evmWallet(), cursor })).toMatchObject([{ field: 'cursor' }]);
  });

  test('a cursor is refused for another wallet and for another status', async () => {
    const { nextCursor } = await request({ wallet: evmWallet(), limit: '1' });
    const cursor = String(nextCursor);
    expect(await requestWrongly({ wallet: wallet(/^T/), cursor })).toMatchObject([{ field: 'cursor' }]);
    expect(await requestWrongly({ wallet: evmWallet(), status: 'settled', cursor })).toMatchObject([
      { field: 'cursor' },
    ]);
  });

  test('every wrong field is named at once', async () => {
    const errors = await requestWrongly({ quoteId: 'x', limit: '0', bogus: '1' });
    expect(errors.map(({ field }) => field).sort()).toEqual(['bogus', 'limit', 'quoteId']);
  });
});
