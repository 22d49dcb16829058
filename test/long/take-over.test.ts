import { spawnSync } from 'node:child_process';
import { expect, inject, test } from 'vitest';
import { redisTimeMs } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { ELSEWHERE } from '../support/child-daemon.ts';
import { testPrefix } from '../support/daemon.ts';
import { DEFAULT_CONCURRENCY } from '../support/default-concurrency.ts';
import { hourOfEvents } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { HeldUp } from '../support/held-up.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { hashOf, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const open = opening();

const EVENTS = 3 * DEFAULT_CONCURRENCY;

/** Longest interruption by the machine with which a proof by connections is still made within a lease. */
const HELD_UP_MS = 500;

const [UNSHARE = '', ...FLAGS] = ELSEWHERE;
const isPermitted = spawnSync(UNSHARE, [...FLAGS, 'true']).status === 0;

/**
 * Two daemons on a Redis of their own, the first behind a proxy, and `elsewhere` in a pid namespace of its own. Their receiver
 * leaves attempts without an answer until it is released; both have some under way.
 */
async function stage({ elsewhere }: { elsewhere: boolean }) {
  const server = await RedisProcess.create();
  open.later(() => server.close());
  const redis = connect({ kind: 'server', url: server.url });
  open.later(() => disconnect(redis));
  const proxy = await open.started(
    new TcpProxy({ host: '127.0.0.1', port: Number(new URL(server.url).port) }),
  );
  const upstream = await open.started(new ScriptedUpstream(() => ({ records: [] })));
  const released = Promise.withResolvers<void>();
  const hook = await open.started(
    new Hook(async () => {
      await released.promise;
      return 204;
    }),
  );
  const prefix = testPrefix();
  const keys = new Keys(prefix);
  const config = {
    baseUrl: upstream.url,
    redisUrl: server.url,
    prefix,
    receivers: { plain: { url: hook.url, more: { timeout: '2m' } } },
    subscriptions: [{ name: 's', intents: [hashOf(77)], receivers: ['plain'] }],
  };
  const first = open.child({ ...config, redisUrl: proxy.url }, [], elsewhere ? ELSEWHERE : []);
  await first.start();
  const id = (await redis.hkeys(keys.instances)).find((name) => !name.startsWith('beats:')) ?? '';
  await open.child(config).start();
  const made = hourOfEvents(EVENTS, { fromMs: (await redisTimeMs(redis)) + 1_000, transfers: EVENTS });
  await appendEvents(redis, keys, made);
  await hook.until((came) => came.length >= 2 * DEFAULT_CONCURRENCY);
  return {
    server,
    proxy,
    first,
    hook,
    released,
    /** Resolves once the first process is gone, with the ms that were left of its lease. */
    gone: async () => {
      let lease = Number.NaN;
      return eventually('the first process is gone', async () => {
        const found = Number((await redis.zscore(keys.senders, id)) ?? 0);
        if (found > 0) lease = found;
        return (await redis.hexists(keys.instances, id)) === 0 ? lease - (await redisTimeMs(redis)) : null;
      });
    },
    back: () => eventually('it is back', async () => (await redis.hexists(keys.instances, id)) === 1),
    isSeen: async () => (await redis.hexists(keys.instances, id)) === 1,
    /** Resolves when all is delivered. Returns the number of requests beyond one for each event. */
    repeated: async () => {
      released.resolve();
      await eventually('all are delivered', async () => {
        const newest = await redis.xrevrange(keys.events, '+', '-', 'COUNT', 1);
        const cursor = await redis.hget(keys.cursors, 'plain');
        return cursor === newest[0]?.[0] && (await redis.zcard(keys.pending('plain'))) === 0;
      });
      expect([...new Set(hook.ids)].toSorted()).toEqual(made.map(madeEventId).toSorted());
      return hook.ids.length - EVENTS;
    },
  };
}

/** Repeats an attempt while the machine held up processes for too long during it. */
async function undisturbed(attempt: () => Promise<number>): Promise<void> {
  await eventually(
    'a machine that is quick enough for heartbeats in time',
    async () => {
      const machine = new HeldUp(inject('redisUrl'));
      await machine.start();
      const leftMs = await attempt();
      await machine.close();
      if (machine.mostMs > HELD_UP_MS && leftMs <= 0) return false;
      expect(leftMs).toBeGreaterThan(0);
      return true;
    },
    600_000,
  );
}

test('takes over from a killed process on the same machine before its lease ends', async () => {
  await undisturbed(async () => {
    const { first, gone, repeated } = await stage({ elsewhere: false });
    await first.kill();
    const leftMs = await gone();
    expect(await repeated()).toBeLessThanOrEqual(DEFAULT_CONCURRENCY);
    return leftMs;
  });
});

test.skipIf(!isPermitted)(
  'takes over from a killed process elsewhere before its lease ends (skipped where unshare is not permitted)',
  async () => {
    await undisturbed(async () => {
      const { first, gone, repeated } = await stage({ elsewhere: true });
      await first.kill();
      const leftMs = await gone();
      expect(await repeated()).toBeLessThanOrEqual(DEFAULT_CONCURRENCY);
      return leftMs;
    });
  },
);

test.skipIf(!isPermitted)(
  'a process elsewhere that was cut off sends nothing of what another has (skipped where unshare is not permitted)',
  async () => {
    const { proxy, gone, back, repeated } = await stage({ elsewhere: true });
    proxy.onRequest = () => 'cut';
    proxy.cut();
    await gone();
    proxy.onRequest = () => 'pass';
    await back();
    // Those that were under way at the cut came twice.
    expect(await repeated()).toBeLessThanOrEqual(DEFAULT_CONCURRENCY);
  },
);

test.skipIf(!isPermitted)(
  'no claim moves at a restart of Redis (skipped where unshare is not permitted)',
  async () => {
    const { server, isSeen, repeated } = await stage({ elsewhere: true });
    await server.kill();
    await server.start();
    expect(await repeated()).toBe(0);
    expect(await isSeen()).toBe(true);
  },
);

test('a frozen process is not gone before its lease ends, and sends nothing of what another has then', async () => {
  const { first, gone, back, repeated } = await stage({ elsewhere: false });
  first.freeze();
  expect(await gone()).toBeLessThanOrEqual(0);
  first.thaw();
  await back();
  expect(await repeated()).toBeLessThanOrEqual(DEFAULT_CONCURRENCY);
});
