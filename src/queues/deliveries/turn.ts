import type { Receiver } from '../../config/config.ts';
import { joinsWaiting, planGathering } from '../../domain/events/gathering.ts';
import type { BatchStore } from '../../store/batches.ts';
import type { Letter } from './letters.ts';

/** What decides whose turn it is. */
export type TurnParts = { batches: BatchStore };

/** Whether a delivery waits, or is sent: by itself (`batch` null), or as the batch that it leads. */
export type Turn =
  | { do: 'wait'; afterMs: number }
  | { do: 'send'; batch: string | null; members: readonly string[] };

/** The longest wait before a delivery looks again, so that a changed config takes effect. */
const LONGEST_WAIT_MS = 300_000;

/**
 * Whose turn it is when a delivery comes up; `nowMs` is Redis time. A receiver that gets every event by itself at once has nothing to decide;
 * what was frozen before its config changed is still sent as it was frozen.
 */
export async function takeTurn(
  { receiver, letter, nowMs }: { receiver: Receiver; letter: Letter; nowMs: number },
  { batches }: TurnParts,
): Promise<Turn> {
  const { id, fact } = letter;
  const rules = receiver.type === 'email' ? receiver.gathering : { digest: null, quietHours: null };
  if (rules.digest === null && rules.quietHours === null && fact.batch === null) {
    return { do: 'send', batch: null, members: [id] };
  }
  const found = await batches.gather(receiver.name, id, { joins: joinsWaiting(rules, nowMs) });
  if ('members' in found) {
    if (found.leader === id) return { do: 'send', batch: found.id, members: found.members };
    return waitFor(Math.max(0, (fact.nextAt ?? 0) - nowMs) + receiver.timeoutMs);
  }
  const plan = planGathering(rules, found, nowMs);
  if (plan.do === 'wait') return waitFor(plan.untilMs - nowMs);
  const batch = await batches.freeze(receiver.name, id, { alone: plan.do === 'alone' });
  // Somebody else was faster, and leads it.
  if (batch === null) return waitFor(receiver.timeoutMs);
  return { do: 'send', batch: batch.id, members: batch.members };
}

function waitFor(ms: number): Turn {
  return { do: 'wait', afterMs: Math.min(ms, LONGEST_WAIT_MS) };
}
