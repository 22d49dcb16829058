import { expect, test } from 'vitest';
import { redisTimeMs } from '../../src/store/connection.ts';
import { deliveryStage, HOUR_MS, hourOfEvents } from '../support/delivery-stage.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';

const open = opening();

test('the operator is told once when the retention takes events from a disabled receiver, and of those it is entitled to', async () => {
  const operator = await open.started(new Hook());
  const stage = await deliveryStage(
    open,
    {
      hook: { hook: await open.started(new Hook()), more: { events: ['intent.*'] } },
      operator: { hook: operator, more: { events: ['receiver.*'] } },
    },
    { retention: '5d' },
  );
  // Disabled for a week: an open delivery, and events behind the cursor, of which one is nothing for it.
  const { redis, keys, states } = stage;
  const fromMs = (await redisTimeMs(redis)) - 7 * 24 * HOUR_MS;
  await redis.hset(keys.receiver('hook'), { state: 'disabled', disabledAt: String(fromMs) });
  await redis.hset(keys.cursors, { hook: '0-0' });
  const waiting = `evt_${'0'.repeat(40)}`;
  await redis.zadd(keys.pending('hook'), fromMs, waiting);
  await redis.hset(keys.delivery('hook', waiting), { outcome: 'pending', entry: `${fromMs}-0`, roots: '[]' });
  const made = hourOfEvents(4, { fromMs, transfers: 4 });
  await appendEvents(
    redis,
    keys,
    made.toSpliced(1, 1, ...made.slice(1, 2).map((event) => ({ ...event, root: 'other|intent:0x1' }))),
  );
  await stage.start();

  const [dropped] = await operator.until((came) => came.length === 1);
  expect(dropped?.event).toMatchObject({
    type: 'receiver.events_dropped',
    data: { subject: { id: 'receiver:hook' }, sequence: 1, record: { receiver: 'hook', count: 4 } },
  });
  expect(await stage.backlog.counts('hook')).toEqual({ pending: 0, dead: 0 });

  expect(await states.tellDropped('hook', { cursor: '0-0', count: 9 })).toBe(false);
  expect(await states.tellDropped('hook', { cursor: '1-0', count: 1 })).toBe(true);
  await operator.until((came) => came.length === 2);
  expect(operator.came.map(({ event }) => event.data.sequence)).toEqual([1, 2]);
});
