import { expect, test } from 'vitest';
import { SenderStore } from '../../src/store/senders.ts';
import { CLAIM_KEY, orderOf } from '../support/delivery-stage.ts';
import { appendEvents, type MadeEvent, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { workerStage } from '../support/worker-stage.ts';

const { later } = opening();

const LEASE = { leaseMs: 9_300, instance: { connection: null, system: null } };

test('a process sends none of a refused group alone once another process has it', async () => {
  const sent: string[][] = [];
  const lost = Promise.withResolvers<void>();
  const together = async (events: readonly { id: string }[]): Promise<boolean> => {
    sent.push(events.map(({ id }) => id));
    await takeAll();
    lost.resolve();
    return false;
  };
  const attempt = async ({ id }: { id: string }): Promise<void> => void sent.push([id]);
  const stage = await workerStage(later, { concurrency: 1, attempt, together });
  const { redis, keys, stores, worker, heartbeat } = stage;
  const senders = new SenderStore(redis, keys);
  const takeAll = async (): Promise<void> => {
    await senders.heartbeat('q', LEASE);
    // In one round trip: no heartbeat comes in between.
    const [, claimed] = await Promise.all([senders.end('p1'), stores.deliveries.takeOver('hook', 'q')]);
    expect(claimed).toBe(2);
    const order = orderOf({ most: 2, isTogether: true });
    expect((await stores.deliveries.claim('hook', { process: 'q', order })).claimed).toHaveLength(2);
    await heartbeat.beat();
  };
  const made = [1, 2, 3].map((number): MadeEvent => {
    return { subject: `intent:${hashOf(number)}`, sequence: 1, atMs: Date.now(), key: CLAIM_KEY };
  });
  const entries = await appendEvents(redis, keys, made);
  const deliveries = made.map((event, index) => {
    return { id: madeEventId(event), entry: entries[index] ?? '', claimKeys: [CLAIM_KEY], subject: null };
  });
  const opening = { receiver: 'hook', deliveries, replay: null, cursor: null, process: 'p1' };
  await stores.deliveries.open(await stage.token(), opening);
  worker.wake();
  await lost.promise;
  await worker.idle();
  const [first, ...others] = made.map(madeEventId);
  expect(sent).toEqual([[first], others]);
});
