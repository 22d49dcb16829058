import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { Sandbox } from '../../sandbox/sandbox.ts';

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = new Sandbox({ transfersPerSecond: 0, timeScale: 5_000, wallets: 1, pastTransfers: 60 });
  await sandbox.start();
  await vi.waitFor(() => expect(sandbox.pace().livingTransfers).toBe(0), { timeout: 170_000 });
});

afterEach(async () => {
  await control('DELETE', '/faults');
});

afterAll(async () => {
  await sandbox.close();
});

const faultSchema = z.looseObject({ id: z.int(), type: z.string(), strikes: z.int() });

function control(method: string, path: string, body?: unknown): Promise<Response> {
  return fetch(sandbox.controlUrl + path, {
    method,
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
}

async function start(fault: object): Promise<z.infer<typeof faultSchema>> {
  const response = await control('POST', '/faults', fault);
  expect(response.status).toBe(201);
  return faultSchema.parse(await response.json());
}

function get(path: string): Promise<Response> {
  return fetch(sandbox.url + path, { headers: { 'x-api-key': sandbox.apiKey } });
}

const pageSchema = z.object({
  results: z.array(z.looseObject({ id: z.string(), status: z.string(), updatedAt: z.int().nullable() })),
  nextCursor: z.string().nullable(),
});

async function page(query: string) {
  const response = await get(`/v1/intents/status?${query}`);
  expect(response.status).toBe(200);
  return pageSchema.parse(await response.json());
}

const wallet = () => `wallet=${sandbox.subjects().wallets[0]}`;
const ids = ({ results }: z.infer<typeof pageSchema>) => results.map(({ id }) => id);

function livedIntent(): string {
  const found = sandbox
    .transitions()
    .find(({ subject, to }) => to === 'settled' && subject.startsWith('intent:'));
  return (found?.subject ?? '').slice('intent:'.length);
}

describe('the control of faults', () => {
  test('starts, lists with strikes, and ends them', async () => {
    const fault = await start({ type: 'bare-error', status: 503, path: '/v1/chains' });
    expect((await get('/v1/chains')).status).toBe(503);
    expect((await get('/v1/tokens')).status).toBe(200);
    expect(await (await control('GET', '/faults')).json()).toEqual({ faults: [{ ...fault, strikes: 1 }] });
    expect(await (await control('DELETE', `/faults/${fault.id}`)).json()).toEqual({ removed: 1 });
    expect((await control('DELETE', `/faults/${fault.id}`)).status).toBe(404);
    expect((await get('/v1/chains')).status).toBe(200);
    await start({ type: 'html' });
    await start({ type: 'html' });
    expect(await (await control('DELETE', '/faults')).json()).toEqual({ removed: 2 });
  });

  test.each([
    { type: 'gremlins' },
    { type: 'error', code: 'no-such-code' },
    { type: 'latency' },
    { type: 'html', rate: 2 },
    { type: 'html', more: 1 },
  ])('refuses %j', async (fault) => {
    expect((await control('POST', '/faults', fault)).status).toBe(400);
  });

  test('a rate is the share of requests that are struck', async () => {
    await start({ type: 'bare-error', status: 500, rate: 0.5 });
    const statuses: number[] = [];
    for (let request = 0; request < 100; request++) statuses.push((await get('/v1/tokens')).status);
    const struck = statuses.filter((status) => status === 500).length;
    expect(struck).toBeGreaterThan(20);
    expect(struck).toBeLessThan(80);
  });
});

describe('faults of the way', () => {
  test('latency delays an answer', async () => {
    await start({ type: 'latency', ms: 120, spreadMs: 30 });
    const before = performance.now();
    expect((await get('/v1/tokens')).status).toBe(200);
    expect(performance.now() - before).toBeGreaterThan(115);
  });

  test('429 comes with Retry-After or without', async () => {
    const { id } = await start({ type: 'error', code: 'rate-limit-exceeded', retryAfterSeconds: 7 });
    const limited = await get('/v1/intents/status?wallet=x');
    expect(limited.status).toBe(429);
    expect(limited.headers.get('retry-after')).toBe('7');
    expect(await limited.json()).toMatchObject({ code: 'rate-limit-exceeded', status: 429 });
    await control('DELETE', `/faults/${id}`);
    await start({ type: 'error', code: 'rate-limit-exceeded' });
    expect((await get('/v1/intents/status?wallet=x')).headers.get('retry-after')).toBeNull();
  });

  test('errors take the form of their endpoint', async () => {
    await start({ type: 'error', code: 'service-unavailable' });
    const gateway = await get('/deposit-gateway/v1/gasless/jobs/x');
    expect(await gateway.json()).toMatchObject({ statusCode: 503, code: 'service-unavailable' });
    const open = await fetch(`${sandbox.quotesUrl}/api/v3/quotes/exactIn`, { method: 'POST' });
    expect(open.status).toBe(503);
    expect(await open.json()).toMatchObject({ statusCode: 503, createdBy: 'ValidationFilter' });
  });

  test('a page of HTML comes with 200, and is not logged as shown', async () => {
    await start({ type: 'html' });
    const response = await get(`/v1/intents/status?${wallet()}`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toMatch('text/html');
    expect(await response.text()).toMatch(/^<!doctype html>/);
    expect(sandbox.answers().at(-1)?.subjects).toEqual([]);
  });

  test('a truncated body ends with its connection, and is not logged as shown', async () => {
    await start({ type: 'truncated-body' });
    const response = await get(`/v1/intents/status?${wallet()}`);
    await expect(response.text()).rejects.toThrow();
    expect(sandbox.answers().at(-1)?.subjects).toEqual([]);
  });

  test('a slow body is whole in the end', async () => {
    await start({ type: 'slow-body', ms: 120 });
    const before = performance.now();
    expect((await page(wallet())).results.length).toBeGreaterThan(0);
    expect(performance.now() - before).toBeGreaterThan(100);
    expect(sandbox.answers().at(-1)?.subjects).not.toEqual([]);
  });

  test('a wrong content type carries the right body', async () => {
    await start({ type: 'wrong-content-type' });
    const response = await get('/v1/chains');
    expect(response.headers.get('content-type')).toMatch('text/plain');
    expect(await response.json()).toHaveProperty('chains');
  });

  test('a lost answer does not undo the request', async () => {
    await start({ type: 'lost-answer', status: 502, path: '/v1/deposit-gateway' });
    const before = sandbox.subjects().vaults.length;
    const response = await fetch(`${sandbox.url}/v1/deposit-gateway/deposit-addresses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        sourceChainId: 8453,
        destinationChainId: 10,
        sourceToken: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
        destinationToken: '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85',
        amount: '1000000',
        recipient: '0x52908400098527886E0F7030069857D2E4169EE7',
      }),
    });
    expect(response.status).toBe(502);
    expect(sandbox.subjects().vaults.length).toBe(before + 1);
  });

  test('a key is revoked and restored', async () => {
    await start({ type: 'key-revoked' });
    const refused = await get('/v1/chains');
    expect(refused.status).toBe(401);
    expect(await refused.json()).toMatchObject({ code: 'invalid-api-key' });
    await control('DELETE', '/faults');
    expect((await get('/v1/chains')).status).toBe(200);
  });

  test('a skewed clock shows in Date and in updatedAt', async () => {
    const intent = `intentHash=${livedIntent()}`;
    const right = (await page(intent)).results[0]?.updatedAt ?? 0;
    await start({ type: 'clock-skew', skewSeconds: -3600 });
    expect((await page(intent)).results[0]?.updatedAt).toBe(right - 3600);
    const date = Date.parse((await get('/v1/chains')).headers.get('date') ?? '');
    expect(Math.abs(Date.now() - 3_600_000 - date)).toBeLessThan(60_000);
  });
});

describe('faults of the contents', () => {
  test('a stale read shows the record before, and the log reports it', async () => {
    const hash = livedIntent();
    await start({ type: 'stale-reads' });
    expect((await page(`intentHash=${hash}`)).results[0]?.status).toBe('filled');
    expect(sandbox.answers().at(-1)?.subjects).toEqual([{ id: `intent:${hash}`, status: 'filled' }]);
  });

  test('an id that is not indexed is unknown, at the gateway 404', async () => {
    const [job] = sandbox.subjects().gaslessJobs;
    expect((await get(`/deposit-gateway/v1/gasless/jobs/${job}`)).status).toBe(200);
    await start({ type: 'not-indexed' });
    const [record] = (await page(`intentHash=${livedIntent()}`)).results;
    expect(record).toMatchObject({ status: 'unknown', updatedAt: null });
    expect((await get(`/deposit-gateway/v1/gasless/jobs/${job}`)).status).toBe(404);
  });

  test('an unknown status stays with the record it came with', async () => {
    await start({ type: 'unknown-status', rate: 0.5 });
    const first = await page(`${wallet()}&limit=50`);
    const words = new Set(first.results.map(({ status }) => status));
    expect(words).toContain('awaiting_review');
    expect(words.size).toBeGreaterThan(1);
    expect(await page(`${wallet()}&limit=50`)).toEqual(first);
    expect(sandbox.answers().at(-1)?.subjects).toContainEqual(
      expect.objectContaining({ status: 'awaiting_review' }),
    );
  });

  test('an unknown field comes beside those that are known', async () => {
    await start({ type: 'unknown-fields' });
    const [record] = (await page(`intentHash=${livedIntent()}`)).results;
    expect(record).toMatchObject({ status: 'settled', riskScore: { level: 'low' } });
  });

  test('a shuffled page shows the same records in another order', async () => {
    const right = ids(await page(`${wallet()}&limit=50`));
    await start({ type: 'shuffled-pages' });
    const shuffled = ids(await page(`${wallet()}&limit=50`));
    expect(shuffled).not.toEqual(right);
    expect([...shuffled].sort()).toEqual([...right].sort());
  });

  test('pages begin with the oldest, and lead on to the newest', async () => {
    const newest = ids(await page(`${wallet()}&limit=5`));
    await start({ type: 'oldest-first' });
    const all: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const shown = await page(`${wallet()}&limit=50${cursor === '' ? '' : `&cursor=${cursor}`}`);
      all.push(...ids(shown));
      cursor = shown.nextCursor;
    }
    expect(new Set(all).size).toBe(all.length);
    expect(all.slice(-5).reverse()).toEqual(newest);
  });

  test('an item that moves is missing from one page and is on the next', async () => {
    const rightFirst = await page(`${wallet()}&limit=10`);
    await start({ type: 'moving-items' });
    const first = await page(`${wallet()}&limit=10`);
    const missing = ids(rightFirst).filter((id) => !ids(first).includes(id));
    expect(missing).toHaveLength(1);
    const second = await page(`${wallet()}&limit=10&cursor=${first.nextCursor}`);
    expect(ids(second)).toContain(missing[0]);
    expect(second.results).toHaveLength(10);
  });

  test('a cursor expires, or comes again', async () => {
    const { nextCursor } = await page(`${wallet()}&limit=5`);
    const next = `${wallet()}&limit=5&cursor=${nextCursor}`;
    await start({ type: 'repeated-cursors' });
    expect((await page(next)).nextCursor).toBe(nextCursor);
    await start({ type: 'expired-cursors' });
    const expired = await get(`/v1/intents/status?${next}`);
    expect(expired.status).toBe(400);
    expect(await expired.json()).toMatchObject({ code: 'invalid-request', errors: [{ field: 'cursor' }] });
  });

  test('a reorganised chain takes a fill back, in real transitions with newer times', async () => {
    await start({ type: 'regressions' });
    const born = sandbox.transitions().length;
    await control('POST', '/pace', { transfersPerSecond: 20 });
    const filledTwice = () => {
      const moves = sandbox.transitions().slice(born);
      return moves.some(
        ({ subject, from, to }) =>
          from === 'filled' &&
          to === 'pending' &&
          moves.findLast((move) => move.subject === subject)?.to === 'settled',
      );
    };
    await vi.waitFor(() => expect(filledTwice()).toBe(true), { timeout: 170_000, interval: 100 });
  });
});

test('faults can be on from the start', async () => {
  const other = new Sandbox({
    transfersPerSecond: 0,
    faults: [{ type: 'bare-error', status: 500, path: '/', rate: 1 }],
  });
  await other.start();
  expect((await fetch(`${other.url}/v1/chains`)).status).toBe(500);
  await other.close();
});
