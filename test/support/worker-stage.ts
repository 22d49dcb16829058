import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { AttemptResult, Notifier } from '../../src/notifiers/notifier.ts';
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

type Attempts = {
  /** Makes an attempt, which is accepted. */
  attempt: (event: RenderedEvent) => Promise<void>;
  /** Makes an attempt of several deliveries, and returns whether they are accepted. */
  together?: (events: readonly RenderedEvent[]) => Promise<boolean>;
};

function resultOf(isAccepted: boolean): AttemptResult {
  const result = { httpStatus: null, smtpCode: null, answer: '', durationMs: 1, retryAfterMs: null };
  return {
    ...result,
    outcome: isAccepted ? 'delivered' : 'failed',
    reason: isAccepted ? 'accepted' : 'refused',
  };
}

/** A relay stage with a process that sends to a receiver `hook`; the test opens its deliveries, and makes the attempts. */
export async function workerStage(
  later: (close: () => Promise<unknown>) => void,
  { concurrency, attempt, together }: { concurrency: number } & Attempts,
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
      return resultOf(true);
    },
    ...(together === undefined
      ? {}
      : {
          deliverTogether: async (events) => resultOf(await together(events.map(({ event }) => event))),
        }),
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
  return { ...stage, worker, heartbeat };
}
