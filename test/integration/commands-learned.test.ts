import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { LearnedStore } from '../../src/store/learned.ts';
import { runCommand } from '../support/command.ts';
import { configYaml, testPrefix } from '../support/daemon.ts';

test('prints the learned times, the most observed first, and removes them', async () => {
  const prefix = testPrefix();
  const redisUrl = inject('redisUrl');
  const redis = connect({ kind: 'server', url: redisUrl });
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-test-'));
  onTestFinished(async () => {
    redis.disconnect();
    await rm(folder, { recursive: true, maxRetries: 5 });
  });
  const subscriptions = [{ name: 's', intents: [`0x${'1'.repeat(64)}`], receivers: ['hook'] }];
  const receivers = { hook: { url: 'http://127.0.0.1:9/' } };
  const config = join(folder, 'intentwatch.yaml');
  const yaml = configYaml({ baseUrl: 'http://127.0.0.1:9', redisUrl, prefix, receivers, subscriptions });
  await writeFile(config, yaml);
  const learned = async (...args: string[]) => {
    const { code, out } = await runCommand(['learned', '--config', config, ...args]);
    return { code, stdout: out.split('\n') };
  };

  expect(await learned()).toMatchObject({ code: 0, stdout: ['nothing learned yet'] });
  const store = new LearnedStore(redis, new Keys(prefix));
  const bins = (ended: number) => [{ bin: 10, ended, watchedSeconds: ended * 2 }];
  await store.add({ route: '8453:10', statistic: 'pending', increments: bins(40) });
  await store.add({ route: '*', statistic: 'pending', increments: bins(70) });
  await store.add({
    route: '*',
    statistic: 'arrivals',
    increments: [{ bin: 0, ended: 3, watchedSeconds: 300 }],
  });
  await store.add({
    route: '8453:10',
    statistic: 'pending-failed',
    increments: [{ bin: 0, ended: 10, watchedSeconds: 0 }],
  });
  for (const statistic of ['overdue', 'refunded'] as const)
    await store.add({ route: '8453:10', statistic, increments: [{ bin: 0, ended: 5, watchedSeconds: 0 }] });
  const { stdout } = await learned();
  expect(stdout.at(-1)).toMatch(/^new transfers: one in \d+(\.\d)? s in a usual wallet, 3 observed$/);
  expect(stdout.slice(0, 3).map((line) => line.split(/\s{2,}/).slice(0, 3))).toEqual([
    ['ROUTE', 'STAGE', 'OBSERVED'],
    ['*', 'pending', '70'],
    ['8453:10', 'pending', '40'],
  ]);
  expect(stdout.slice(4, 7).map((line) => line.split(/\s{2,}/))).toEqual([
    ['ROUTE', 'FILLED', 'UNFILLED', 'OVERDUE', 'REFUNDED'],
    ['*', '70', '0 (0 %)', '0 (0 %)', '0 (0 %)'],
    ['8453:10', '40', '10 (20 %)', '5 (10 %)', '5 (10 %)'],
  ]);
  expect(await learned('--reset', '1:2')).toMatchObject({ code: 1 });
  expect(await learned('--reset', '8453:10')).toMatchObject({ code: 0, stdout: ['removed 4 entries'] });
  expect(JSON.parse((await learned('--json')).stdout.join('\n'))).toMatchObject({
    corridors: [{ corridor: '*', filled: 70, fill: { observations: 70 }, settlement: null, overdueShare: 0 }],
    stages: [{ route: '*' }],
    newTransfers: { observations: 3 },
  });
  expect(await learned('--reset')).toMatchObject({ code: 0, stdout: ['removed 2 entries'] });
  expect(await learned()).toMatchObject({ stdout: ['nothing learned yet'] });
});
