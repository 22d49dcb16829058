import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { Notifier } from '../../src/notifiers/notifier.ts';
import { DeliveryWorker } from '../../src/queues/deliveries/delivery-worker.ts';
import { Sender } from '../../src/queues/deliveries/sender.ts';
import { Heartbeat } from '../../src/queues/heartbeat.ts';
import { BatchStore } from '../../src/store/batches.ts';
import { CheckStore } from '../../src/store/checks.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { SenderStore, WakeLog } from '../../src/store/senders.ts';
import { relayStage } from './relay-stage.ts';
import { webhookReceiver } from './webhook-receiver.ts';

const DAY_MS = 86_400_000;

/** A relay stage with a process that sends to a receiver `hook`; the test opens its deliveries, and makes the attempts. */
export async function workerStage(
  later: (close: () => Promise<unknown>) => void,
  { concurrency, attempt }: { concurrency: number; attempt: (event: RenderedEvent) => Promise<void> },
) {
  const stage = relayStage(later);
  const { redis, keys, registry, events, stores, deps } = stage;
  const { directory, signals, log } = deps;
  const { deliveries, dropped } = stores;
  const heartbeat = new Heartbeat({
    id: 'p1',
    senders: new SenderStore(redis, keys),
    registry,
    deliveries,
    plan: new PlanStore(redis, keys),
    checks: new CheckStore(redis, keys, { retentionMs: DAY_MS }),
    log,
  });
  const sender = new Sender({ heartbeat, wakes: new WakeLog(redis, keys), log });
  const notifier: Notifier = {
    deliver: async (event) => {
      await attempt(event);
      const result = { outcome: 'delivered', httpStatus: 204, smtpCode: null, reason: 'HTTP 204' } as const;
      return { ...result, answer: '', durationMs: 1, retryAfterMs: null };
    },
    close: async () => undefined,
  };
  const receiver = webhookReceiver('http://127.0.0.1:1', { name: 'hook', concurrency });
  const batches = new BatchStore(redis, keys);
  const worker = new DeliveryWorker(receiver, notifier, {
    ...{ events, registry, deliveries, batches, dropped, directory, sender, signals, log },
  });
  await heartbeat.start();
  later(() => heartbeat.close());
  worker.start();
  later(() => worker.close(AbortSignal.abort()));
  return { ...stage, worker };
}
