import { expect, inject, test } from 'vitest';
import { Sandbox, type SandboxOptions } from '../../sandbox/sandbox.ts';
import { buildUpstream, upstreamSchema } from '../../src/config/sections/upstream.ts';
import { type ProbeReport, probe } from '../../src/operations/probe/probe-report.ts';
import { MOST_REQUESTS } from '../../src/operations/probe/probe-run.ts';
import { redisTimeMs } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { cannedServer } from '../support/canned-server.ts';
import { runCommand } from '../support/command.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { PRICE_REQUEST, ProbeStage } from '../support/probe-stage.ts';

const { later, started } = opening();

/** A sandbox whose transfers have all ended, so that a probe sees the same at any time. */
async function deployment(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await started(
    new Sandbox({ timeScale: 2_000, transfersPerSecond: 0, pastTransfers: 60, wallets: 2, ...options }),
  );
  await eventually('all transfers have ended', () => sandbox.pace().livingTransfers === 0);
  return sandbox;
}

async function stage(budget?: number): Promise<ProbeStage> {
  const one = await ProbeStage.start(budget);
  later(() => one.close());
  return one;
}

function subjectsOf(sandbox: Sandbox): object {
  const { wallets, intents, gaslessJobs, vaults } = sandbox.subjects();
  const jobs = gaslessJobs.slice(0, 1).map((id) => ({ id, endpoint: 'gateway' }));
  return {
    wallets: wallets.slice(0, 1),
    intents: intents.slice(0, 1),
    gaslessJobs: jobs,
    vaults: vaults.slice(0, 1),
  };
}

const verdicts = ({ assumptions }: ProbeReport): Record<string, string> =>
  Object.fromEntries(assumptions.map(({ id, verdict }) => [id, verdict]));

const CONFIRMED = {
  'word-case': 'confirmed',
  'status-words': 'confirmed',
  'unknown-id': 'confirmed',
  'date-header': 'confirmed',
  'page-order': 'confirmed',
  'page-limit': 'confirmed',
  'page-status': 'confirmed',
  'page-cursor': 'confirmed',
  'gateway-paths': 'confirmed',
  'gateway-chain': 'confirmed',
  'api-key': 'confirmed',
  'quote-domain': 'confirmed',
  'chain-lists': 'confirmed',
  'quote-members': 'confirmed',
};

test('confirms every assumption at a sandbox, within the budget of the daemon', async () => {
  const sandbox = await deployment();
  const one = await stage();
  const upstream = { baseUrl: sandbox.url, quotesUrl: sandbox.quotesUrl };
  const price = await one.file('price.json', PRICE_REQUEST);
  const { report, out, err, code } = await one.probe({ upstream, subjects: subjectsOf(sandbox) }, [
    '--quote',
    price,
  ]);
  expect(verdicts(report)).toEqual(CONFIRMED);
  expect(report).toMatchObject({ key: 'accepted', settings: [], omitted: 0 });
  expect(report.endpoints.flatMap(({ unreadable }) => unreadable)).toEqual([]);
  const open = ['POST /api/v3/quotes/exactIn', 'POST /api/v3/intents/intentStatus'];
  expect(report.endpoints.map(({ endpoint }) => endpoint)).toEqual(expect.arrayContaining(open));
  expect(err).toBe('requesting a price at the quotes endpoints: nothing is signed or funded');
  expect(out).toMatch(/^page-order +confirmed +pages show the newest change first$/m);
  expect(code).toBe(0);
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(async () => redis.disconnect());
  expect(await redis.hexists(new Keys(one.prefix).plan('status'), 'next')).toBe(1);
});

test('at a deployment with other names, proposes the settings, and with them confirms', async () => {
  const names = { quoteDomain: 'AcmeQuoteV1', gatewayPrefix: 'acme-vaults' };
  const sandbox = await deployment(names);
  const one = await stage();
  const subjects = subjectsOf(sandbox);
  const price = ['--quote', await one.file('price.json', PRICE_REQUEST)];
  const before = await one.probe({ upstream: { baseUrl: sandbox.url }, subjects }, [
    ...price,
    '--quote-domain',
    'OtherQuoteV1',
    names.quoteDomain,
  ]);
  expect(verdicts(before.report)).toEqual({
    ...CONFIRMED,
    'gateway-paths': 'open',
    'gateway-chain': 'open',
    'quote-domain': 'contradicted',
  });
  expect(before.report.settings).toEqual([
    {
      setting: 'upstream.gateway.prefix',
      proposal: 'the word of this deployment, if vaults or gateway jobs are watched',
    },
    { setting: 'upstream.quoteDomain', proposal: 'name 2 of --quote-domain' },
  ]);
  expect(`${before.out}${JSON.stringify(before.report)}`).not.toMatch(/acme/i);
  const unnamed = await one.probe({ upstream: { baseUrl: sandbox.url }, subjects }, price);
  expect(unnamed.report.settings.at(-1)).toEqual({
    setting: 'upstream.quoteDomain',
    proposal: 'the name of this deployment',
  });
  const upstream = {
    baseUrl: sandbox.url,
    quoteDomain: { name: names.quoteDomain },
    gateway: { prefix: names.gatewayPrefix },
  };
  const after = await one.probe({ upstream, subjects }, price);
  expect(verdicts(after.report)).toEqual(CONFIRMED);
  expect(after.report.settings).toEqual([]);
});

test('sends one request a second where no daemon runs', async () => {
  const times: number[] = [];
  const server = await cannedServer(() => {
    times.push(performance.now());
    return { status: 404, body: { code: 'endpoint-not-found' } };
  });
  later(() => server.close());
  const { code, out } = await runCommand(['probe', '--base-url', server.url, '--json']);
  expect(code).toBe(75);
  expect(times).toHaveLength(JSON.parse(out).requests);
  const leastMs = Math.min(...times.slice(1).map((time, index) => time - (times[index] ?? 0)));
  expect(leastMs).toBeGreaterThan(800);
});

test('sends nothing while the daemon pauses', async () => {
  const sandbox = await deployment();
  const one = await stage();
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(async () => redis.disconnect());
  const untilMs = (await redisTimeMs(redis)) + 1_500;
  await redis.hset(new Keys(one.prefix).endpointGroup('status'), 'pausedUntil', String(untilMs));
  const sinceMs = Date.now();
  await one.probe({ upstream: { baseUrl: sandbox.url }, subjects: subjectsOf(sandbox) });
  const first = sandbox.requests(sinceMs).find(({ path }) => path === '/v1/chains');
  expect(first?.at).toBeGreaterThanOrEqual(untilMs - 100);
});

test.each([
  ['a refused key ends with 78', { apiKey: 'another-key' }, 'refused'],
  ['a missing key ends with 78', { apiKey: undefined }, 'needed'],
])('%s', async (_name, key, state) => {
  const sandbox = await deployment();
  const one = await stage();
  const { code, report } = await one.probe({
    upstream: { baseUrl: sandbox.url, ...key },
    subjects: subjectsOf(sandbox),
  });
  expect(report).toMatchObject({ key: state, settings: [{ setting: 'upstream.apiKey' }] });
  expect(code).toBe(78);
});

test.each([
  [['--wallet', '1', '2', '3', '4'], 'found 4 values of --wallet, expected at most 3'],
  [['--api-key', 'k'], 'found --api-key alone, expected --base-url with it'],
  [['--quote-domain', '/'], '--quote-domain: expected NAME or NAME/VERSION'],
])('%j is refused', async (args, message) => {
  const { code, err } = await runCommand(['probe', ...args]);
  expect(err).toContain(message);
  expect(code).toBe(1);
});

test('a request for a price that the interface does not have is refused, without a request', async () => {
  const one = await stage();
  const file = await one.file('price.json', { ...PRICE_REQUEST, dappId: '' });
  const { err, code } = await runCommand(['probe', '--base-url', 'http://127.0.0.1:1', '--quote', file]);
  expect(err).toContain('--quote: expected a request of POST /v1/quotes; dappId: a name that is not empty');
  expect(code).toBe(1);
});

test('a probe ends at its limits of requests and time', async () => {
  const server = await cannedServer(() => ({ status: 200, body: { results: [], nextCursor: 'next' } }));
  later(() => server.close());
  const input = {
    upstream: buildUpstream(upstreamSchema.parse({ baseUrl: server.url, apiKey: 'k' })),
    intents: [],
    wallets: Array.from({ length: 20 }, (_, index) => `0x${index}`),
    jobs: [],
    vaults: [],
    quote: null,
    domains: [],
  };
  const many = await probe({ ...input, slot: async () => {} });
  expect(server.seen).toHaveLength(MOST_REQUESTS);
  expect(many).toMatchObject({ requests: MOST_REQUESTS, omitted: expect.any(Number) });
  expect(many.omitted).toBeGreaterThan(0);
  const slot = (_group: string, signal: AbortSignal) =>
    new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  expect(await probe({ ...input, slot }, { mostMs: 50 })).toMatchObject({ requests: 0, endpoints: [] });
  expect(server.seen).toHaveLength(MOST_REQUESTS);
});
