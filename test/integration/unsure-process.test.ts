import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { CLAIM_KEY } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { appendEvents, type MadeEvent, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { workerStage } from '../support/worker-stage.ts';

const { later } = opening();

test('a process whose heartbeat is not answered begins nothing, and does not claim without a pause', async () => {
  const sent: string[] = [];
  const attempt = async ({ id }: { id: string }): Promise<void> => void sent.push(id);
  const { redis, keys, stores, worker, heartbeat, token } = await workerStage(later, {
    concurrency: 1,
    attempt,
  });
  await heartbeat.close();
  await eventually('the heartbeat is late', () => !heartbeat.isSure(heartbeat.life));
  const made: MadeEvent = { subject: `intent:${hashOf(1)}`, sequence: 1, atMs: Date.now(), key: CLAIM_KEY };
  const [entry = ''] = await appendEvents(redis, keys, [made]);
  const delivery = { id: madeEventId(made), entry, claimKeys: [CLAIM_KEY], subject: null };
  const claims = vi.spyOn(stores.deliveries, 'claim');
  const opening = { receiver: 'hook', deliveries: [delivery], replay: null, cursor: null, process: 'p1' };
  await stores.deliveries.open(await token(), opening);
  worker.wake();
  await sleep(500);
  expect(claims.mock.calls.length).toBeLessThan(10);
  expect(sent).toEqual([]);
  await heartbeat.beat();
  await eventually('it is sent', () => sent.length === 1);
});
