import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { RewritingProxy } from '../support/rewriting-proxy.ts';

const { later, started, child } = opening();

const PAGE = z.object({ results: z.array(z.object({ id: z.string() })) });

describe('a daemon that is killed', () => {
  test('in the middle of the first sweep of 5,000 past transfers reports no history, and misses nothing', async () => {
    const sandbox = await started(
      new Sandbox({ seed: 3, wallets: 1, pastTransfers: 5_000, transfersPerSecond: 0, timeScale: 20 }),
    );
    // Half of the transfers are shown before the kill, in any case.
    const proxy = await started(new RewritingProxy(sandbox.url));
    const shown = new Set<string>();
    const released = Promise.withResolvers<void>();
    later(async () => released.resolve());
    proxy.rewriting.answer = async (returning) => {
      if (shown.size >= 2_500) await released.promise;
      const page = PAGE.safeParse(JSON.parse(returning.body)).data;
      for (const { id } of page?.results ?? []) shown.add(id);
      return returning;
    };
    const hook = await started(new TestReceiver());
    const prefix = testPrefix();
    const config = {
      baseUrl: proxy.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', wallets: sandbox.subjects().wallets, receivers: ['hook'] }],
    };
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    const stored = async (): Promise<number> => (await redis.keys(`{${prefix}}:subject:intent:*`)).length;

    const first = child(config);
    await first.start();
    await eventually('the sweep is under way', async () => (await stored()) >= 1_500);
    await first.kill();
    expect(await stored()).toBeLessThan(5_000);
    released.resolve();
    const second = child(config);
    await second.start();
    await eventually('all are stored', async () => (await stored()) >= 5_000);
    sandbox.setPace(2);
    const events = await hook.until((all) => all.some((event) => event.type === 'intent.filled'));

    const made = new Set(sandbox.transitions().map((transition) => transition.subject));
    expect(events.filter((event) => !made.has(event.data.subject.id))).toEqual([]);
  });
});
