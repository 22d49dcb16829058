import type { Receiver } from '../../config/config.ts';
import { joinsWaiting, planBatch } from '../../domain/events/batching.ts';
import type { BatchStore } from '../../store/batches.ts';
import type { PendingDelivery } from './pending-delivery.ts';

/** What is asked for the batches that are being made. */
export type BatchDecisionParts = { batches: BatchStore };

/** True when a delivery waits, or is sent: by itself (`batch` null), or as the batch that it leads. */
export type BatchDecision =
  | { do: 'wait'; afterMs: number }
  | { do: 'send'; batch: string | null; members: readonly string[] };

/** The longest wait before a delivery looks again, so that a changed config takes effect. */
const LONGEST_WAIT_MS = 300_000;

/**
 * True when a delivery that comes up waits for others, or is sent, and with whom; `nowMs` is Redis time. A receiver that gets
 * every event by itself at once has nothing to decide; a batch that was closed before its config changed is sent as it is.
 */
export async function decideBatch(
  { receiver, delivery, nowMs }: { receiver: Receiver; delivery: PendingDelivery; nowMs: number },
  { batches }: BatchDecisionParts,
): Promise<BatchDecision> {
  const { id, fact } = delivery;
  const rules = receiver.type === 'email' ? receiver.batching : { digest: null, quietHours: null };
  if (rules.digest === null && rules.quietHours === null && fact.batch === null) {
    return { do: 'send', batch: null, members: [id] };
  }
  const found = await batches.join(receiver.name, id, { joins: joinsWaiting(rules, nowMs) });
  if ('members' in found) {
    if (found.leader === id) return { do: 'send', batch: found.id, members: found.members };
    return waitFor(Math.max(0, (fact.nextAt ?? 0) - nowMs) + receiver.timeoutMs);
  }
  const plan = planBatch(rules, found, nowMs);
  if (plan.do === 'wait') return waitFor(plan.untilMs - nowMs);
  const batch = await batches.close(receiver.name, id, { alone: plan.do === 'alone' });
  // Somebody else was faster, and leads it.
  if (batch === null) return waitFor(receiver.timeoutMs);
  return { do: 'send', batch: batch.id, members: batch.members };
}

function waitFor(ms: number): BatchDecision {
  return { do: 'wait', afterMs: Math.min(ms, LONGEST_WAIT_MS) };
}
