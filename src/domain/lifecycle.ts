import type { SubjectId } from './subject.ts';
import { parseSubjectId, subjectKind } from './subject.ts';

/**
 * The usual steps of each vocabulary, as seen in public material; a hint, never a gate. No transition is rejected:
 * these edges only say whether a step went backward or left out a step between. Words that stand in no table are
 * neither. All words in lower case.
 */
const INTENT_STEPS: Steps = {
  pending: ['filled', 'expired', 'refundable', 'failed'],
  filled: ['settled'],
  expired: ['refundable'],
  failed: ['refundable'],
  refundable: ['refunded'],
};
const QUOTE_STEPS: Steps = { active: ['submitted', 'expired', 'failed'] };
const GASLESS_STEPS: Steps = { pending: ['submitted', 'failed'], submitted: ['published', 'failed'] };
const GATEWAY_STEPS: Steps = {
  pending: ['permit_sent', 'completed', 'failed'],
  permit_sent: ['completed', 'failed'],
};
const VAULT_STEPS: Steps = {
  pending: ['funding_detected', 'expired_unfunded', 'failed'],
  funding_detected: ['published', 'failed', 'refunded_by_user', 'recovery_published'],
  failed: ['refunded_by_user', 'recovery_published'],
  expired_unfunded: ['refunded_by_user', 'recovery_published'],
};

type Steps = { readonly [status: string]: readonly string[] };

export type Step = 'same' | 'forward' | 'skipped' | 'backward' | 'other';

function stepsOf(subject: SubjectId): Steps {
  const key = parseSubjectId(subject);
  switch (key?.kind) {
    case 'intent':
    case 'deposit-address':
      return INTENT_STEPS;
    case 'quote':
      return QUOTE_STEPS;
    case 'gasless':
      return key.endpoint === 'gateway' ? GATEWAY_STEPS : GASLESS_STEPS;
    case 'vault':
      return VAULT_STEPS;
    default:
      return {};
  }
}

/** The member of a subject's record that holds its status. */
export function statusMember(subject: SubjectId): string {
  return subjectKind(subject) === 'vault' ? 'state' : 'status';
}

/** The number of usual steps that lead from one status to another; null when none do. */
function distance(steps: Steps, from: string, to: string): number | null {
  let frontier = [from];
  const seen = new Set(frontier);
  for (let length = 0; frontier.length > 0; length += 1) {
    if (frontier.includes(to)) return length;
    frontier = frontier
      .flatMap((status) => (Object.hasOwn(steps, status) ? (steps[status] ?? []) : []))
      .filter((status) => !seen.has(status));
    for (const status of frontier) seen.add(status);
  }
  return null;
}

/** How a subject moved: one usual step, over a usual step, back along the usual steps, or otherwise. */
export function stepBetween(subject: SubjectId, from: string, to: string): Step {
  const [before, after] = [from.toLowerCase(), to.toLowerCase()];
  if (before === after) return 'same';
  const steps = stepsOf(subject);
  const ahead = distance(steps, before, after);
  if (ahead !== null) return ahead > 1 ? 'skipped' : 'forward';
  return distance(steps, after, before) === null ? 'other' : 'backward';
}
