import { describe, expect, inject, test } from 'vitest';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { HeldUp } from '../support/held-up.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, type Scripted, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const HASHES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(hashOf);

describe('an upstream that refuses', () => {
  test('the key, with 401 or a bare 403, is requested rarely, reported once, and so is its change of mind', async () => {
    const refusal: Scripted[] = [
      { status: 401, body: '{"code":"invalid-api-key","status":401}' },
      { status: 403, body: '{"Message":"User is not authorized to access this resource"}' },
    ];
    let refusals = 0;
    let refusedSinceReported = 0;
    const hook = await started(new TestReceiver());
    const upstream = await started(
      new ScriptedUpstream(({ query }) => {
        // The first probe after the event is refused as well; the second one finds that the upstream has changed.
        const reported = hook.events.length > 0;
        if (reported && refusedSinceReported > 0) {
          return { records: [intentRecord(query.intentHash ?? '', 'pending', 1_700_000_000)] };
        }
        refusals += 1;
        if (reported) refusedSinceReported += 1;
        return refusal[refusals % 2] ?? { records: [] };
      }),
    );
    const { daemon } = await startDaemon({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url, more: { events: ['*', 'upstream.*'] } } },
      subscriptions: [{ name: 's', intents: HASHES, receivers: ['hook'] }],
    });
    later(() => daemon.close());
    const events = await hook.until((all) => all.length === HASHES.length + 2);

    // All ten may be in flight when the first refusal comes; after it, probes are rare.
    expect(refusals).toBeLessThanOrEqual(HASHES.length + 2);
    const operator = events.filter((event) => event.type.startsWith('upstream.'));
    expect(operator.map(({ type, data }) => [type, data.previousStatus])).toEqual([
      ['upstream.unauthorized', 'ok'],
      ['upstream.authorized', 'unauthorized'],
    ]);
  });

  test.each([
    [
      'a path that takes no key',
      '{"Message":"User is not authorized to access this resource"}',
      /upstream\.gateway and baseUrl/,
    ],
    [
      'a path that takes no key, with a code',
      '{"code":"permission-denied","status":403}',
      /permission-denied/,
    ],
    ['everything, by a page in between', '<html>403 Forbidden</html>', /<html>/],
  ])('%s, does not refuse the key', async (name, body, reason) => {
    const isKeyed = name.startsWith('everything');
    const hook = await started(new TestReceiver());
    const upstream = await started(
      new ScriptedUpstream(({ query }) => {
        if (hook.events.length === 0) return { status: 403, body };
        if (query.intentHash) return { records: [intentRecord(query.intentHash, 'pending', 1_700_000_000)] };
        return { status: 200, body: '{"data":{"state":"PENDING"}}' };
      }),
    );
    const vaults = HASHES.slice(0, 3).map((hash) => ({ address: `0x${hash.slice(26)}`, chainId: 10 }));
    const watched = isKeyed ? { intents: HASHES.slice(0, 3) } : { vaults };
    const { daemon } = await startDaemon({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url, more: { events: ['*', 'upstream.*'] } } },
      subscriptions: [{ name: 's', ...watched, receivers: ['hook'] }],
    });
    later(() => daemon.close());
    const events = await hook.until((all) => all.some(({ type }) => type.endsWith('.pending')));
    const endpointGroup = isKeyed ? 'status' : 'gateway';
    expect(events[0]).toMatchObject({
      type: 'upstream.unreachable',
      data: { record: { endpointGroup, reason: expect.stringMatching(reason) } },
    });
    await hook.until((all) => all.some(({ type }) => type === 'upstream.reachable'));
    expect(hook.events.map(({ type }) => type)).not.toContain('upstream.unauthorized');
  });

  test('names in log and event the details for a support ticket', async () => {
    const support = {
      requestId: 'req-42',
      legacyCode: '1203',
      instance: '/requests/42',
      title: 'Key revoked',
    };
    const problem = { type: 'about:blank', status: 401, code: 'invalid-api-key', ...support };
    const upstream = await started(
      new ScriptedUpstream(() => ({ status: 401, body: JSON.stringify(problem) })),
    );
    const hook = await started(new TestReceiver());
    const lines: string[] = [];
    const { daemon } = await startDaemon(
      {
        baseUrl: upstream.url,
        redisUrl: inject('redisUrl'),
        prefix: testPrefix(),
        receivers: { hook: { url: hook.url, more: { events: ['upstream.*'] } } },
        subscriptions: [{ name: 's', intents: HASHES, receivers: ['hook'] }],
      },
      (line) => lines.push(line),
    );
    later(() => daemon.close());
    const [event] = await hook.until((all) => all.length === 1);
    expect(event?.data.record).toMatchObject({ endpointGroup: 'status', ...support });
    const logged = lines.map((line): { msg: string } => JSON.parse(line));
    expect(logged.find(({ msg }) => msg === 'upstream.moved')).toMatchObject(support);
    expect(logged.find(({ msg }) => msg === 'poll.failed')).toMatchObject(support);
  });

  test('one transfer and no other is requested for it more and more rarely, without an operator event', async () => {
    const refused = HASHES[0];
    const requests: string[] = [];
    const upstream = await started(
      new ScriptedUpstream(({ query }) => {
        const hash = query.intentHash ?? '';
        requests.push(hash);
        if (hash === refused) return { status: 403, body: '{"code":"permission-denied","status":403}' };
        return { records: [intentRecord(hash, 'pending', 1_700_000_000)] };
      }),
    );
    const hook = await started(new TestReceiver());
    const { daemon } = await startDaemon({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url, more: { events: ['*', 'upstream.*'] } } },
      subscriptions: [{ name: 's', intents: HASHES, receivers: ['hook'] }],
    });
    later(() => daemon.close());
    const times = (hash: string | undefined): number => requests.filter((one) => one === hash).length;
    const others = HASHES.slice(1);
    const leastOfOthers = (): number => Math.min(...others.map(times));
    while (times(refused) < 3 || leastOfOthers() < 5) await upstream.awaitRequest(() => true);
    // A webhook may come twice.
    expect([...new Set(hook.events.map(({ data }) => data.subject.id))].sort()).toEqual(
      others.map((hash) => `intent:${hash}`).sort(),
    );
    expect(times(refused)).toBeLessThan(leastOfOthers());
  });

  test.each([
    ['with Retry-After', { 'retry-after': '3' }, 3_000],
    ['without Retry-After', {}, 1_000],
  ])('for too many requests, %s, gets none for that time from any worker', async (_, headers, pauseMs) => {
    const times: number[] = [];
    let refusedAtMs: number | null = null;
    const upstream = await started(
      new ScriptedUpstream(({ query }) => {
        times.push(performance.now());
        if (times.length === 30) {
          refusedAtMs = performance.now();
          return { status: 429, body: '{"message":"Too Many Requests"}', headers };
        }
        return { records: [intentRecord(query.intentHash ?? '', 'pending', 1_700_000_000)] };
      }),
    );
    const hook = await started(new TestReceiver());
    const machine = await started(new HeldUp(inject('redisUrl')));
    const config = {
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', intents: HASHES, receivers: ['hook'] }],
    };
    for (const { daemon } of [await startDaemon(config), await startDaemon(config)])
      later(() => daemon.close());
    while (refusedAtMs === null) await upstream.awaitRequest(() => true);
    const refusedAt: number = refusedAtMs;
    while (!times.some((at) => at > refusedAt + pauseMs)) await upstream.awaitRequest(() => true);

    // Requests in flight at the refusal are not stopped; after that, none is sent until the end of the pause.
    const lateMs = 250 + 4 * machine.mostMs;
    const during = times.filter((at) => at > refusedAt + lateMs && at < refusedAt + pauseMs - 100);
    expect(during).toEqual([]);
  });
});
