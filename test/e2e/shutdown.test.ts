import { afterAll, beforeAll, describe, expect, type TestContext, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/port.ts';
import type { Program } from '../support/program.ts';
import type { RedisProcess } from '../support/redis-process.ts';
import type { SandboxProcess } from '../support/sandbox-process.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';

/** What is promised is 5 s; more is left to a machine that is held up, and what hangs takes for ever. */
const WITHIN_MS = 20_000;

/** Two key presses, and not one that came twice. */
const APART_MS = 600;

const cleanUps: (() => Promise<void>)[] = [];
let sandbox: SandboxProcess;

beforeAll(async () => {
  sandbox = await new Stage((cleanUp) => cleanUps.push(cleanUp)).sandbox({
    seed: 3,
    timeScale: 20,
    wallets: 2,
  });
  await sandbox.setPace(3);
});

afterAll(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

/** A daemon that has sent its first webhook, with its Redis. */
async function atWork(
  { onTestFinished }: TestContext,
  mode: 'answer' | 'hang',
): Promise<{ daemon: Program; redis: RedisProcess }> {
  const stage = new Stage(onTestFinished);
  const [redis, receiver] = await Promise.all([stage.redis(), stage.receiver({ mode })]);
  const { wallets, quotes } = await sandbox.subjects();
  const subscriptions = [{ name: 'treasury', wallets, quotes, receivers: [RECEIVER_NAME] }];
  const file = await stage.config({ upstreamUrl: sandbox.url, redisUrl: redis.url, receiver, subscriptions });
  const daemon = await stage.daemon(file);
  await eventually('a webhook', () => receiver.received.length > 0);
  return { daemon, redis };
}

describe.concurrent('SIGTERM ends a daemon soon with exit code 0', () => {
  test('while it works', async (context) => {
    const { daemon } = await atWork(context, 'answer');
    const { code, tookMs } = await daemon.end('SIGTERM');
    expect(code).toBe(0);
    expect(tookMs).toBeLessThan(WITHIN_MS);
  });

  test('while its receiver hangs', async (context) => {
    const { daemon } = await atWork(context, 'hang');
    const { code, tookMs } = await daemon.end('SIGTERM');
    expect(code).toBe(0);
    expect(tookMs).toBeLessThan(WITHIN_MS);
  });

  test('while Redis is away', async (context) => {
    const { daemon, redis } = await atWork(context, 'answer');
    await redis.stop();
    await daemon.line(/"msg":"redis.away"/);
    const { code, tookMs } = await daemon.end('SIGTERM');
    expect(code).toBe(0);
    expect(tookMs).toBeLessThan(WITHIN_MS);
  });

  test('while Redis stands still', async (context) => {
    const { daemon, redis } = await atWork(context, 'answer');
    redis.freeze();
    const { code, tookMs } = await daemon.end('SIGTERM');
    expect(code).toBe(0);
    expect(tookMs).toBeLessThan(WITHIN_MS);
  });

  test('while it still waits for Redis', async ({ onTestFinished }) => {
    const stage = new Stage(onTestFinished);
    const nowhere = `127.0.0.1:${await freePort()}`;
    const file = await stage.config({
      upstreamUrl: `http://${nowhere}`,
      redisUrl: `redis://${nowhere}`,
      receiver: { url: `http://${nowhere}`, secret: `whsec_${'A'.repeat(32)}` },
      subscriptions: [{ name: 'order', intents: [`0x${'1'.repeat(64)}`], receivers: [RECEIVER_NAME] }],
    });
    const daemon = await stage.intentwatch(['start', '--config', file]);
    await daemon.line(/"msg":"redis.away"/);
    const { code, tookMs } = await daemon.end('SIGTERM');
    expect(code).toBe(0);
    expect(tookMs).toBeLessThan(WITHIN_MS);
  });

  test('but a second SIGINT ends it at once with exit code 130', async (context) => {
    const { daemon } = await atWork(context, 'hang');
    daemon.send('SIGINT');
    await daemon.line(/"msg":"daemon.stopping"/);
    await new Promise((resolve) => setTimeout(resolve, APART_MS));
    expect(await daemon.end('SIGINT')).toMatchObject({ code: 130 });
  });
});
