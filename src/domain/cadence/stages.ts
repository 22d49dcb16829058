import { parseSubjectId, type SubjectId } from '../subject.ts';
import type { Watch } from './watch-rules.ts';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;

/**
 * How a stage of a subject is polled. Where something is waited for that has a law (`watch`), by that; else at an
 * interval. Tracking ends `finishAfterMs` after the subject came into the stage; null means never. `waiting` stages are
 * those in which a transfer is under way, for which `overdue` exists.
 */
export type Stage = { finishAfterMs: number | null; waiting: boolean } & (
  | { watch: Watch }
  | { watch: null; everyMs: number }
);

function underWay(watch: Watch): Stage {
  return { watch, finishAfterMs: null, waiting: true };
}

function idle(everySeconds: number, finishAfterMs: number | null): Stage {
  return { watch: null, everyMs: everySeconds * SECOND, finishAfterMs, waiting: false };
}

const FINISHED: Stage = idle(60, 0);

/** Words are in lower case. */
const INTENT: Stages = {
  pending: underWay('pending'),
  filled: { watch: 'filled', finishAfterMs: 7 * DAY, waiting: false },
  expired: idle(60, 30 * DAY),
  refundable: idle(60, 30 * DAY),
  failed: idle(60, 7 * DAY),
  settled: FINISHED,
  refunded: FINISHED,
};
const QUOTE: Stages = { active: idle(5, 7 * DAY), submitted: idle(20, DAY) };
const GASLESS: Stages = {
  pending: underWay('gasless'),
  submitted: underWay('gasless'),
  published: idle(20, HOUR),
  failed: idle(60, DAY),
};
const GATEWAY: Stages = {
  pending: underWay('gasless'),
  permit_sent: underWay('gasless'),
  completed: FINISHED,
  failed: idle(60, DAY),
};
const VAULT: Stages = {
  pending: idle(5, 30 * DAY),
  funding_detected: underWay('vault'),
  published: FINISHED,
  expired_unfunded: idle(60, 7 * DAY),
  failed: idle(60, 30 * DAY),
  refunded_by_user: FINISHED,
  recovery_published: FINISHED,
};
/** Watched for as long as the config names it. Its own plan says when (see `planWallet`). */
const WALLET: Stage = idle(5, null);
/** Watched for as long as the config names it, at the interval that it says. */
const ROUTE: Stages = { available: idle(30, null), unavailable: idle(30, null) };

/** A word that stands in no table: looked at slowly, and not for ever. */
const UNNAMED: Stage = idle(30, 30 * DAY);

/** Not known to the upstream yet: soon, for it may be indexed at any moment. */
const UNSEEN: Stage = idle(5, null);

/** A stage without law is looked at every thirtieth of its age, up to this. */
const IDLE_SHARE = 30;
const IDLE_LONGEST_MS = 600_000;

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

/** The interval, at a price of 1, of a subject that has been in a stage without law for so long, ms. */
export function stageInterval(input: { subject: SubjectId; status: string | null; ageMs: number }): number {
  const stage = stageOf(input.subject, input.status);
  const everyMs = stage.watch === null ? stage.everyMs : 0;
  if (input.status === null) return everyMs;
  return Math.max(everyMs, Math.min(IDLE_LONGEST_MS, input.ageMs / IDLE_SHARE));
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
