import { expect, inject, test } from 'vitest';
import { redisTimeMs } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
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

const open = opening();

/** The time for which guarantee 2 excludes duplicates. */
const STALL_MS = 8_000;

/** The product tolerates a longer stall by this: the machine may delay processes for so long in addition. */
const MARGIN_MS = 400;

/** Stalls take real time. */
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Longest time for attempts at stalls: each takes some 15 s. */
const STALLED_WITHIN_MS = 600_000;

/**
 * Two daemons on a Redis of their own. Both receivers, one of them with `ordering: subject`, leave their attempts without an
 * answer until they are released.
 */
async function stage() {
  const server = await RedisProcess.create();
  open.later(() => server.close());
  const redis = connect({ kind: 'server', url: server.url });
  open.later(() => disconnect(redis));
  const upstream = await open.started(new ScriptedUpstream(() => ({ records: [] })));
  const released = Promise.withResolvers<void>();
  const answer = async () => {
    await released.promise;
    return 204;
  };
  const hooks = {
    plain: await open.started(new Hook(answer)),
    ordered: await open.started(new Hook(answer)),
  };
  const prefix = testPrefix();
  const config = {
    baseUrl: upstream.url,
    redisUrl: server.url,
    prefix,
    receivers: {
      plain: { url: hooks.plain.url, more: { timeout: '2m' } },
      ordered: { url: hooks.ordered.url, more: { timeout: '2m', ordering: 'subject' } },
    },
    subscriptions: [{ name: 's', intents: [hashOf(77)], receivers: Object.keys(hooks) }],
  };
  const daemons = [open.child(config), open.child(config)];
  await Promise.all(daemons.map((daemon) => daemon.start()));
  const keys = new Keys(prefix);
  const fromMs = (await redisTimeMs(redis)) + 1_000;
  const made = hourOfEvents(3 * DEFAULT_CONCURRENCY, { fromMs, transfers: 2 * DEFAULT_CONCURRENCY });
  await appendEvents(redis, keys, made);
  // More than the capacity of one of the two.
  for (const hook of Object.values(hooks)) await hook.until((came) => came.length > DEFAULT_CONCURRENCY);
  const drained = () =>
    eventually('all are delivered', async () => {
      const newest = await redis.xrevrange(keys.events, '+', '-', 'COUNT', 1);
      const ended = await Promise.all(
        Object.keys(hooks).map(async (name) => {
          const cursor = await redis.hget(keys.cursors, name);
          return cursor === newest[0]?.[0] && (await redis.zcard(keys.pending(name))) === 0;
        }),
      );
      return ended.every(Boolean);
    });
  const ids = made.map(madeEventId).toSorted();
  return { server, hooks, daemons, ids, released, drained };
}

type Stage = Awaited<ReturnType<typeof stage>>;

/** Stalls by `stall` until all is delivered once; duplicates are permitted only after a stall longer than 8 s. */
async function expectSentOnce(stall: (stage: Stage) => Promise<void>): Promise<void> {
  await eventually(
    'a stall that the machine made no longer',
    async () => {
      const running = await stage();
      const machine = new HeldUp(inject('redisUrl'));
      await machine.start();
      await stall(running);
      await running.drained();
      await machine.close();
      const { hooks, daemons, ids } = running;
      for (const daemon of daemons) await daemon.kill();
      const came = Object.values(hooks).map((hook) => hook.ids.toSorted());
      const isHeldUp = machine.mostMs > MARGIN_MS;
      if (isHeldUp && came.some(({ length }) => length > ids.length)) return false;
      expect(came).toEqual([ids, ids]);
      return true;
    },
    STALLED_WITHIN_MS,
  );
}

test('a delivery under way while Redis is frozen for 8 s is sent once', async () => {
  await expectSentOnce(async ({ server, released }) => {
    server.freeze();
    await pause(STALL_MS / 2);
    // They end while no daemon can be notified.
    released.resolve();
    await pause(STALL_MS / 2);
    server.thaw();
  });
});

test('a delivery of a process that is frozen for 8 s is sent once, though another runs beside it', async () => {
  await expectSentOnce(async ({ daemons: [first], released }) => {
    first?.freeze();
    await pause(STALL_MS);
    first?.thaw();
    released.resolve();
  });
});

test('another process resumes the deliveries of a killed one, and nothing else is sent again', async () => {
  const { hooks, daemons, ids, released, drained } = await stage();
  await hooks.plain.until((came) => came.length >= 2 * DEFAULT_CONCURRENCY);
  const [first] = daemons;
  await first?.kill();
  released.resolve();
  await drained();
  expect([...new Set(hooks.plain.ids)].toSorted()).toEqual(ids);
  expect(hooks.plain.ids.length).toBeGreaterThan(ids.length);
  expect(hooks.plain.ids.length).toBeLessThanOrEqual(ids.length + DEFAULT_CONCURRENCY);
});
