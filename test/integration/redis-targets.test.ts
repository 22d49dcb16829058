import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { freePort } from '../support/port.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

/** Starts a redis-server of a test's own and waits until it answers. */
async function redisServer(args: readonly string[], port: number): Promise<ChildProcess> {
  const child = spawn('redis-server', [...args], { stdio: 'ignore' });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  later(() => {
    child.kill('SIGKILL');
    return exited;
  });
  const probe = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 20, maxRetriesPerRequest: null });
  probe.on('error', () => undefined);
  await probe.ping();
  probe.disconnect();
  return child;
}

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'intentwatch-redis-'));
  later(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Runs a daemon on a Redis and returns the type of the event that one intent's first sight makes. */
async function firstEvent(redisUrl: string): Promise<string | undefined> {
  const upstream = new ScriptedUpstream(({ query }) => ({
    records: query.intentHash ? [intentRecord(query.intentHash, 'filled', 1_700_000_000)] : [],
  }));
  await started(upstream);
  const hook = await started(new TestReceiver());
  const { daemon } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl,
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url } },
    subscriptions: [{ name: 's', intents: [hashOf(1)], receivers: ['hook'] }],
  });
  later(() => daemon.close());
  const [event] = await hook.until((events) => events.length > 0);
  return event?.type;
}

describe('redis.url', () => {
  test('may name a Cluster: every key stands under one hash tag', async () => {
    const [port, busPort, dir] = [await freePort(), await freePort(), await folder()];
    await redisServer(
      [
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--dir',
        dir,
        '--cluster-port',
        String(busPort),
        '--cluster-announce-ip',
        '127.0.0.1',
        '--cluster-enabled',
        'yes',
        '--appendonly',
        'yes',
      ],
      port,
    );
    const node = new Redis({ port, host: '127.0.0.1' });
    await node.cluster('ADDSLOTSRANGE', 0, 16_383);
    while (!String(await node.cluster('INFO')).includes('cluster_state:ok')) await node.ping();
    node.disconnect();
    expect(await firstEvent(`redis+cluster://127.0.0.1:${port}`)).toBe('intent.filled');
  });

  test('may name a Sentinel group', async () => {
    const [port, sentinelPort, dir] = [await freePort(), await freePort(), await folder()];
    await redisServer(
      ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--appendonly', 'yes'],
      port,
    );
    const conf = join(dir, 'sentinel.conf');
    await writeFile(
      conf,
      `port ${sentinelPort}\nbind 127.0.0.1\ndir ${dir}\nsentinel monitor watched 127.0.0.1 ${port} 1\n`,
    );
    await redisServer([conf, '--sentinel'], sentinelPort);
    expect(await firstEvent(`redis+sentinel://127.0.0.1:${sentinelPort}/watched`)).toBe('intent.filled');
  });
});
