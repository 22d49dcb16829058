import { expect, test } from 'vitest';
import { deliveryStage, happen } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';

const open = opening();
const CONCURRENCY = 5;
const EVENTS = 200;
/** The shortest of the leases under which a process sends. */
const LEASE_MS = 5_000;
const QUICK = 100;

test('events claimed ahead for a quick receiver are not lost to other processes once it hangs, nor at the end of the process', async () => {
  const release = Promise.withResolvers<void>();
  const hook = await open.started(new Hook());
  hook.answer = async () => {
    if (hook.came.length > QUICK) await release.promise;
    return 204;
  };
  const stage = await deliveryStage(open, { hook: { hook, more: { concurrency: CONCURRENCY } } });
  const startedMs = performance.now();
  const { daemon } = await stage.start();
  const _made = await happen(stage, EVENTS);
  await eventually('all places are in use', () => hook.came.length === QUICK + CONCURRENCY);
  const queue = stage.keys.queue('hook');
  await eventually('only the deliveries under way are claimed', async () => {
    const [sending, due] = await Promise.all([
      stage.redis.hlen(`${queue}:sending`),
      stage.redis.zcard(`${queue}:due`),
    ]);
    return sending === CONCURRENCY && due === EVENTS - QUICK - CONCURRENCY;
  });
  const closing = daemon.close();
  release.resolve();
  await closing;
  expect(await stage.redis.hlen(`${queue}:sending`)).toBe(0);
  await stage.start();
  await stage.drained('hook');
  expect(new Set(hook.ids).size).toBe(EVENTS);
  // Webhooks of a process that stalls for longer than its lease are sent again.
  if (performance.now() - startedMs < LEASE_MS) expect(hook.ids.length).toBe(EVENTS);
});
