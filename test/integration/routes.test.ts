import { describe, expect, inject, test } from 'vitest';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { SignalMap, Signals } from '../../src/signals.ts';
import { signalled, startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { newSandbox } from '../support/deployment.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { openEntry, ROUTE_ITEM } from '../support/routes.ts';
import { type Scripted, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

type Setup = {
  baseUrl: string;
  quotesUrl: string;
  prefix?: string;
  hook: TestReceiver;
  events?: string[];
  routes?: object[];
};

async function startOn({ baseUrl, quotesUrl, prefix = testPrefix(), hook, events, routes }: Setup) {
  const { daemon, signals } = await startDaemon({
    baseUrl,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: { hook: { url: hook.url, more: { ordering: 'subject', ...(events && { events }) } } },
    subscriptions: [
      { name: 'prices', routes: routes ?? [ROUTE_ITEM], metadata: { desk: 'fx' }, receivers: ['hook'] },
    ],
    more: { upstream: { baseUrl, quotesUrl, apiKey: 'sandbox-key', quotesRequestsPerSecond: 50 } },
  });
  later(() => daemon.close());
  return { daemon, signals, prefix };
}

/** An open quoting service whose every answer the test writes; it serves as the keyed upstream as well. */
async function scripted(answer: () => Scripted): Promise<ScriptedUpstream> {
  return started(
    new ScriptedUpstream(({ path }) => (path === '/api/v3/quotes/exactIn' ? answer() : { records: [] })),
  );
}

/** As many routes as a test needs; a failed poll comes again only after seconds, so each takes one failure. */
const routesOf = (count: number): object[] =>
  Array.from({ length: count }, (_, index) => ({ ...ROUTE_ITEM, name: `route-${index}` }));

const quotes = (...outputs: string[]): Scripted => ({
  status: 201,
  body: JSON.stringify({ data: outputs.map((output) => openEntry(output)) }),
});

const facts = ({ type, data }: RenderedEvent) => [type, data.sequence, data.record.output];

/** Resolves when `wanted` polls of routes that match have ended. */
async function polls(
  signals: Signals,
  wanted: number,
  matches: (poll: SignalMap['poll.ended'][0]) => boolean,
): Promise<void> {
  let seen = 0;
  await signalled<SignalMap['poll.ended'][0]>(
    (take) => signals.on('poll.ended', take),
    (poll) => {
      if (poll.endpointGroup === 'quotes' && matches(poll)) seen += 1;
      return seen >= wanted;
    },
  );
}

const gauge = (body: string, name: string): string | undefined =>
  new RegExp(`^intentwatch_route_${name}\\{route="base-to-optimism"\\} (.*)$`, 'm').exec(body)?.[1];

async function metricsOf(daemon: { url: string }): Promise<string> {
  return (await fetch(`${daemon.url}/metrics`)).text();
}

describe('a route at the sandbox', () => {
  test('is reported as available, moved, unavailable and available again, and by a restart not at all', async () => {
    const sandbox = await started(newSandbox({ transfersPerSecond: 0 }));
    const hook = await started(new TestReceiver());
    const setup = { baseUrl: sandbox.url, quotesUrl: sandbox.quotesUrl, hook };
    const first = await startOn(setup);

    await hook.until((events) => events.length === 1);
    const before = await eventually('the price at /metrics', async () => {
      const body = await metricsOf(first.daemon);
      return gauge(body, 'solvers') === '3' && body;
    });
    sandbox.setMarket({ extraFee: 0.001 });
    await polls(first.signals, 2, ({ outcome }) => outcome === 'answered');
    sandbox.setMarket({ extraFee: 0.02 });
    await hook.until((events) => events.length === 2);
    sandbox.setMarket({ solvers: 0 });
    await hook.until((events) => events.length === 3);
    const without = await eventually('no solvers at /metrics', async () => {
      const body = await metricsOf(first.daemon);
      return gauge(body, 'solvers') === '0' && body;
    });
    sandbox.setMarket({ solvers: 2, extraFee: 0 });
    await hook.until((events) => events.length === 4);
    await first.daemon.close();

    const second = await startOn({ ...setup, prefix: first.prefix });
    const third = await startOn({ ...setup, prefix: first.prefix });
    await Promise.race(
      [second, third].map(({ signals }) => polls(signals, 2, ({ outcome }) => outcome === 'answered')),
    );
    const after = await Promise.all([second, third].map(async ({ daemon }) => metricsOf(daemon)));

    expect(hook.events.map(facts)).toEqual([
      ['route.available', 1, '99940000'],
      ['route.moved', 2, '97940000'],
      ['route.unavailable', 3, null],
      ['route.available', 4, '99940000'],
    ]);
    expect(hook.events[1]?.data).toMatchObject({
      subject: { kind: 'route', id: 'route:base-to-optimism' },
      status: 'available',
      previousStatus: 'available',
      subscriptions: ['prices'],
      metadata: { desk: 'fx' },
      wallets: [],
      record: { previousOutput: '99940000', solvers: 3, outputPerInput: '0.9794', movedBy: 0.01 },
    });
    expect(JSON.stringify(hook.events)).not.toContain('encodedRoute');
    expect(gauge(before, 'output_ratio')).toBe('0.9994');
    expect(gauge(without, 'output_ratio')).toBeUndefined();
    expect(gauge(before, 'fee_ratio')).toBe('0.0006');
    expect(gauge(before, 'fill_estimate_seconds')).toBe('25');
    const last = ['solvers', 'output_ratio', 'fee_ratio', 'fill_estimate_seconds'];
    expect(after.map((body) => last.map((name) => gauge(body, name)))).toEqual([
      ['2', '0.9994', '0.0006', '25'],
      ['2', '0.9994', '0.0006', '25'],
    ]);
  });
});

describe('a quoting service in trouble', () => {
  test('makes no event of failures, pages and quotes that cannot be used', async () => {
    const trouble: Scripted[] = [
      { status: 503, body: '{"statusCode":503}' },
      { status: 201, body: '<html>we will be back</html>', headers: { 'content-type': 'text/html' } },
      { status: 201, body: '{"data": [{"quoteID": "quote:1"}]}' },
      { status: 201, body: JSON.stringify({ data: [openEntry('1', { sourceAmount: '7' })] }) },
      { status: 201, body: '{"data": null}' },
    ];
    let left: Scripted[] = [];
    const service = await scripted(() => left.shift() ?? quotes('99000000'));
    const hook = await started(new TestReceiver());
    const routes = routesOf(trouble.length);
    const { signals, daemon } = await startOn({ baseUrl: service.url, quotesUrl: service.url, hook, routes });
    await hook.until((events) => events.length === routes.length);
    left = [...trouble];
    await polls(signals, trouble.length, ({ outcome }) => outcome === 'failed');
    await polls(signals, routes.length * 2, ({ outcome }) => outcome === 'answered');
    expect(hook.events.map(facts)).toEqual(routes.map(() => ['route.available', 1, '99000000']));
    // Of answers without any usable quote too, each quote is counted.
    expect(await metricsOf(daemon)).toContain('intentwatch_records_unreadable_total{kind="route"} 2');
  });

  test('has its readable quotes used, and the rest counted', async () => {
    const body = JSON.stringify({ data: [{ quoteID: 7 }, openEntry('99000000'), openEntry('9'.repeat(90))] });
    const service = await scripted(() => ({ status: 201, body }));
    const hook = await started(new TestReceiver());
    const { daemon } = await startOn({ baseUrl: service.url, quotesUrl: service.url, hook });
    await hook.until((events) => events.length === 1);
    expect(hook.events.map(facts)).toEqual([['route.available', 1, '99000000']]);
    expect(await metricsOf(daemon)).toMatch(/^intentwatch_records_unreadable_total\{kind="route"\} [1-9]/m);
  });

  const SOMEBODY = '0x00000000000000000000000000000000000000aa';
  test.each<[string, object]>([
    ['from another token', { sourceToken: SOMEBODY }],
    ['to another token', { destinationToken: SOMEBODY }],
    ['from another funder', { funder: SOMEBODY }],
    ['to another recipient', { recipient: SOMEBODY }],
    ['to another chain', { finalDestinationChainID: 42161 }],
    ['of an execution that was not requested', { intentExecutionType: 'GASLESS' }],
    ['that has expired', { quoteExpiry: 1_700_000_000 }],
    [
      'in units of other decimals',
      {
        fees: [{ name: 'fee', amount: '1', token: { address: ROUTE_ITEM.destination.token, decimals: 18 } }],
      },
    ],
  ])('takes no price %s for one of the route', async (_, more) => {
    const foreign = openEntry(`120${'0'.repeat(18)}`, more);
    const own = {
      sourceToken: ROUTE_ITEM.source.token.toUpperCase().replace('0X', '0x'),
      quoteExpiry: 4_102_444_800,
    };
    let output = '99000000';
    const service = await scripted(() => ({
      status: 201,
      body: JSON.stringify({ data: [foreign, openEntry(output, own)] }),
    }));
    const hook = await started(new TestReceiver());
    const { daemon } = await startOn({ baseUrl: service.url, quotesUrl: service.url, hook });
    await hook.until((events) => events.length === 1);
    output = '90000000';
    await hook.until((events) => events.length === 2);
    expect(hook.events.map(facts)).toEqual([
      ['route.available', 1, '99000000'],
      ['route.moved', 2, '90000000'],
    ]);
    expect(hook.events[0]?.data.record.solvers).toBe(1);
    expect(await metricsOf(daemon)).toMatch(/^intentwatch_records_unreadable_total\{kind="route"\} [1-9]/m);
  });

  test('that requests a pause gets it, and the transfers are requested meanwhile', async () => {
    const answers: Scripted[] = [];
    const steps: string[] = [];
    const service = await scripted(() => {
      steps.push('requested a quote');
      return answers.shift() ?? quotes('99000000');
    });
    const hook = await started(new TestReceiver());
    const { signals } = await startDaemonWithBoth(service, hook);
    await hook.until((events) => events.length === 1);
    signals.on('upstream.paused', ({ endpointGroup }) => steps.push(`${endpointGroup} paused`));
    signals.on('poll.ended', ({ endpointGroup }) => steps.push(endpointGroup));
    answers.push({ status: 429, body: '{}', headers: { 'retry-after': '3' } }, quotes());
    await hook.until((events) => events.length === 2);
    const from = steps.indexOf('quotes paused');
    const since = steps.slice(from + 1);
    const meanwhile = since.slice(0, since.indexOf('requested a quote'));
    expect(hook.events.map(facts)).toEqual([
      ['route.available', 1, '99000000'],
      ['route.unavailable', 2, null],
    ]);
    expect(steps.filter((step) => step.endsWith(' paused'))).toEqual(['quotes paused']);
    await eventually('the transfers are requested', () => steps.indexOf('status', from) > from);
    // The request that was answered with a wait, if its end is reported after the pause.
    expect(meanwhile.filter((endpointGroup) => endpointGroup === 'quotes').length).toBeLessThanOrEqual(1);
  });

  test('that refuses the request is no route that cannot be had', async () => {
    let refuses = false;
    const refusal = { statusCode: 400, createdBy: 'ValidationFilter', validationErrors: [] };
    const service = await scripted(() =>
      refuses ? { status: 400, body: JSON.stringify(refusal) } : quotes('99000000'),
    );
    const hook = await started(new TestReceiver());
    const { daemon, signals } = await startOn({ baseUrl: service.url, quotesUrl: service.url, hook });
    await hook.until((events) => events.length === 1);
    refuses = true;
    const failed = signalled<SignalMap['poll.ended'][0]>(
      (take) => signals.on('poll.ended', take),
      ({ outcome }) => outcome === 'failed',
    );
    await failed;
    const body = await metricsOf(daemon);
    expect(body).toMatch(/requests_total\{endpoint="open-quotes",outcome="invalid-request"\} [1-9]/);
    expect(hook.events.map(facts)).toEqual([['route.available', 1, '99000000']]);
  });

  test('that is out is reported to the operator, as an endpoint group of its own', async () => {
    let out = false;
    const service = await scripted(() => (out ? { status: 502, body: '' } : quotes('99000000')));
    const hook = await started(new TestReceiver());
    const routes = routesOf(6);
    const events = ['*', 'upstream.*'];
    await startOn({ baseUrl: service.url, quotesUrl: service.url, hook, events, routes });
    await hook.until((all) => all.length === routes.length);
    out = true;
    await hook.until((all) => all.length === routes.length + 1);
    out = false;
    await hook.until((all) => all.length === routes.length + 2);
    expect(hook.events.slice(routes.length).map(({ type, data }) => [type, data.subject.id])).toEqual([
      ['upstream.unreachable', 'upstream:quotes'],
      ['upstream.reachable', 'upstream:quotes'],
    ]);
  });
});

async function startDaemonWithBoth(service: ScriptedUpstream, hook: TestReceiver) {
  const baseUrl = service.url;
  const { daemon, signals } = await startDaemon({
    baseUrl,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url } },
    subscriptions: [
      { name: 'prices', routes: [ROUTE_ITEM], receivers: ['hook'] },
      { name: 'orders', wallets: ['0x52908400098527886e0f7030069857d2e4169ee7'], receivers: ['hook'] },
    ],
    more: {
      upstream: {
        baseUrl,
        quotesUrl: baseUrl,
        apiKey: 'sandbox-key',
        requestsPerSecond: 50,
        quotesRequestsPerSecond: 50,
      },
    },
  });
  later(() => daemon.close());
  return { daemon, signals };
}
