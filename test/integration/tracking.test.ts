import { describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { account } from '../../demo/account.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { startDaemon, type TestConfig, TestReceiver, testPrefix } from '../support/daemon.ts';
import { newSandbox } from '../support/deployment.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, upstreamOfStatuses } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const OWNER = '0x52908400098527886e0f7030069857d2e4169ee7';
const USDC_BASE = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const USDC_OPTIMISM = '0x0b2c639c533813f4aa9d7837caf62653d097ff85';
const UUID = '3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41';
const [ONE, TWO] = [hashOf(1), hashOf(2)];

const QUOTE = z.looseObject({ id: z.string(), intentHash: z.string() });

async function call(
  url: string,
  body?: object,
  method = body === undefined ? 'DELETE' : 'POST',
): Promise<{ status: number; body: unknown }> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: JSON_TYPE };
  const answer = await fetch(url, { method, ...sent });
  return { status: answer.status, body: await answer.json() };
}

/** Metadata of 4,097 bytes as JSON, each of its members within the limit of characters. */
const TOO_LARGE = { a: 'é'.repeat(1_000), b: 'é'.repeat(1_000), c: 'x'.repeat(77) };

const JSON_TYPE = { 'content-type': 'application/json' };

async function stage(changes: Partial<TestConfig> = {}) {
  const statuses = new Map([[ONE, 'pending']]);
  const upstream = await started(upstreamOfStatuses(statuses));
  const [hook, other] = [await started(new Hook()), await started(new Hook())];
  const config: TestConfig = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { backend: { url: hook.url }, oncall: { url: other.url } },
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [ONE], metadata: { desk: 'a' } }],
    ...changes,
  };
  return { statuses, upstream, hook, other, config };
}

describe('a transfer that is tracked right after its quote', () => {
  test('is reported in every state that an answer showed, with its metadata, before and after it is indexed', async () => {
    const sandbox = await started(newSandbox({ seed: 4, timeScale: 10, transfersPerSecond: 0 }));
    const hook = await started(new TestReceiver());
    const { daemon } = await startDaemon({
      baseUrl: sandbox.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url } },
      // All watched subjects are tracked through the API.
      subscriptions: [],
    });
    later(() => daemon.close());
    const fault = await fetch(`${sandbox.controlUrl}/faults`, {
      method: 'POST',
      headers: JSON_TYPE,
      body: JSON.stringify({ type: 'not-indexed', rate: 0.5 }),
    });
    expect(fault.ok).toBe(true);

    const quotes: z.infer<typeof QUOTE>[] = [];
    for (let index = 0; index < 5; index += 1) {
      const answer = await fetch(`${sandbox.url}/v1/quotes`, {
        method: 'POST',
        headers: { ...JSON_TYPE, 'x-api-key': sandbox.apiKey },
        body: JSON.stringify({
          type: 'exact-in',
          dappId: 'test',
          slippage: 0.005,
          source: { chainId: 8453, token: USDC_BASE, funder: OWNER, amount: '100000000' },
          destination: { chainId: 10, token: USDC_OPTIMISM, recipient: OWNER },
        }),
      });
      const quote = QUOTE.parse(await answer.json());
      const wish = { quote, metadata: { order: String(index) }, receivers: ['hook'] };
      expect(await call(`${daemon.url}/api/v1/subjects`, wish)).toEqual({
        status: 201,
        body: { subject: quote.id, created: true },
      });
      expect(await call(`${daemon.url}/api/v1/subjects`, wish)).toEqual({
        status: 200,
        body: { subject: quote.id, created: false },
      });
      await call(`${sandbox.controlUrl}/fund`, { quoteId: quote.id });
      quotes.push(quote);
    }
    await eventually('all transfers have ended', () => sandbox.pace().livingTransfers === 0);
    const subjects = new Map(
      quotes.flatMap(({ id, intentHash }, index) => [
        [id, String(index)],
        [`intent:${intentHash.toLowerCase()}`, String(index)],
      ]),
    );
    const ends = new Map(sandbox.transitions().map(({ subject, to }) => [subject, to]));
    await hook.until((events) =>
      [...subjects.keys()].every((subject) =>
        events.some(({ data }) => data.subject.id === subject && data.status === ends.get(subject)),
      ),
    );
    await daemon.stopPolling();
    const sums = account({
      transitions: sandbox.transitions(),
      showings: sandbox.showings(),
      events: hook.events,
      isWatched: (subject) => subjects.has(subject),
      rules: { slackMs: 2_000 },
    });
    expect(sums.problems).toEqual([]);
    expect(sums.unsettled).toEqual([]);
    for (const { data } of hook.events) {
      expect(data.metadata).toEqual({ order: subjects.get(data.subject.id) });
      expect(data.subscriptions).toEqual([]);
    }
    expect(hook.events.map(({ type }) => type)).toContain('quote.submitted');
    expect(hook.events.map(({ type }) => type)).toContain('intent.settled');
  });
});

describe('POST /subjects', () => {
  const WALLET = OWNER;

  test.each([
    [{ kind: 'wallet', id: WALLET.toUpperCase().replace('0X', '0x') }, `wallet:${WALLET}`],
    [{ kind: 'intent', id: TWO.toUpperCase().replace('0X', '0x') }, `intent:${TWO}`],
    [{ kind: 'source-tx', id: TWO }, `by-tx:source:${TWO}`],
    [{ kind: 'destination-tx', id: TWO }, `by-tx:destination:${TWO}`],
    [{ kind: 'quote', id: UUID }, `quote:${UUID}`],
    [{ kind: 'gasless', id: UUID }, `gasless:${UUID}`],
    [{ kind: 'gasless', id: 'job.7', endpoint: 'gateway' }, 'gasless:gateway:job.7'],
    [{ kind: 'vault', id: WALLET, chainId: 8453 }, `vault:8453:${WALLET}`],
    [{ quote: { id: `quote:${UUID}` } }, `quote:${UUID}`],
  ])('%j is tracked as %s', async (named, subject) => {
    const { config } = await stage();
    const { daemon } = await startDaemon(config);
    later(() => daemon.close());
    const url = `${daemon.url}/api/v1/subjects`;
    const wish = { ...named, receivers: ['backend'] };
    expect(await call(url, wish)).toEqual({ status: 201, body: { subject, created: true } });
    expect(await call(url, wish)).toEqual({ status: 200, body: { subject, created: false } });
    expect(await call(`${url}/${encodeURIComponent(subject)}`)).toEqual({ status: 200, body: { subject } });
    expect(await call(`${url}/${encodeURIComponent(subject)}`)).toMatchObject({ status: 404 });
  });

  test('names the mistake in a body', async () => {
    const { config } = await stage();
    const { daemon } = await startDaemon(config);
    later(() => daemon.close());
    const wrong: [object, string][] = [
      [{ receivers: ['backend'] }, 'body.kind: expected one of wallet, intent'],
      [{ kind: 'intent', id: '0x12', receivers: ['backend'] }, 'body.id: expected an intent hash'],
      [{ kind: 'intent', receivers: ['backend'] }, 'body.id: expected an intent hash'],
      [{ kind: 'vault', id: WALLET, receivers: ['backend'] }, 'body.chainId: expected the chain'],
      [{ kind: 'intent', id: TWO, chainId: 1, receivers: ['backend'] }, 'body.chainId: expected none'],
      [{ kind: 'wallet', quote: { id: 'x' }, receivers: ['backend'] }, 'body.kind: expected "quote"'],
      [{ quote: { id: 'x' }, receivers: ['backend'] }, 'body.quote: found an id "x", expected a quote'],
      [
        { kind: 'intent', id: TWO, receivers: ['nobody'] },
        'found nobody, expected receivers that exist (backend, oncall)',
      ],
      [{ kind: 'intent', id: TWO, receivers: 'backend' }, 'a list of receiver names'],
      [
        { kind: 'intent', id: TWO },
        'found none, expected who is notified (backend, oncall), or [] for nobody',
      ],
      [{ kind: 'intent', id: TWO, receivers: ['backend'], overdueAfter: 'soon' }, 'a duration from 1s'],
      [{ kind: 'intent', id: TWO, receivers: ['backend'], metadata: { a: 1 } }, 'text'],
      [
        { kind: 'intent', id: TWO, receivers: ['backend'], metadata: TOO_LARGE },
        'at most 4096 bytes of metadata',
      ],
      [{ kind: 'intent', id: TWO, receivers: ['backend'], more: 1 }, 'none of this name'],
    ];
    for (const [body, detail] of wrong) {
      expect(await call(`${daemon.url}/api/v1/subjects`, body)).toMatchObject({
        status: 400,
        body: { detail: expect.stringContaining(detail) },
      });
    }
    // Not dropped silently: JSON.parse makes a member of that name.
    const named: unknown = JSON.parse('{ "__proto__": "1042" }');
    expect(
      await call(`${daemon.url}/api/v1/subjects`, {
        kind: 'intent',
        id: TWO,
        receivers: ['backend'],
        metadata: named,
      }),
    ).toMatchObject({
      status: 400,
      body: { detail: 'found a member "__proto__", expected another name' },
    });
    for (const broken of [{ desk: 'a\ud800b' }, { 'k\udc00': 'v' }]) {
      expect(
        await call(`${daemon.url}/api/v1/subjects`, {
          kind: 'intent',
          id: TWO,
          receivers: ['backend'],
          metadata: broken,
        }),
      ).toMatchObject({
        status: 400,
        body: { detail: expect.stringContaining('found a text with half of a surrogate pair') },
      });
    }
    const latin = await fetch(`${daemon.url}/api/v1/subjects`, {
      method: 'POST',
      headers: JSON_TYPE,
      body: Buffer.from('{ "kind": "caf\u00e9" }', 'latin1'),
    });
    expect([latin.status, await latin.json()]).toMatchObject([
      400,
      { detail: 'found bytes that are no UTF-8, expected JSON' },
    ]);
  });
});

describe('a subject tracked by itself', () => {
  test('has metadata, receivers and overdueAfter of its own, which another call replaces', async () => {
    const { config, statuses, hook, other } = await stage();
    const { daemon } = await startDaemon(config);
    later(() => daemon.close());
    await hook.until((came) => came.length === 1);
    const url = `${daemon.url}/api/v1/subjects`;
    // Known already: its known state is reported as if it were the first poll.
    const wish = { kind: 'intent', id: ONE, receivers: ['oncall'], metadata: { desk: 'b', order: '1' } };
    await call(url, { ...wish, overdueAfter: '1s' });
    await other.until((came) => came.length === 2);
    expect(other.came.map(({ event }) => event.type).sort()).toEqual(['intent.overdue', 'intent.pending']);
    expect(other.came[0]?.event.data.metadata).toEqual({ desk: 'b', order: '1' });
    expect(hook.came).toHaveLength(1);

    expect(await call(url, { ...wish, receivers: ['backend'] })).toMatchObject({ status: 200 });
    statuses.set(ONE, 'filled');
    await hook.until((came) => came.length === 2);
    // Beside the subscription of the config, and merged behind it.
    expect(hook.came[1]?.event.data).toMatchObject({
      subscriptions: ['orders'],
      metadata: { desk: 'b', order: '1' },
    });
    expect(other.came).toHaveLength(2);
  });

  test('stays through reloads and restarts, and ends when it is reported to', async () => {
    const { config, statuses, hook } = await stage();
    const first = await reloadable(config, { later });
    await call(`${first.daemon.url}/api/v1/subjects`, { kind: 'intent', id: TWO, receivers: ['backend'] });
    statuses.set(TWO, 'pending');
    await hook.until((came) => came.length === 2);
    const redis = connect({ kind: 'server', url: inject('redisUrl') });
    later(() => disconnect(redis));
    const keys = new Keys(config.prefix);
    const since = await redis.hget(keys.wanted, `~|intent:${TWO}`);
    await first.write({
      ...config,
      subscriptions: [{ name: 'others', receivers: ['backend'], intents: [ONE] }],
    });
    expect(await first.daemon.reload()).toMatchObject({ ok: true });
    await first.daemon.close();
    expect(since).not.toBeNull();
    expect(await redis.hget(keys.wanted, `~|intent:${TWO}`)).toBe(since);

    const second = await startDaemon(config);
    later(() => second.daemon.close());
    statuses.set(TWO, 'filled');
    const about = (hash: string) =>
      hook.came.filter(({ event }) => event.data.subject.id === `intent:${hash}`);
    await hook.until(() => about(TWO).length === 2);
    expect(about(TWO).map(({ event }) => event.type)).toEqual(['intent.pending', 'intent.filled']);

    expect(await call(`${second.daemon.url}/api/v1/subjects/intent:${TWO}`)).toMatchObject({ status: 200 });
    await eventually('it is removed from the schedule', async () => {
      return (await redis.hexists(`${keys.plan('status')}:items`, `intent:${TWO}`)) === 0;
    });
    expect(await redis.hkeys(keys.wanted)).toEqual([`orders|intent:${ONE}`]);
    statuses.set(TWO, 'settled');
    statuses.set(ONE, 'filled');
    await hook.until(() => about(ONE).some(({ event }) => event.type === 'intent.filled'));
    expect(about(TWO)).toHaveLength(2);
  });

  test('is reported as lost with a Redis that was emptied', async () => {
    const server = await RedisProcess.create();
    later(() => server.close());
    const { config, hook } = await stage({ redisUrl: server.url });
    const first = await startDaemon(config);
    await hook.until((came) => came.length === 1);
    await call(`${first.daemon.url}/api/v1/subjects`, { kind: 'intent', id: TWO, receivers: ['backend'] });
    await first.daemon.close();
    // Its first check finds it.
    const { lines } = await reloadable(config, { later });
    const redis = connect({ kind: 'server', url: server.url });
    later(() => disconnect(redis));
    await redis.flushall();
    await eventually('it is logged', () => lines.some(({ msg }) => msg === 'tracked.lost'));
    expect(lines.find(({ msg }) => msg === 'tracked.lost')).toMatchObject({ level: 50, subjects: 1 });
  });

  test.each([
    ['the list of wanted subjects', false],
    ['the list of wanted subjects, with the plan,', true],
  ])('is wanted again where %s was lost', async (_, withPlan) => {
    const { config, statuses, hook } = await stage();
    const { daemon } = await startDaemon(config);
    later(() => daemon.close());
    await call(`${daemon.url}/api/v1/subjects`, { kind: 'intent', id: TWO, receivers: ['backend'] });
    statuses.set(TWO, 'pending');
    await hook.until((came) => came.length === 2);
    const redis = connect({ kind: 'server', url: inject('redisUrl') });
    later(() => disconnect(redis));
    const keys = new Keys(config.prefix);
    const plan = await redis.keys(`${keys.plan('status')}*`);
    await redis.del(keys.wanted, ...(withPlan ? plan : []));
    // A subject is wanted again before the loss is noticed.
    await call(`${daemon.url}/api/v1/subjects`, { kind: 'intent', id: hashOf(3), receivers: ['backend'] });
    await eventually('all is wanted again', async () => (await redis.hlen(keys.wanted)) === 3);
    statuses.set(ONE, 'filled');
    statuses.set(TWO, 'filled');
    await eventually('both are reported', () =>
      [ONE, TWO].every((hash) =>
        hook.came.some(
          ({ event: { type, data } }) => type === 'intent.filled' && data.subject.id === `intent:${hash}`,
        ),
      ),
    );
  });

  test.each([
    ['another part of that check', (keys: Keys) => `${keys.checks}:counts`],
    ['the sync of that plan', (keys: Keys) => keys.configFence],
  ])('is polled again where its plan was lost, also when %s fails at first', async (_, brokenKey) => {
    const { config, statuses, hook } = await stage();
    const lines: string[] = [];
    const { daemon } = await startDaemon(config, (line) => lines.push(line));
    later(() => daemon.close());
    await hook.until((came) => came.length === 1);
    const redis = connect({ kind: 'server', url: inject('redisUrl') });
    later(() => disconnect(redis));
    const keys = new Keys(config.prefix);
    const broken = brokenKey(keys);
    await redis.set(broken, 'of another type');
    await redis.del(await redis.keys(`${keys.plan('status')}*`));
    await eventually('the check fails', () => lines.some((line) => line.includes('reconcile.error')));
    await redis.del(broken);
    statuses.set(ONE, 'filled');
    await hook.until((came) => came.some(({ event: { type } }) => type === 'intent.filled'));
  });
});
