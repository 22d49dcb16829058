import { describe, expect, test } from 'vitest';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { connect } from '../../src/store/connection.ts';
import { withTimeout } from '../../src/with-timeout.ts';
import type { ChildDaemon } from '../support/child-daemon.ts';
import { TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { RedisNode } from '../support/redis-node.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const { later, started, child } = opening();

const INTENTS = Array.from({ length: 5 }, (_, index) => hashOf(index + 1));

/** Timeout of a test for steps that take up to 15 s on a quiet machine. */
const SOON_MS = 120_000;

async function opened(node: Promise<RedisNode>): Promise<RedisNode> {
  const running = await node;
  later(() => running.close());
  return running;
}

/** A daemon in a process of its own that polls five pending intents, and the views of it. */
async function watching(redisUrl: string): Promise<{
  daemon: ChildDaemon;
  /** Resolves with the ms until the next request to the upstream. */
  polled: () => Promise<number>;
  /** Lets all intents be filled; resolves with the ids of the intents reported as filled. */
  fill: () => Promise<string[]>;
  call: (path: string) => Promise<{ status: number; body: string }>;
}> {
  let status = 'pending';
  const upstream = await started(
    new ScriptedUpstream(({ query }) => ({
      records: query.intentHash ? [intentRecord(query.intentHash, status, 1_700_000_000)] : [],
    })),
  );
  const hook = await started(new TestReceiver());
  const daemon = child({
    baseUrl: upstream.url,
    redisUrl,
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url } },
    subscriptions: [{ name: 's', intents: INTENTS, receivers: ['hook'] }],
  });
  await daemon.start();
  const url = String(daemon.lines.find(({ msg }) => msg === 'server.listening')?.url);
  const request = async (path: string): Promise<{ status: number; body: string }> => {
    const answer = await fetch(`${url}${path}`);
    return { status: answer.status, body: await answer.text() };
  };
  await hook.until((events) => new Set(events.map(({ id }) => id)).size === INTENTS.length);
  await eventually('ready', async () => (await request('/readyz')).status === 200);
  return {
    daemon,
    call: request,
    polled: async () => {
      const [startedMs, before] = [performance.now(), upstream.requests.length];
      await eventually('a request to the upstream', () => upstream.requests.length > before);
      return performance.now() - startedMs;
    },
    fill: async () => {
      status = 'filled';
      // Events sent while Redis was away may come again, with the same id.
      const filled = (events: readonly RenderedEvent[]): Map<string, string> =>
        new Map(
          events.flatMap(({ id, type, data }) => (type === 'intent.filled' ? [[id, data.subject.id]] : [])),
        );
      await hook.until((events) => filled(events).size >= INTENTS.length);
      return [...filled(hook.events).values()];
    },
  };
}

type Watching = Awaited<ReturnType<typeof watching>>;

/** State while Redis is away: not ready, alive, and with the metrics of the process itself. */
async function expectAway({ call: request, daemon }: Watching): Promise<void> {
  await eventually('not ready', async () => (await request('/readyz')).status === 503, SOON_MS);
  await eventually('the reason', async () => (await request('/readyz')).body.includes('"Redis is away: '));
  expect((await request('/healthz')).status).toBe(200);
  // They are answered while Redis is away.
  const metrics = await request('/metrics');
  expect(metrics.body).toContain('\nintentwatch_ready 0\n');
  expect(metrics.body).toContain('\nintentwatch_redis_reachable 0\n');
  expect(metrics.body).not.toMatch(/^intentwatch_subjects\{/m);
  await daemon.until((lines) => lines.some(({ msg, role }) => msg === 'redis.away' && role === 'commands'));
}

async function expectBack({ call: request, daemon }: Watching): Promise<void> {
  await eventually('ready again', async () => (await request('/readyz')).status === 200, SOON_MS);
  await eventually('the metric', async () =>
    (await request('/metrics')).body.includes('\nintentwatch_redis_reachable 1\n'),
  );
  await daemon.until((lines) => lines.some(({ msg, role }) => msg === 'redis.back' && role === 'commands'));
}

/** A request comes shortly after the promotion, and all later changes are reported, once. */
async function expectFailover(seen: Watching, old: RedisNode): Promise<void> {
  const tookMs = await seen.polled();
  expect(tookMs).toBeLessThan(SOON_MS);
  await expectBack(seen);
  old.thaw();
  await eventually('the old master follows', async () =>
    (await old.client.info('replication')).includes('role:slave'),
  );
  expect((await seen.fill()).sort()).toEqual(INTENTS.map((hash) => `intent:${hash}`));
  await expectBack(seen);
}

describe('a master that is frozen while its replica takes over', () => {
  test('is replaced, in a Sentinel group', async () => {
    const master = await opened(RedisNode.start());
    const replica = await opened(RedisNode.start({ replicaof: `127.0.0.1 ${master.port}` }));
    await replica.followed();
    const sentinel = await opened(RedisNode.startSentinel('watched', master, 40_000));
    await eventually('the Sentinel has found the replica', async () =>
      JSON.stringify(await sentinel.client.call('SENTINEL', 'REPLICAS', 'watched')).includes(
        `${replica.port}`,
      ),
    );
    const seen = await watching(`redis+sentinel://127.0.0.1:${sentinel.port}/watched`);
    master.freeze();
    later(async () => master.thaw());
    await expectAway(seen);
    await replica.promoted();
    await expectFailover(seen, master);
  });

  test('is replaced, in a Cluster', async () => {
    const [master, replica] = await Promise.all([
      opened(RedisNode.startClusterNode()),
      opened(RedisNode.startClusterNode()),
    ]);
    await master.client.cluster('ADDSLOTSRANGE', 0, 16_383);
    const busPort = Number((await replica.client.config('GET', 'cluster-port')).at(-1));
    await master.client.cluster('MEET', '127.0.0.1', String(replica.port), String(busPort));
    const id = String(await master.client.cluster('MYID'));
    await eventually('the nodes have met', async () =>
      String(await replica.client.cluster('NODES')).includes(`${id} `),
    );
    await eventually('the replica follows', () =>
      replica.client.cluster('REPLICATE', id).then(
        () => true,
        () => false,
      ),
    );
    await replica.followed();
    await eventually('the Cluster is whole', async () =>
      String(await replica.client.cluster('INFO')).includes('cluster_state:ok'),
    );
    await eventually('the master names its replica', async () =>
      JSON.stringify(await master.client.cluster('SLOTS')).includes(String(replica.port)),
    );
    const seen = await watching(`redis+cluster://127.0.0.1:${master.port}`);
    master.freeze();
    later(async () => master.thaw());
    const frozenMs = performance.now();
    await expectAway(seen);
    // By then every connection has failed: the config names no other node than the frozen one.
    await eventually('12 s have passed', () => performance.now() - frozenMs > 12_000);
    // The decision of the other masters where there are some.
    await replica.client.cluster('FAILOVER', 'TAKEOVER');
    await replica.promoted();
    await expectFailover(seen, master);
  });
});

test('a Sentinel that does not answer is skipped', async () => {
  const master = await opened(RedisNode.start());
  const sentinel = await opened(RedisNode.startSentinel('watched', master, 60_000));
  const silent = await started(new TcpProxy({ host: '127.0.0.1', port: sentinel.port }));
  silent.onRequest = () => 'swallow';
  const hosts = [Number(new URL(silent.url).port), sentinel.port].map((port) => ({
    host: '127.0.0.1',
    port,
  }));
  const redis = connect({ kind: 'sentinel', hosts, group: 'watched', tls: false });
  later(async () => redis.disconnect());
  expect(await withTimeout(redis.ping(), SOON_MS)).toBe('PONG');
});

describe('a server that is gone', () => {
  test('is waited for by a process that lives and is not ready', async () => {
    const server = await RedisProcess.create();
    later(() => server.close());
    const seen = await watching(server.url);
    await server.kill();
    await expectAway(seen);
    await server.start();
    expect(await seen.polled()).toBeLessThan(SOON_MS);
    await expectBack(seen);
    expect((await seen.fill()).sort()).toEqual(INTENTS.map((hash) => `intent:${hash}`));
  });
});

describe('a server that is frozen', () => {
  test('for 20 s is not ready, and is used again when it goes on', async () => {
    const server = await opened(RedisNode.start());
    const seen = await watching(`redis://127.0.0.1:${server.port}`);
    server.freeze();
    later(async () => server.thaw());
    const frozenMs = performance.now();
    await expectAway(seen);
    while (performance.now() - frozenMs < 20_000) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect((await seen.call('/healthz')).status).toBe(200);
      expect((await seen.call('/metrics')).status).toBe(200);
    }
    server.thaw();
    expect(await seen.polled()).toBeLessThan(SOON_MS);
    await expectBack(seen);
    expect((await seen.fill()).sort()).toEqual(INTENTS.map((hash) => `intent:${hash}`));
  });

  test('for 3 s is waited for, without a log line', async () => {
    const server = await opened(RedisNode.start());
    const seen = await watching(`redis://127.0.0.1:${server.port}`);
    later(async () => server.thaw());
    const away = () => seen.daemon.lines.filter(({ msg }) => msg === 'redis.away');
    // A busy machine makes it longer: then the round proves nothing, and is repeated.
    await eventually('it lasted no longer', async () => {
      const before = away().length;
      const frozenMs = performance.now();
      server.freeze();
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      server.thaw();
      const heldMs = performance.now() - frozenMs;
      await seen.polled();
      if (heldMs > 4_000) return false;
      expect(away().slice(before)).toEqual([]);
      return true;
    });
    expect((await seen.fill()).sort()).toEqual(INTENTS.map((hash) => `intent:${hash}`));
  });
});
