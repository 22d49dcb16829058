import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import {
  checkRedis,
  isPersistent,
  type Persistence,
  persistenceWarning,
  readPersistence,
} from '../../src/store/redis-checks.ts';
import { RedisMonitor } from '../../src/store/redis-monitor.ts';
import { startDaemon, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { incompressible } from '../support/incompressible.ts';
import { LimitedRedis, rewriteFile, writeAgain, writeUntilRefused } from '../support/limited-redis.ts';
import { opening } from '../support/opening.ts';
import { freePort } from '../support/port.ts';
import { RedisNode } from '../support/redis-node.ts';
import { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const { later, started } = opening();

/** A tick of the monitor in these tests: a minute becomes 3 s. */
const TICK_MS = 50;

async function node(settings: Record<string, string> = {}): Promise<RedisNode> {
  const running = await RedisNode.start(settings);
  later(() => running.close());
  return running;
}

function connected(port: number): RedisClient {
  const redis = connect({ kind: 'server', url: `redis://127.0.0.1:${port}` });
  later(async () => redis.disconnect());
  return redis;
}

function monitored(
  redis: RedisClient,
  openFresh: () => RedisClient,
): { monitor: RedisMonitor; reported: string[]; persistences: Persistence[]; skewsMs: number[] } {
  const [reported, persistences, skewsMs]: [string[], Persistence[], number[]] = [[], [], []];
  const monitor = new RedisMonitor({
    key: 'some-key',
    openFresh,
    onAway: (role, reason) => reported.push(`${role} away: ${reason}`),
    onBack: (role) => reported.push(`${role} back`),
    onPersistence: (persistence) => persistences.push(persistence),
    onClock: (skewMs) => skewsMs.push(skewMs),
    onRewritten: () => reported.push('rewritten'),
    tickMs: TICK_MS,
  });
  later(async () => monitor.close());
  monitor.watch('commands', redis);
  monitor.start();
  return { monitor, reported, persistences, skewsMs };
}

test('a Redis that refuses every command is away, however often it does', async () => {
  const { client, port } = await node();
  const redis = connected(port);
  const { monitor, reported } = monitored(redis, () => connected(port));
  await eventually('it answers', () => monitor.isReachable());
  await client.call('ACL', 'SETUSER', 'default', 'resetkeys');
  const sending = setInterval(() => void redis.get('other-key').catch(() => undefined), TICK_MS / 10);
  later(async () => clearInterval(sending));
  await eventually('it is away', () => !monitor.isReachable());
  expect(reported).toEqual([expect.stringContaining('NOPERM')]);
  await client.call('ACL', 'SETUSER', 'default', 'allkeys');
  await eventually('it is back', () => monitor.isReachable());
});

describe('the persistence of Redis', () => {
  test.each([
    { settings: { appendonly: 'yes', save: '' }, persistent: true, expected: null },
    { settings: { appendonly: 'yes', save: '60 1' }, persistent: true, expected: null },
    {
      settings: { appendonly: 'no', save: '3600 1 300 100' },
      persistent: true,
      expected: /up to the last 60 minutes/,
    },
    { settings: { appendonly: 'no', save: '90 1' }, persistent: true, expected: /up to the last 90 s/ },
    { settings: { appendonly: 'no', save: '' }, persistent: false, expected: /Redis stores nothing on disk/ },
  ])('is $persistent with $settings', async ({ settings, persistent, expected }) => {
    const { client, port } = await node({ appendonly: 'no' });
    for (const [key, value] of Object.entries(settings)) await client.config('SET', key, value);
    const persistence = await readPersistence(connected(port));
    expect(isPersistent(persistence)).toBe(persistent);
    const warning = persistenceWarning(persistence);
    if (expected === null) expect(warning).toBeNull();
    else expect(warning).toMatch(expected);
    const found = (await checkRedis(connected(port))).map(({ fatal, message }) => [fatal, message]);
    expect(found).toEqual(warning === null ? [] : [[false, warning]]);
  });

  test('is not known where CONFIG is refused and there is no append-only file', async () => {
    const { client, port } = await node({ appendonly: 'no' });
    await client.call('ACL', 'SETUSER', 'default', '-config');
    expect(await readPersistence(connected(port))).toEqual({ kind: 'unknown' });
  });

  test('is checked again and again, and reported when it changes', async () => {
    const { client, port } = await node();
    const redis = connected(port);
    const { monitor, persistences } = monitored(redis, () => connected(port));
    await eventually('the first poll', () => monitor.persistence?.kind === 'append-only');
    await client.config('SET', 'appendonly', 'no');
    await eventually('the next poll', () => monitor.persistence?.kind === 'nothing');
    expect(persistences).toEqual([{ kind: 'nothing' }]);
  });

  test('its clock is watched: when it comes apart from ours, and together again', async () => {
    const server = await node();
    const { monitor, skewsMs } = monitored(connected(server.port), () => connected(server.port));
    await eventually('the clock was read', () => monitor.clockSkewMs !== null);
    const now = vi
      .spyOn(Date, 'now')
      .mockImplementation(() => performance.timeOrigin + performance.now() - 60_000);
    later(async () => now.mockRestore());
    await eventually('they are apart', () => skewsMs.length === 1);
    now.mockRestore();
    await eventually('they are together', () => skewsMs.length === 2);
    expect(skewsMs.map((skewMs) => skewMs > 50_000)).toEqual([true, false]);
  });

  test('is stated by a daemon at its start, by its readiness and by a metric', async () => {
    const server = await node({ appendonly: 'no' });
    const upstream = await started(new ScriptedUpstream(() => ({ records: [] })));
    const lines: string[] = [];
    const { daemon } = await startDaemon(
      {
        baseUrl: upstream.url,
        redisUrl: `redis://127.0.0.1:${server.port}`,
        prefix: testPrefix(),
        receivers: { hook: { url: upstream.url } },
        subscriptions: [{ name: 's', wallets: [`0x${'1'.repeat(40)}`], receivers: ['hook'] }],
      },
      (line) => lines.push(line),
    );
    later(() => daemon.close());
    expect(lines.filter((line) => line.includes('Redis stores nothing on disk'))).toHaveLength(1);
    await eventually('the metric', async () =>
      (await (await fetch(`${daemon.url}/metrics`)).text()).includes('\nintentwatch_redis_persistent 0\n'),
    );
    const ready = await eventually('ready', async () => {
      const answer = await fetch(`${daemon.url}/readyz`);
      return answer.status === 200 && answer.text();
    });
    expect(ready).toContain('it loses all data when it ends');
  });
});

describe('connections that are not answered', () => {
  test('are stuck when fresh ones have been for a minute', async () => {
    const { port } = await node();
    const proxy = await started(new TcpProxy({ host: '127.0.0.1', port }));
    const redis = connect({ kind: 'server', url: proxy.url });
    later(async () => redis.disconnect());
    const { monitor, reported } = monitored(redis, () => connected(port));
    await eventually('reachable', () => monitor.isReachable());
    proxy.onRequest = () => 'swallow';
    await eventually('away', () => !monitor.isReachable());
    expect(monitor.isStuck()).toBe(false);
    await eventually('stuck', () => monitor.isStuck());
    expect(reported.some((line) => /^commands away: no answer/.test(line))).toBe(true);
  });

  test('are pinged only where nothing has come since the last tick', async () => {
    const server = await node();
    const other = connected(server.port);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    later(async () => void vi.useRealTimers());
    const redis = connected(server.port);
    const { monitor } = monitored(redis, () => connected(server.port));
    await redis.echo('answered');
    const pings = async (): Promise<number> => {
      vi.advanceTimersByTime(TICK_MS);
      await redis.echo('answered');
      const stats = await other.info('commandstats');
      return Number(/^cmdstat_exists:calls=(\d+)/m.exec(stats)?.[1]);
    };
    const before = await pings();
    expect(await pings()).toBe(before);
    expect(await pings()).toBe(before);
    expect(monitor.isReachable()).toBe(true);
    vi.advanceTimersByTime(TICK_MS);
    expect(await pings()).toBe(before + 1);
  });

  test('are away where Redis refuses all commands, however many are sent', async () => {
    const server = await node();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    later(async () => void vi.useRealTimers());
    const redis = connected(server.port);
    const { monitor, reported } = monitored(redis, () => connected(server.port));
    await redis.echo('answered');
    expect(monitor.isReachable()).toBe(true);
    await redis.call('ACL', 'SETUSER', 'default', '-@all');
    for (let tick = 0; tick < 3; tick += 1) {
      vi.advanceTimersByTime(TICK_MS);
      await redis.get('some-key').catch(() => undefined);
    }
    expect(monitor.isReachable()).toBe(false);
    expect(reported.some((line) => line.includes('NOPERM'))).toBe(true);
  });

  test('do not hang while Redis does not answer', async () => {
    const server = await node();
    const { monitor, reported } = monitored(connected(server.port), () => connected(server.port));
    await eventually('reachable', () => monitor.isReachable());
    server.freeze();
    later(async () => server.thaw());
    await eventually('a long silence', () => monitor.silentMs() >= 100 * TICK_MS);
    expect([monitor.isReachable(), monitor.stuckMs()]).toEqual([false, 0]);
    server.thaw();
    await eventually('back', () => monitor.isReachable());
    expect(reported.at(-1)).toBe('commands back');
  });
});

/** A redis-server whose files can be limited. */
async function limitedServer(): Promise<{ server: LimitedRedis; port: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-test-redis-'));
  later(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const port = await freePort();
  const server = new LimitedRedis(folder, port);
  later(() => server.end('SIGKILL'));
  server.start();
  return { server, port };
}

test('a rewrite of the append-only file that fails is reported once, and its end', async () => {
  const { server, port } = await limitedServer();
  const redis = connected(port);
  // More than the limit, and no fewer bytes when packed.
  await redis.set('large', incompressible(150_000));
  const { monitor, persistences } = monitored(redis, () => connected(port));
  await eventually('the first poll', () => monitor.persistence?.kind === 'append-only');
  await server.limit(40_000);
  await rewriteFile(redis);
  await redis.set('small', '1');
  expect(await readPersistence(redis)).toEqual({ kind: 'growing' });
  await eventually('it is reported', () => persistences.length > 0);
  expect(isPersistent({ kind: 'growing' })).toBe(true);
  expect((await checkRedis(redis)).map(({ message }) => message)).toEqual([
    expect.stringContaining('aof_last_bgrewrite_status'),
  ]);
  const before = monitor.persistence;
  await eventually('another poll', () => monitor.persistence !== before);
  expect(persistences).toEqual([{ kind: 'growing' }]);
  await server.limit('unlimited');
  await rewriteFile(redis);
  await eventually('its end is reported', () => persistences.length > 1);
  expect(persistences).toEqual([{ kind: 'growing' }, { kind: 'append-only' }]);
});

test('an append-only file that could not be written for a while is written anew, and a restart reads it', async () => {
  const { server, port } = await limitedServer();
  await rewriteFile(connected(port));
  const writing = connected(port);
  const { monitor, reported } = monitored(writing, () => connected(port));
  await eventually('it answers', () => monitor.isReachable());
  await server.limit(20_000);
  const written = await writeUntilRefused(writing, 'key');
  await server.limit('unlimited');
  await writeAgain(writing, ['last']);
  await eventually('it is written anew', () => reported.includes('rewritten'));
  await server.end('SIGTERM');
  server.start();
  expect(await connected(port).exists(...written)).toBe(written.length);
});
