import { readFile, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';

test('SIGHUP ends nothing: before the start is over it is handled later, then it applies the file', async ({
  onTestFinished,
}) => {
  const stage = new Stage(onTestFinished);
  const [sandbox, redis, receiver] = await Promise.all([
    stage.sandbox({ seed: 3, timeScale: 20, wallets: 4 }),
    stage.redis(),
    // Never answers: an attempt under way at the reload is so until the end.
    stage.receiver({ mode: 'hang' }),
  ]);
  const { wallets } = await sandbox.subjects();
  const [first = '', ...others] = wallets;
  const config = (watched: string[]) =>
    stage.config({
      upstreamUrl: sandbox.url,
      redisUrl: redis.url,
      receiver,
      subscriptions: [{ name: 'treasury', wallets: watched, receivers: [RECEIVER_NAME] }],
    });
  const file = await config([first]);
  const daemon = await stage.intentwatch(['start', '--config', file]);
  await daemon.line(/"msg":"server.listening"/);
  daemon.send('SIGHUP');
  await daemon.line(/"msg":"daemon.started"/);
  await daemon.line(/"msg":"config.unchanged"/);
  await sandbox.setPace(5);
  await eventually('a webhook', () => receiver.received.length > 0);

  await writeFile(file, await readFile(await config([first, ...others]), 'utf8'));
  daemon.send('SIGHUP');
  await daemon.line(/"subjects":\{"added":3,"removed":0\}.*"msg":"config.reloaded"/);
  expect(await daemon.end('SIGTERM')).toMatchObject({ code: 0 });
});

// The receiver's timeout is longer than the test's.
test('a daemon that still finishes the work of an earlier config does not wait for it at its end', {
  timeout: 240_000,
}, async ({ onTestFinished }) => {
  const stage = new Stage(onTestFinished);
  const [sandbox, redis, receiver] = await Promise.all([
    stage.sandbox({ seed: 5, timeScale: 20, wallets: 2 }),
    stage.redis(),
    stage.receiver({ mode: 'hang' }),
  ]);
  const { wallets } = await sandbox.subjects();
  const config = (metadata: object) =>
    stage.config({
      upstreamUrl: sandbox.url,
      redisUrl: redis.url,
      receiver,
      receiverTimeout: '5m',
      subscriptions: [{ name: 'treasury', wallets, metadata, receivers: [RECEIVER_NAME] }],
    });
  const file = await config({ desk: 'a' });
  const daemon = await stage.daemon(file);
  await sandbox.setPace(5);
  await eventually('a webhook', () => receiver.received.length > 0);
  for (const desk of ['b', 'c']) {
    await writeFile(file, await readFile(await config({ desk }), 'utf8'));
    daemon.send('SIGHUP');
    const reloads = desk === 'b' ? 1 : 2;
    await eventually('the reload', () => {
      return daemon.stdout.filter((line) => line.includes('"config.reloaded"')).length >= reloads;
    });
  }
  const { code } = await daemon.end('SIGTERM');
  expect(code).toBe(0);
});
