import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Claims } from '../../src/store/deliveries.ts';
import { CLAIM_KEY } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { appendEvents, type MadeEvent, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { workerStage } from '../support/worker-stage.ts';

const { later } = opening();

/** Longest wait of a worker that nothing wakes, as the product has it. */
const LONGEST_WAIT_MS = 30_000;

const SUBJECT = `intent:${hashOf(1)}`;

test('a delivery that an end queues is claimed at once, also where another script claims meanwhile', async () => {
  const held = Promise.withResolvers<void>();
  const attempts: string[] = [];
  const attempt = async ({ id }: { id: string }): Promise<void> => {
    attempts.push(id);
    if (attempts.length === 1) await held.promise;
  };
  const { redis, keys, worker, stores, token } = await workerStage(later, { concurrency: 2, attempt });
  const fence = await token();
  const first: MadeEvent = { subject: SUBJECT, sequence: 1, atMs: Date.now(), key: CLAIM_KEY };
  const second: MadeEvent = { ...first, sequence: 2 };
  const open = async (event: MadeEvent, order: ReturnType<typeof worker.order>): Promise<Claims | null> => {
    const [entry = ''] = await appendEvents(redis, keys, [event]);
    const delivery = { id: madeEventId(event), entry, claimKeys: [CLAIM_KEY], subject: SUBJECT };
    const opening = { receiver: 'hook', deliveries: [delivery], replay: null, cursor: null, process: 'p1' };
    return (await stores.deliveries.open(fence, opening, { order, memory: null }))?.claims ?? null;
  };
  await open(first, null);
  worker.wake();
  await eventually('the first is being sent', () => attempts.length === 1);

  const order = await eventually('the worker orders', () => worker.order());
  const claims = await open(second, order);
  expect(claims?.claimed).toEqual([]);
  held.resolve();
  await eventually('the end of the first is recorded', async () => {
    return (await redis.zcard(`${keys.queue('hook')}:due`)) === 1;
  });
  // The end is recorded, and its reply is read.
  await redis.ping();
  worker.offer(claims);
  await eventually('the second is sent', () => attempts.length === 2, LONGEST_WAIT_MS / 3);
  expect(attempts).toEqual([madeEventId(first), madeEventId(second)]);
});

test('no other script claims between the end of an attempt and its record, which may disable the receiver', async () => {
  const held = Promise.withResolvers<void>();
  const attempts: string[] = [];
  const attempt = async ({ id }: { id: string }): Promise<void> => {
    attempts.push(id);
    if (attempts.length === 1) await held.promise;
  };
  const { redis, keys, worker, stores, token } = await workerStage(later, { concurrency: 1, attempt });
  const made: MadeEvent = { subject: SUBJECT, sequence: 1, atMs: Date.now(), key: CLAIM_KEY };
  const [entry = ''] = await appendEvents(redis, keys, [made]);
  const delivery = { id: madeEventId(made), entry, claimKeys: [CLAIM_KEY], subject: SUBJECT };
  const order = { receiver: 'hook', deliveries: [delivery], replay: null, cursor: null, process: 'p1' };
  await stores.deliveries.open(await token(), order);
  worker.wake();
  await eventually('it is being sent', () => attempts.length === 1);
  // The call that claimed it has ended.
  await turn();

  held.resolve();
  // The attempt ends within these microtasks. Its record begins in the next turn.
  const orders: unknown[] = [];
  for (let count = 0; count < 200; count++) {
    await null;
    orders.push(worker.order());
  }
  worker.offer(null);
  expect(orders.filter((one) => one !== null)).toEqual([]);
  await worker.idle();
  expect(await redis.hexists(keys.delivery('hook', delivery.id), 'outcome')).toBe(0);
});
