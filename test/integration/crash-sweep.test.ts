import { Redis } from 'ioredis';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { Sandbox } from '../../src/sandbox/sandbox.ts';
import { ChildDaemon } from '../support/child-daemon.ts';
import { type TestConfig, TestReceiver, testPrefix } from '../support/daemon.ts';

const open: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function started<T extends { start(): Promise<void>; close(): Promise<void> }>(part: T): Promise<T> {
  await part.start();
  open.push(() => part.close());
  return part;
}

function child(config: TestConfig, nodeArgs: readonly string[] = []): ChildDaemon {
  const daemon = new ChildDaemon(config, nodeArgs);
  open.push(() => daemon.kill());
  return daemon;
}

describe('a daemon that is killed', () => {
  test('in the middle of the first sweep of 5,000 past transfers tells nobody of history, and misses nothing', async () => {
    const sandbox = await started(
      new Sandbox({ seed: 3, wallets: 1, pastTransfers: 5_000, transfersPerSecond: 0, timeScale: 20 }),
    );
    const hook = await started(new TestReceiver());
    const prefix = testPrefix();
    const config = {
      baseUrl: sandbox.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', wallets: sandbox.subjects().wallets, receivers: ['hook'] }],
    };
    const redis = new Redis(inject('redisUrl'));
    open.push(() => redis.quit());
    const stored = async (): Promise<number> => (await redis.keys(`{${prefix}}:subject:intent:*`)).length;

    const first = child(config);
    await first.start();
    while ((await stored()) < 1_500) await redis.ping();
    await first.kill();
    const atKill = await stored();
    expect(atKill).toBeLessThan(5_000);
    const second = child(config);
    await second.start();
    while ((await stored()) < 5_000) await redis.ping();
    sandbox.setPace(2);
    const events = await hook.until((all) => all.some((event) => event.type === 'intent.filled'));

    const made = new Set(sandbox.transitions().map((transition) => transition.subject));
    expect(events.filter((event) => !made.has(event.data.subject.id))).toEqual([]);
  });
});
