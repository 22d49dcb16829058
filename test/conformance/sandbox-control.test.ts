import { afterEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { Sandbox, type SandboxOptions } from '../../sandbox/sandbox.ts';

const running: Sandbox[] = [];

async function start(options: SandboxOptions): Promise<Sandbox> {
  const sandbox = new Sandbox(options);
  running.push(sandbox);
  await sandbox.start();
  return sandbox;
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((sandbox) => sandbox.close()));
});

const control = async (sandbox: Sandbox, path: string) => (await fetch(sandbox.controlUrl + path)).json();

const setPace = (sandbox: Sandbox, body: unknown) =>
  fetch(`${sandbox.controlUrl}/pace`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

const request = (sandbox: Sandbox, path: string) =>
  fetch(sandbox.url + path, { headers: { 'x-api-key': sandbox.apiKey } });

const transitionsSchema = z.array(z.looseObject({ at: z.number() }));
const resultsSchema = z.looseObject({
  results: z.array(z.looseObject({ id: z.string(), status: z.string() })),
});
const jobSchema = z.looseObject({ data: z.looseObject({ status: z.string() }) });
const vaultSchema = z.looseObject({ data: z.looseObject({ state: z.string() }) });

test('subjects of every kind are named from the start', async () => {
  const sandbox = await start({ transfersPerSecond: 0, wallets: 4, pastTransfers: 50 });
  const subjects = sandbox.subjects();
  expect(await control(sandbox, '/subjects')).toEqual(subjects);
  expect(subjects.wallets).toHaveLength(4);
  // The first announced transfer begins at once, the others later; past ones are not named.
  expect(subjects.intents).toHaveLength(4);
  expect(subjects.quotes).toHaveLength(4);
  expect(subjects.gaslessJobs).toHaveLength(4);
  expect(subjects.vaults).toHaveLength(4);
});

test('transitions report births and changes, and since reads only the tail', async () => {
  const sandbox = await start({ transfersPerSecond: 0, timeScale: 2_000 });
  await vi.waitFor(() => expect(sandbox.pace().livingTransfers).toBe(0), { timeout: 170_000 });
  const all = transitionsSchema.parse(await control(sandbox, '/transitions'));
  expect(all).toEqual(sandbox.transitions());
  expect(all[0]).toEqual({
    subject: expect.stringMatching(/^intent:0x/),
    from: null,
    to: 'pending',
    at: expect.any(Number),
  });
  // The announced transfer with late details makes the last change at least a second after the first.
  const since = all.at(-1)?.at ?? 0;
  const tail = transitionsSchema.parse(await control(sandbox, `/transitions?since=${since}`));
  expect(tail).toEqual(all.filter(({ at }) => at >= since));
  expect(tail.length).toBeLessThan(all.length);
});

test('requests report the client, the request and its result: also refused ones and ones with a fault', async () => {
  const sandbox = await start({
    transfersPerSecond: 0,
    faults: [{ type: 'error', code: 'rate-limit-exceeded', path: '/v1/chains', rate: 1 }],
  });
  await request(sandbox, '/v1/intents/status?wallet=nobody');
  await request(sandbox, '/v1/intents/status?limit=99');
  const headers = { 'x-api-key': sandbox.apiKey, 'user-agent': 'a-script' };
  await fetch(`${sandbox.url}/v1/chains`, { headers });
  await fetch(`${sandbox.quotesUrl}/api/v3/quotes/exactIn`, { method: 'POST' });
  await vi.waitFor(() => expect(sandbox.requests().at(-1)?.status).not.toBeNull(), 170_000);
  const requests = await control(sandbox, '/requests');
  expect(requests).toEqual(sandbox.requests());
  const path = '/v1/intents/status';
  const common = { at: expect.any(Number), method: 'GET', agent: expect.any(String) };
  expect(requests).toEqual([
    { ...common, path, query: { wallet: 'nobody' }, status: 200 },
    { ...common, path, query: { limit: '99' }, status: 400 },
    { ...common, path: '/v1/chains', query: {}, agent: 'a-script', status: 429 },
    { ...common, method: 'POST', path: '/api/v3/quotes/exactIn', query: {}, status: 400 },
  ]);
  const since = sandbox.requests().at(-1)?.at ?? 0;
  const tail = sandbox.requests().filter(({ at }) => at >= since);
  expect(await control(sandbox, `/requests?since=${since}`)).toEqual(tail);
});

test('answers report the response to each client, also an empty one', async () => {
  // The quote is not made yet, on a busy machine too.
  const sandbox = await start({ transfersPerSecond: 0, pastTransfers: 100, timeScale: 0.001 });
  const wallet = String(sandbox.subjects().wallets[0]);
  const quoteId = String(sandbox.subjects().quotes[0]);
  const page = resultsSchema.parse(
    await (await request(sandbox, `/v1/intents/status?wallet=${wallet}&limit=2`)).json(),
  );
  await request(sandbox, '/v1/intents/status?wallet=nobody');
  await request(sandbox, `/v1/intents/status?quoteId=${quoteId}`);
  await request(sandbox, '/v1/intents/status?limit=99');
  const answers = await control(sandbox, '/answers');
  const path = '/v1/intents/status';
  const at = expect.any(Number);
  expect(answers).toEqual([
    {
      at,
      path,
      query: { wallet, limit: '2' },
      subjects: page.results.map(({ id, status }) => ({ id, status })),
    },
    { at, path, query: { wallet: 'nobody' }, subjects: [] },
    { at, path, query: { quoteId }, subjects: [{ id: `quote:${quoteId}`, status: 'unknown' }] },
  ]);
  expect(page.results).toHaveLength(2);
});

test('answers of the deposit gateway are reported under its own ids', async () => {
  const sandbox = await start({ transfersPerSecond: 0, timeScale: 2_000 });
  await vi.waitFor(() => expect(sandbox.pace().livingTransfers).toBe(0), { timeout: 170_000 });
  const { gaslessJobs, vaults } = sandbox.subjects();
  const vault = vaults[0];
  const job = jobSchema.parse(
    await (await fetch(`${sandbox.url}/deposit-gateway/v1/gasless/jobs/${gaslessJobs[0]}`)).json(),
  );
  const vaultUrl = `${sandbox.url}/v1/deposit-gateway/${vault?.address}?sourceChainId=${vault?.chainId}`;
  const found = vaultSchema.parse(await (await fetch(vaultUrl)).json());
  expect(sandbox.answers().map(({ subjects }) => subjects)).toEqual([
    [{ id: `gasless:gateway:${gaslessJobs[0]}`, status: job.data.status }],
    [{ id: `vault:${vault?.chainId}:${vault?.address.toLowerCase()}`, status: found.data.state }],
  ]);
});

test('the pace changes how fast transfers are born, and at 0 everything drains', async () => {
  const sandbox = await start({ transfersPerSecond: 0, timeScale: 2_000 });
  const births = () =>
    sandbox.transitions().filter(({ subject, from }) => subject.startsWith('intent:') && from === null)
      .length;
  await setPace(sandbox, { transfersPerSecond: 200 });
  await vi.waitFor(() => expect(births()).toBeGreaterThan(40), { timeout: 170_000 });
  const answer = await (await setPace(sandbox, { transfersPerSecond: 0 })).json();
  expect(answer).toEqual({ transfersPerSecond: 0, livingTransfers: expect.any(Number) });
  await vi.waitFor(
    async () => expect(await control(sandbox, '/pace')).toMatchObject({ livingTransfers: 0 }),
    {
      timeout: 170_000,
    },
  );
});

test.each([
  {},
  { transfersPerSecond: -1 },
  { transfersPerSecond: '1' },
  { transfersPerSecond: 1, more: 1 },
])('a pace of %j is refused', async (body) => {
  const sandbox = await start({ transfersPerSecond: 0.5 });
  expect((await setPace(sandbox, body)).status).toBe(400);
  expect(sandbox.pace().transfersPerSecond).toBe(0.5);
});

test('a since that is no time is refused', async () => {
  const sandbox = await start({ transfersPerSecond: 0 });
  for (const path of ['/transitions?since=yesterday', '/answers?since=-1']) {
    expect((await fetch(sandbox.controlUrl + path)).status).toBe(400);
  }
});

test('a sandbox whose port is in use fails to start and leaves no port open', async () => {
  const first = await start({ transfersPerSecond: 0 });
  const port = Number(new URL(first.url).port);
  const second = new Sandbox({ transfersPerSecond: 0, controlPort: port });
  await expect(second.start()).rejects.toThrow(`controlPort: found ${port}, which is in use`);
  expect(() => second.url).toThrow('not started');
});

test.each([
  [{ timeScale: 0 }, 'timeScale: found 0, expected a number above 0'],
  [{ wallets: 0.5 }, 'wallets: found 0.5, expected a whole number of at least 1'],
  [{ pastTransfers: -1 }, 'pastTransfers: found -1'],
  [{ transfersPerSecond: Number.NaN }, 'transfersPerSecond: found NaN'],
  [{ seed: 1.5 }, 'seed: found 1.5'],
])('the options %j are refused', (options, message) => {
  expect(() => new Sandbox(options)).toThrow(message);
});
