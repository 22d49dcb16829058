import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { isRunning, redisPid } from '../support/redis-pid.ts';
import { Stage } from '../support/stage.ts';

test('the demo serves metrics until Ctrl-C, and then removes all its files and processes', async ({
  onTestFinished,
}) => {
  const stage = new Stage(onTestFinished);
  const folder = await stage.folder();
  const demo = await stage.intentwatch(['demo'], { TMPDIR: folder });
  const [, url = ''] = await demo.line(/^metrics +(http:\S+)/);
  await demo.line(/signature ok$/);
  const answer = await fetch(url);
  expect(answer.status).toBe(200);
  expect(await answer.text()).toContain('intentwatch_');
  const [dataDir = ''] = await readdir(folder);
  const server = await redisPid(join(folder, dataDir, 'data', 'redis.sock'));
  expect(await isRunning(server)).toBe(true);

  const { code } = await demo.end('SIGINT');
  expect(code, demo.output()).toBe(0);
  await eventually('its redis-server has ended', async () => !(await isRunning(server)));
  expect(await readdir(folder)).toEqual([]);
});
