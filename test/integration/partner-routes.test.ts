import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { describe, expect, inject, test } from 'vitest';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { SignalMap } from '../../src/signals.ts';
import { signalled, startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { DEPLOYMENT, newSandbox } from '../support/deployment.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { openEntry, ROUTE_ITEM } from '../support/routes.ts';
import { type Scripted, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { IN_2100, QUOTE_CHAIN, QUOTE_SIGNER, signQuote } from '../support/signed-quote.ts';

const { later, started } = opening();

const STRANGER = privateKeyToAccount(`0x${'22'.repeat(32)}`);
const SOMEBODY = '0x00000000000000000000000000000000000000aa';
const WALLET = '0x52908400098527886e0f7030069857d2e4169ee7';

const PARTNER_ITEM = { ...ROUTE_ITEM, service: 'v1' };

type Setup = {
  baseUrl: string;
  quotesUrl?: string;
  hook: TestReceiver;
  events?: string[];
  routes?: object[];
  wallets?: string[];
  quoteDomain?: null;
};

async function startOn(setup: Setup) {
  const { baseUrl, quotesUrl, hook, events, routes = [PARTNER_ITEM], wallets = [], quoteDomain } = setup;
  const { daemon, signals } = await startDaemon({
    baseUrl,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url, more: { ordering: 'subject', ...(events && { events }) } } },
    subscriptions: [{ name: 'prices', routes, wallets, receivers: ['hook'] }],
    more: {
      upstream: {
        baseUrl,
        ...(quotesUrl === undefined ? {} : { quotesUrl }),
        apiKey: 'sandbox-key',
        requestsPerSecond: 50,
        quotesRequestsPerSecond: 50,
        partnerQuotesRequestsPerSecond: 40,
        ...(quoteDomain === undefined ? {} : { quoteDomain }),
      },
    },
  });
  later(() => daemon.close());
  return { daemon, signals };
}

type Offer = {
  output: string;
  more?: JsonObject;
  expiresAt?: number;
  by?: typeof QUOTE_SIGNER;
  name?: string;
};

let made = 0;

async function offer({
  output,
  more = {},
  expiresAt = IN_2100,
  by = QUOTE_SIGNER,
  name = DEPLOYMENT.domain.name,
}: Offer): Promise<JsonObject> {
  const id = `quote:${++made}`;
  const intentHash: Hex = `0x${made.toString(16).padStart(64, '0')}`;
  const { source, destination, amount, funder, recipient } = ROUTE_ITEM;
  const covered = {
    id,
    intentHashes: [intentHash],
    expiresAt: BigInt(expiresAt),
    chainId: source.chainId,
    name,
  };
  const signature = await signQuote(covered, by);
  const { source: otherSource = {}, destination: otherDestination = {}, ...others } = more;
  return {
    id,
    type: 'exact-in',
    signature,
    expiresAt,
    intentHash,
    source: { ...source, funder, amount, ...(otherSource as object) },
    destination: { ...destination, recipient, amountOut: output, ...(otherDestination as object) },
    execution: { transaction: { type: 'evm', data: '0xfeed' } },
    ...others,
  };
}

/** An answer of `POST /v1/quotes`: the first is the best by the service's own ranking. */
async function answerOf(...offers: Offer[]): Promise<Scripted> {
  const quotes = await Promise.all(offers.map(offer));
  return { status: 200, body: JSON.stringify({ ...quotes[0], quotes }) };
}

/** The v1 API, whose prices the test writes; it publishes the signer, and knows no transfer. */
async function scripted(answer: () => Scripted | Promise<Scripted>): Promise<ScriptedUpstream> {
  const chains = { chains: [{ chainId: QUOTE_CHAIN, quoteSigner: QUOTE_SIGNER.address }] };
  return started(
    new ScriptedUpstream(
      ({ path }) => {
        if (path === '/v1/chains') return { status: 200, body: JSON.stringify(chains) };
        if (path === '/v1/tokens') return { status: 200, body: '{"tokens":[]}' };
        if (path === '/v1/quotes') return answer();
        return path.startsWith('/api/')
          ? { status: 201, body: JSON.stringify({ data: [openEntry('98000000')] }) }
          : { records: [] };
      },
      { lists: true },
    ),
  );
}

const facts = ({ type, data }: RenderedEvent) => [type, data.record.output];

async function metricsOf(daemon: { url: string }): Promise<string> {
  return (await fetch(`${daemon.url}/metrics`)).text();
}

const UNREADABLE = /^intentwatch_records_unreadable_total\{kind="route"\} [1-9]/m;

describe('a route that is priced with the key', () => {
  test('is reported as available, moved, unavailable and available again by the sandbox', async () => {
    const sandbox = await started(newSandbox({ transfersPerSecond: 0 }));
    const hook = await started(new TestReceiver());
    const { daemon } = await startOn({ baseUrl: sandbox.url, hook });

    await hook.until((events) => events.length === 1);
    sandbox.setMarket({ extraFee: 0.02 });
    await hook.until((events) => events.length === 2);
    sandbox.setMarket({ solvers: 0 });
    await hook.until((events) => events.length === 3);
    sandbox.setMarket({ solvers: 2, extraFee: 0 });
    await hook.until((events) => events.length === 4);

    expect(hook.events.map(facts)).toEqual([
      ['route.available', '99940000'],
      ['route.moved', '97940000'],
      ['route.unavailable', null],
      ['route.available', '99940000'],
    ]);
    expect(hook.events[1]?.data).toMatchObject({
      subject: { kind: 'route', id: 'route:v1:base-to-optimism' },
      record: { service: 'v1', solvers: 3, previousOutput: '99940000', outputPerInput: '0.9794' },
    });
    expect(hook.events[1]?.data.record.quote).toMatchObject({
      type: 'exact-in',
      expiresAt: expect.anything(),
    });
    expect(JSON.stringify(hook.events)).not.toMatch(/execution|"quotes"/);
    const body = await eventually('the prices at /metrics', async () => {
      const text = await metricsOf(daemon);
      return /^intentwatch_route_solvers\{route="base-to-optimism"\} 2$/m.test(text) && text;
    });
    expect(body).toMatch(/requests_total\{endpoint="quotes",outcome="ok"\} [1-9]/);
    expect(body).toMatch(
      /polls_total\{endpoint_group="partner-quotes",kind="route",outcome="answered"\} [1-9]/,
    );
    expect(body).toMatch(/budget_requests_per_second\{endpoint_group="partner-quotes"\} 40/);
    expect(body).not.toMatch(UNREADABLE);
  });

  test('is listed beside one of the open service', async () => {
    const service = await scripted(() => answerOf({ output: '99000000' }));
    const hook = await started(new TestReceiver());
    const routes = [PARTNER_ITEM, { ...ROUTE_ITEM, name: 'open-one' }];
    await startOn({ baseUrl: service.url, quotesUrl: service.url, hook, routes });
    await hook.until((events) => events.length === 2);
    const reported = hook.events.map(({ data }) => [
      data.subject.id,
      data.record.service,
      data.record.output,
    ]);
    expect(reported.sort()).toEqual([
      ['route:open-one', 'open', '98000000'],
      ['route:v1:base-to-optimism', 'v1', '99000000'],
    ]);
  });

  test('is unavailable where every solver rejects it', async () => {
    const problem = (code: string): Scripted => ({
      status: 422,
      body: JSON.stringify({ type: `https://x/v1/errors/${code}`, title: 'no', status: 422, code }),
    });
    const service = await scripted(() => problem('insufficient-liquidity'));
    const hook = await started(new TestReceiver());
    await startOn({ baseUrl: service.url, hook });
    await hook.until((events) => events.length === 1);
    expect(hook.events.map(facts)).toEqual([['route.unavailable', null]]);
  });

  test('is not unavailable by a short solver error', async () => {
    const problem = {
      type: 'https://x/v1/errors/solver-error',
      title: 'no',
      status: 502,
      code: 'solver-error',
    };
    let errors = 0;
    const service = await scripted(() =>
      ++errors % 2 === 1
        ? { status: 502, body: JSON.stringify(problem) }
        : answerOf({ output: errors < 4 ? '99000000' : '90000000' }),
    );
    const hook = await started(new TestReceiver());
    await startOn({ baseUrl: service.url, hook });
    await hook.until((events) => events.length === 2);
    expect(hook.events.map(facts)).toEqual([
      ['route.available', '99000000'],
      ['route.moved', '90000000'],
    ]);
  });
});

describe('quotes that are no price of the route', () => {
  test.each<[string, Omit<Offer, 'output'>]>([
    ['of a signature that is not the signer of the chain', { by: STRANGER }],
    ['of a damaged signature', { more: { signature: '0x12' } }],
    ['of another id than was signed', { more: { id: 'quote:other' } }],
    ['from another token', { more: { source: { token: SOMEBODY } } }],
    ['from another funder', { more: { source: { funder: SOMEBODY } } }],
    ['of another amount', { more: { source: { amount: '7' } } }],
    ['to another chain', { more: { destination: { chainId: 42161 } } }],
    ['to another token', { more: { destination: { token: SOMEBODY } } }],
    ['to another recipient', { more: { destination: { recipient: SOMEBODY } } }],
    ['of another type', { more: { type: 'exact-out' } }],
    ['that has expired', { expiresAt: 1_700_000_000 }],
    ['of an execution that was not named', { more: { execution: { transaction: { type: 'solana' } } } }],
    ['that names no execution', { more: { execution: {} } }],
    ['without an output', { more: { destination: { amountOut: null } } }],
  ])('%s are excluded, and counted', async (_, flaw) => {
    let output = '99000000';
    const service = await scripted(() => answerOf({ output: '120000000', ...flaw }, { output }));
    const hook = await started(new TestReceiver());
    const routes = [{ ...PARTNER_ITEM, executions: ['EVM'] }];
    const { daemon } = await startOn({ baseUrl: service.url, hook, routes });
    await hook.until((events) => events.length === 1);
    output = '90000000';
    await hook.until((events) => events.length === 2);
    expect(hook.events.map(facts)).toEqual([
      ['route.available', '99000000'],
      ['route.moved', '90000000'],
    ]);
    expect(hook.events[0]?.data.record.solvers).toBe(1);
    expect(await metricsOf(daemon)).toMatch(UNREADABLE);
  });

  test('hide no second copy of themselves that is one', async () => {
    const [whole, other] = await Promise.all([offer({ output: '99000000' }), offer({ output: '90000000' })]);
    const damaged = { ...whole, destination: {} };
    const answers = [
      { ...whole, quotes: [damaged, other] },
      { ...damaged, quotes: [whole, other] },
    ].map((body): Scripted => ({ status: 200, body: JSON.stringify(body) }));
    for (const answer of answers) {
      const hook = await started(new TestReceiver());
      const service = await scripted(() => answer);
      const { daemon } = await startOn({ baseUrl: service.url, hook });
      const [available] = await hook.until((events) => events.length === 1);
      expect(available?.data.record).toMatchObject({ output: '99000000', solvers: 2 });
      expect(await metricsOf(daemon)).toMatch(UNREADABLE);
    }
  });

  test('alone make no event, state the reason, and do not have the chains read for each', async () => {
    let by = QUOTE_SIGNER;
    const service = await scripted(() => answerOf({ output: by === QUOTE_SIGNER ? '99000000' : '1', by }));
    const hook = await started(new TestReceiver());
    const { daemon, signals } = await startOn({ baseUrl: service.url, hook });
    await hook.until((events) => events.length === 1);
    by = STRANGER;
    const reasons: string[] = [];
    signals.on('record.unreadable', ({ reason }) => reasons.push(reason));
    await signalled<SignalMap['poll.ended'][0]>(
      (take) => signals.on('poll.ended', take),
      ({ endpointGroup, outcome }) => endpointGroup === 'partner-quotes' && outcome === 'failed',
    );
    by = QUOTE_SIGNER;
    await signalled<SignalMap['poll.ended'][0]>(
      (take) => signals.on('poll.ended', take),
      ({ endpointGroup, outcome }) => endpointGroup === 'partner-quotes' && outcome === 'answered',
    );
    expect(reasons[0]).toMatch(/^quote "quote:\d+": its signature does not hold: /);
    expect(hook.events.map(facts)).toEqual([['route.available', '99000000']]);
    expect(await metricsOf(daemon)).toMatch(UNREADABLE);
    expect(service.requests.filter(({ path }) => path === '/v1/chains').length).toBeLessThanOrEqual(2);
  });
});

test.each<[string, JsonObject | null, object]>([
  [
    'an svm execution',
    { transaction: { type: 'svm', instructions: [] }, vault: null },
    { executions: ['svm'] },
  ],
  ['null as its execution', null, {}],
])('a quote with %s, lower-case steps, roles and empty intents is a price', async (_, execution, named) => {
  const steps = [{ type: 'bridge', estimatedDurationSec: 14.5, intents: [] }];
  const more = { execution, steps, quotes: null, refundRecipient: WALLET, solver: { id: SOMEBODY } };
  const service = await scripted(() => answerOf({ output: '99000000', more }));
  const hook = await started(new TestReceiver());
  const { daemon } = await startOn({ baseUrl: service.url, hook, routes: [{ ...PARTNER_ITEM, ...named }] });
  const [event] = await hook.until((events) => events.length === 1);
  expect(event?.data.record).toMatchObject({ output: '99000000', solvers: 1, fillEstimateSeconds: 15 });
  expect(event?.data.record).not.toHaveProperty('unverified');
  expect(await metricsOf(daemon)).not.toMatch(UNREADABLE);
});

test('prices are marked as unverified until a quote verifies under the name; then those of another name are none', async () => {
  let offers: Offer[] = [{ output: '98000000', name: 'AcmeQuoteV1' }];
  const service = await scripted(() => answerOf(...offers));
  const hook = await started(new TestReceiver());
  const events = ['*', 'intentwatch.*'];
  const { daemon } = await startOn({ baseUrl: service.url, hook, events, quoteDomain: null });
  const received = await hook.until((all) => all.length === 2);
  const price = received.find(({ type }) => type === 'route.available');
  expect(price?.data.record).toMatchObject({ output: '98000000', unverified: true });
  expect(received.map(({ type }) => type)).toContain('intentwatch.quote_domain_unproven');
  expect(await metricsOf(daemon)).not.toMatch(UNREADABLE);
  offers = [
    { output: '97000000', name: 'ServiceQuoteV1' },
    { output: '99000000', name: 'AcmeQuoteV1' },
  ];
  const [, , moved] = await hook.until((all) => all.length === 3);
  expect(moved).toMatchObject({ type: 'route.moved', data: { record: { output: '97000000', solvers: 1 } } });
  expect(moved?.data.record).not.toHaveProperty('unverified');
  expect(await metricsOf(daemon)).toMatch(UNREADABLE);
});

describe('the endpoint group of these prices', () => {
  const refused = 'reports alone that the key is refused, while transfers are requested';
  const why = DEPLOYMENT.takesKey ? '' : ' (skipped: needs a deployment with a key)';
  test.skipIf(!DEPLOYMENT.takesKey)(`${refused}${why}`, async () => {
    let refuses = false;
    const problem = {
      type: 'https://x/v1/errors/invalid-api-key',
      title: 'The API key is missing, unknown, or revoked',
      status: 401,
      code: 'invalid-api-key',
    };
    const service = await scripted(() =>
      refuses ? { status: 401, body: JSON.stringify(problem) } : answerOf({ output: '99000000' }),
    );
    const hook = await started(new TestReceiver());
    const events = ['*', 'upstream.*'];
    const { signals } = await startOn({ baseUrl: service.url, hook, events, wallets: [WALLET] });
    await hook.until((all) => all.length === 1);
    refuses = true;
    await hook.until((all) => all.length === 2);
    await signalled<SignalMap['poll.ended'][0]>(
      (take) => signals.on('poll.ended', take),
      ({ endpointGroup, outcome }) => endpointGroup === 'status' && outcome === 'answered',
    );
    refuses = false;
    await hook.until((all) => all.length === 3);
    expect(hook.events.slice(1).map(({ type, data }) => [type, data.subject.id])).toEqual([
      ['upstream.unauthorized', 'upstream:partner-quotes'],
      ['upstream.authorized', 'upstream:partner-quotes'],
    ]);
  });

  test('is paused alone where the service requests it', async () => {
    const answers: Scripted[] = [];
    const steps: string[] = [];
    const service = await scripted(() => {
      steps.push('requested a quote');
      return answers.shift() ?? answerOf({ output: '99000000' });
    });
    const hook = await started(new TestReceiver());
    const { signals } = await startOn({ baseUrl: service.url, hook, wallets: [WALLET] });
    await hook.until((events) => events.length === 1);
    signals.on('upstream.paused', ({ endpointGroup }) => steps.push(`${endpointGroup} paused`));
    signals.on('poll.ended', ({ endpointGroup }) => steps.push(endpointGroup));
    answers.push(
      { status: 429, body: '{}', headers: { 'retry-after': '3' } },
      await answerOf({ output: '90000000' }),
    );
    await hook.until((events) => events.length === 2);
    const from = steps.indexOf('partner-quotes paused');
    const since = steps.slice(from + 1);
    const meanwhile = since.slice(0, since.indexOf('requested a quote'));
    expect(hook.events.map(facts)).toEqual([
      ['route.available', '99000000'],
      ['route.moved', '90000000'],
    ]);
    expect(steps.filter((step) => step.endsWith(' paused'))).toEqual(['partner-quotes paused']);
    await eventually('the transfers are requested', () => steps.indexOf('status', from) > from);
    // The request that was answered with a wait, if its end is reported after the pause.
    expect(
      meanwhile.filter((endpointGroup) => endpointGroup === 'partner-quotes').length,
    ).toBeLessThanOrEqual(1);
  });
});
