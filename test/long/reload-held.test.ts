import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { configYaml, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import type { Program } from '../support/program.ts';
import { hashOf, upstreamOfStatuses } from '../support/scripted-upstream.ts';
import { Stage } from '../support/stage.ts';

test('a cut file is held while the daemon runs; a start with it names its removals', async ({
  onTestFinished,
}) => {
  const stage = new Stage(onTestFinished);
  const hashes = [1, 2, 3, 4, 5].map(hashOf);
  const statuses = new Map(hashes.map((hash) => [hash, 'pending']));
  const upstream = upstreamOfStatuses(statuses);
  const [backend, operator] = [new Hook(), new Hook()];
  for (const part of [upstream, backend, operator]) {
    await part.start();
    onTestFinished(() => part.close());
  }
  const redis = await stage.redis();
  const file = join(await stage.folder(), 'intentwatch.yaml');
  const [, , , , last = ''] = hashes;
  const prefix = testPrefix();
  const write = async (intents: readonly string[]): Promise<void> => {
    const receivers = {
      backend: { url: backend.url },
      operator: { url: operator.url, more: { events: ['intentwatch.*'] } },
    };
    const subscriptions = [{ name: 'orders', receivers: ['backend'], intents }];
    const yaml = configYaml({ baseUrl: upstream.url, redisUrl: redis.url, prefix, receivers, subscriptions });
    await writeFile(`${file}.new`, yaml);
    await rename(`${file}.new`, file);
  };
  const start = async (): Promise<{ daemon: Program; url: string }> => {
    const daemon = await stage.daemon(file);
    const [, url = ''] = await daemon.line(/"url":"(http[^"]+)".*"msg":"server.listening"/);
    return { daemon, url };
  };
  const reported = (came: Hook) => came.came.map(({ event }) => event.data.record);

  await write(hashes);
  const first = await start();
  await backend.until((came) => came.length === 5);
  await write([last]);
  await first.daemon.line(/"held":true,.*"msg":"config.large_removal"/);
  const command = await stage.intentwatch(['reload', '--url', first.url]);
  const { code } = await command.ending();
  expect([code, command.stdout[0]]).toEqual([75, 'subjects: -4 of 5']);
  for (const hash of hashes.slice(0, 2)) statuses.set(hash, 'filled');
  await backend.until((came) => came.length === 7);
  await operator.until((came) => came.length === 1);
  expect(await first.daemon.end('SIGTERM')).toMatchObject({ code: 0 });

  const second = await start();
  await second.daemon.line(/"held":false,.*"msg":"config.large_removal"/);
  await operator.until((came) => came.length === 2);
  const [held, applied] = reported(operator);
  expect([held, applied]).toMatchObject([{ held: true }, { held: false, subjects: held?.subjects }]);
  expect(applied?.digest).toBe(held?.digest);
  const metrics = async () => (await fetch(`${second.url}/metrics`)).text();
  expect(await metrics()).toContain('intentwatch_config_large_removal{what="subjects"} 4');
  second.daemon.send('SIGHUP');
  await eventually('a reload ends the report', async () =>
    (await metrics()).includes('intentwatch_config_large_removal{what="subjects"} 0'),
  );
  expect(await second.daemon.end('SIGTERM')).toMatchObject({ code: 0 });
});
