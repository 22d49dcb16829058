import { describe, expect, inject, test } from 'vitest';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, type Scripted, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const HASHES = [1, 2, 3, 4, 5, 6, 7, 8].map(hashOf);
const VAULT = '0x3333333333333333333333333333333333333333';

describe('an upstream that is out', () => {
  test('is reported once, with its end, and no transfer is reported as failed meanwhile', async () => {
    let out = false;
    const broken: Scripted[] = [
      { status: 504, body: '<html>gateway timeout</html>' },
      { status: 200, body: '<html>we will be back</html>', headers: { 'content-type': 'text/html' } },
      { status: 200, body: '{"results": [{"id": "int' },
    ];
    let turn = 0;
    const upstream = await started(
      new ScriptedUpstream(({ query }) => {
        turn += 1;
        if (out) return broken[turn % broken.length] ?? { records: [] };
        return { records: [intentRecord(query.intentHash ?? '', 'pending', 1_700_000_000)] };
      }),
    );
    const [hook, operator] = [await started(new TestReceiver()), await started(new TestReceiver())];
    const { daemon } = await startDaemon({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: {
        hook: { url: hook.url },
        operator: { url: operator.url, more: { events: ['upstream.*'] } },
      },
      subscriptions: [{ name: 's', intents: HASHES, receivers: ['hook'] }],
    });
    later(() => daemon.close());
    await hook.until((events) => events.length === HASHES.length);
    out = true;
    await operator.until((events) => events.length === 1);
    const requestsAtStart = upstream.requests.length;
    const probed = upstream.awaitRequest(() => true);
    await probed;
    const requestsWhileOut = upstream.requests.length - requestsAtStart;
    out = false;
    await operator.until((events) => events.length === 2);

    expect(operator.events.map(({ type, data }) => [type, data.subject.id, data.sequence])).toEqual([
      ['upstream.unreachable', 'upstream:status', 1],
      ['upstream.reachable', 'upstream:status', 2],
    ]);
    expect(requestsWhileOut).toBeLessThanOrEqual(2);
    expect(hook.events.map((event) => event.type)).toEqual(HASHES.map(() => 'intent.pending'));
  });
});

describe('a slow upstream', () => {
  const AT_ONCE = 150;

  test('is requested as much at once as the budget starts meanwhile', async () => {
    const allOpen = Promise.withResolvers<void>();
    let open = 0;
    const upstream = await started(
      new ScriptedUpstream(async ({ query }) => {
        open += 1;
        if (open === AT_ONCE) allOpen.resolve();
        await allOpen.promise;
        return { records: [intentRecord(query.intentHash ?? '', 'pending', 1_700_000_000)] };
      }),
    );
    const hook = await started(new TestReceiver());
    const { daemon } = await startDaemon({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url } },
      subscriptions: [
        { name: 's', intents: Array.from({ length: AT_ONCE }, (_, at) => hashOf(at)), receivers: ['hook'] },
      ],
      more: {
        upstream: { baseUrl: upstream.url, apiKey: 'sandbox-key', requestsPerSecond: 100, timeout: '5m' },
      },
    });
    later(() => daemon.close());
    await allOpen.promise;
    await hook.until((events) => events.length === AT_ONCE);
    expect(upstream.requests.length).toBeGreaterThanOrEqual(AT_ONCE);
  });
});

describe('a deposit gateway behind a wrong path', () => {
  test('is reported as unreachable, and never makes an unknown vault of one that is known', async () => {
    let wrong = false;
    const upstream = await started(
      new ScriptedUpstream(() =>
        wrong
          ? { status: 404, body: '<html>not found</html>', headers: { 'content-type': 'text/html' } }
          : { status: 200, body: JSON.stringify({ data: { vaultAddress: VAULT, state: 'PENDING' } }) },
      ),
    );
    const hook = await started(new TestReceiver());
    const { daemon } = await startDaemon({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url, more: { events: ['*', 'upstream.*'] } } },
      subscriptions: [1, 2, 3].map((chainId) => ({
        name: `s${chainId}`,
        vaults: [{ address: VAULT, chainId }],
        receivers: ['hook'],
      })),
      more: { polling: { confirmAfter: '1s' } },
    });
    later(() => daemon.close());
    await hook.until((events) => events.length === 3);
    wrong = true;
    const events = await hook.until((all) => all.length === 4);
    expect(events.map((event) => event.type)).toEqual([
      'vault.pending',
      'vault.pending',
      'vault.pending',
      'upstream.unreachable',
    ]);
  });
});
