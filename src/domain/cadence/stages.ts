import { parseSubjectId, type SubjectId } from '../subject.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * How a stage of a subject is polled. `everyMs` is for what somebody named; `discoveredEveryMs` for what a wallet page
 * shows anyway. Tracking ends `finishAfterMs` after the subject came into the stage; null means never.
 * `waiting` stages are those in which a transfer is under way, for which `overdue` exists.
 */
export type Stage = {
  everyMs: number;
  discoveredEveryMs: number;
  finishAfterMs: number | null;
  waiting: boolean;
};

function waiting(everySeconds: number, discoveredEverySeconds: number): Stage {
  return {
    everyMs: everySeconds * SECOND,
    discoveredEveryMs: discoveredEverySeconds * SECOND,
    finishAfterMs: null,
    waiting: true,
  };
}

function idle(everySeconds: number, finishAfterMs: number | null): Stage {
  const everyMs = everySeconds * SECOND;
  return { everyMs, discoveredEveryMs: Math.max(everyMs, 30 * SECOND), finishAfterMs, waiting: false };
}

const FINISHED: Stage = idle(60, 0);

/** Words are in lower case. A pending transfer is never looked at less often than every 30 s at an unstretched price. */
const INTENT: Stages = {
  pending: waiting(5, 30),
  filled: idle(20, 7 * DAY),
  expired: idle(60, 30 * DAY),
  refundable: idle(60, 30 * DAY),
  failed: idle(60, 7 * DAY),
  settled: FINISHED,
  refunded: FINISHED,
};
const QUOTE: Stages = { active: idle(5, 7 * DAY), submitted: idle(20, DAY) };
const GASLESS: Stages = {
  pending: waiting(5, 30),
  submitted: waiting(5, 30),
  published: idle(20, HOUR),
  failed: idle(60, DAY),
};
const GATEWAY: Stages = {
  pending: waiting(5, 30),
  permit_sent: waiting(5, 30),
  completed: FINISHED,
  failed: idle(60, DAY),
};
const VAULT: Stages = {
  pending: idle(5, 30 * DAY),
  funding_detected: waiting(5, 30),
  published: FINISHED,
  expired_unfunded: idle(60, 7 * DAY),
  failed: idle(60, 30 * DAY),
  refunded_by_user: FINISHED,
  recovery_published: FINISHED,
};
const WALLET: Stage = idle(5, null);
/** Watched for as long as the config names it, at the interval that it says. */
const ROUTE: Stages = { available: idle(30, null), unavailable: idle(30, null) };

/** A word that stands in no table: looked at slowly, and not for ever. */
const UNNAMED: Stage = idle(30, 30 * DAY);

/** Not known to the upstream yet: soon, for it may be indexed at any moment. */
const UNSEEN: Stage = {
  everyMs: 5 * SECOND,
  discoveredEveryMs: 10 * SECOND,
  finishAfterMs: null,
  waiting: false,
};

type Stages = { readonly [status: string]: Stage };

/** The stage of a subject in a status; null as status means that the upstream has not shown the subject yet. */
export function stageOf(subject: SubjectId, status: string | null): Stage {
  const key = parseSubjectId(subject);
  if (key?.kind === 'wallet') return WALLET;
  if (status === null) return UNSEEN;
  const stages = stagesOf(key);
  const word = status.toLowerCase();
  return (Object.hasOwn(stages, word) ? stages[word] : undefined) ?? UNNAMED;
}

/** The statuses of a kind that the interface or its notes name, in lower case. Any other word passes as well. */
export const KNOWN_STATUSES = {
  intent: Object.keys(INTENT),
  'deposit-address': Object.keys(INTENT),
  quote: Object.keys(QUOTE),
  gasless: [...new Set([...Object.keys(GASLESS), ...Object.keys(GATEWAY)])],
  vault: Object.keys(VAULT),
  route: Object.keys(ROUTE),
} as const;

function stagesOf(key: ReturnType<typeof parseSubjectId>): Stages {
  switch (key?.kind) {
    case 'intent':
    case 'deposit-address':
      return INTENT;
    case 'quote':
      return QUOTE;
    case 'gasless':
      return key.endpoint === 'gateway' ? GATEWAY : GASLESS;
    case 'vault':
      return VAULT;
    case 'route':
      return ROUTE;
    default:
      return {};
  }
}
