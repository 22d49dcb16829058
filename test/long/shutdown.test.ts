import { describe, expect, test } from 'vitest';
import { atWork, RECEIVER_SECRET } from '../support/at-work.ts';
import { freePort } from '../support/port.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';

describe.concurrent('SIGTERM ends a daemon soon with exit code 0', () => {
  test('while its receiver hangs', async ({ onTestFinished }) => {
    const { daemon } = await atWork(onTestFinished, () => null);
    const { code } = await daemon.end('SIGTERM');
    expect(code).toBe(0);
  });

  test('while Redis is away', async ({ onTestFinished }) => {
    const { daemon, redis } = await atWork(onTestFinished);
    await redis.stop();
    await daemon.line(/"msg":"redis.away"/);
    const { code } = await daemon.end('SIGTERM');
    expect(code).toBe(0);
  });

  test('while Redis is frozen', async ({ onTestFinished }) => {
    const { daemon, redis } = await atWork(onTestFinished);
    redis.freeze();
    const { code } = await daemon.end('SIGTERM');
    expect(code).toBe(0);
  });

  test('while it still waits for Redis', async ({ onTestFinished }) => {
    const stage = new Stage(onTestFinished);
    const nowhere = `127.0.0.1:${await freePort()}`;
    const file = await stage.config({
      upstreamUrl: `http://${nowhere}`,
      redisUrl: `redis://${nowhere}`,
      receiver: { url: `http://${nowhere}`, secret: RECEIVER_SECRET },
      subscriptions: [{ name: 'order', intents: [`0x${'1'.repeat(64)}`], receivers: [RECEIVER_NAME] }],
    });
    const daemon = await stage.intentwatch(['start', '--config', file]);
    await daemon.line(/"msg":"redis.away"/);
    const { code } = await daemon.end('SIGTERM');
    expect(code).toBe(0);
  });
});
