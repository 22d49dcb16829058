import { expect, test } from 'vitest';
import { redisTimeMs } from '../../src/store/commands.ts';
import type { Keys } from '../../src/store/keys.ts';
import { startDaemon } from '../support/daemon.ts';
import { deliveryStage, HOUR_MS, hourOfEvents } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';

const open = opening();
const DAY_MS = 24 * HOUR_MS;
const MISSING = `evt_${'7'.repeat(40)}`;

test.each<[string, (keys: Keys) => string]>([
  ['open deliveries', (keys) => keys.pending('bad')],
  ['losses', (keys) => keys.dropped('bad')],
  ['dead letters', (keys) => keys.dead('bad')],
  ['attempts under way', (keys) => `${keys.queue('bad')}:sending`],
  ['state', (keys) => keys.receiver('bad')],
])('a receiver whose %s have another type stops the check of no other', async (_, keyOf) => {
  const hook = await open.started(new Hook());
  const receivers = {
    bad: { hook, more: { events: ['intent.*'] } },
    good: { hook, more: { events: ['intent.*'] } },
  };
  const { redis, keys, config } = await deliveryStage(open, receivers, { retention: '5d' });
  const nowMs = await redisTimeMs(redis);
  const made = hourOfEvents(5, { fromMs: nowMs - 7 * DAY_MS, transfers: 5 });
  const last = (await appendEvents(redis, keys, made)).at(-1) ?? '';
  await redis.hset(keys.cursors, { bad: last, good: last });
  await redis.set(keyOf(keys), 'x');
  // A process that is gone, and a delivery that is missing in its queue.
  await redis.zadd(keys.senders, 0, 'gone');
  await redis.hset(keys.delivery('good', MISSING), {
    ...{ outcome: 'pending', entry: `${nowMs}-0`, claimKeys: '[]', turn: String(nowMs * 1_000) },
  });
  await redis.zadd(keys.pending('good'), nowMs, MISSING);
  const lines: string[] = [];
  const { daemon } = await startDaemon(config, (line) => lines.push(line));
  open.later(() => daemon.close());
  await eventually(
    'expired entries left the log',
    async () => (await redis.xrange(keys.events, '-', String(nowMs - DAY_MS))).length === 0,
  );
  await eventually(
    'the gone process is removed',
    async () => (await redis.zscore(keys.senders, 'gone')) === null,
  );
  await eventually('the delivery is repaired', async () =>
    lines.some((line) => line.includes(`good ${MISSING}`)),
  );
  const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
  expect(metrics).toMatch(/^intentwatch_foreign_entries_total\{what="(?:delivery|receiver-state)"\} [1-9]/m);
  expect(lines.some((line) => line.includes('reconcile.error'))).toBe(false);
});
