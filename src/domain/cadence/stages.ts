import { parseSubjectId, type SubjectId } from '../subject.ts';
import { TROUBLE_FACTOR, type Watch } from './watch-rules.ts';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;

/**
 * How a stage of a subject is polled. Where something is waited for that has a law (`watch`), by that; else as if changes
 * came at a constant rate, that at which the interval `everyMs` is right at a price of 1, and no sooner than after
 * `leastFactor` shortest waits. Tracking ends `finishAfterMs` after the subject came into the stage; null means never. `waiting` stages are
 * those in which a transfer is under way, for which `overdue` exists.
 */
export type Stage = { finishAfterMs: number | null; waiting: boolean } & (
  | { watch: Watch }
  | { watch: null; everyMs: number; leastFactor: number }
);

function underWay(watch: Watch): Stage {
  return { watch, finishAfterMs: null, waiting: true };
}

function idle(everySeconds: number, finishAfterMs: number | null, leastFactor = 1): Stage {
  return { watch: null, everyMs: everySeconds * SECOND, finishAfterMs, leastFactor, waiting: false };
}

function trouble(finishAfterMs: number): Stage {
  return idle(60, finishAfterMs, TROUBLE_FACTOR);
}

const FINISHED: Stage = idle(60, 0);

/** Words are in lower case. */
const INTENT: Stages = {
  pending: underWay('pending'),
  filled: { watch: 'filled', finishAfterMs: 7 * DAY, waiting: false },
  expired: trouble(30 * DAY),
  refundable: trouble(30 * DAY),
  failed: trouble(7 * DAY),
  settled: FINISHED,
  refunded: FINISHED,
};
const QUOTE: Stages = { active: idle(5, 7 * DAY), submitted: idle(20, DAY, 5) };
const GASLESS: Stages = {
  pending: underWay('gasless'),
  submitted: underWay('gasless'),
  published: idle(20, HOUR, 5),
  failed: trouble(DAY),
};
const GATEWAY: Stages = {
  pending: underWay('gasless'),
  permit_sent: underWay('gasless'),
  completed: FINISHED,
  failed: trouble(DAY),
};
const VAULT: Stages = {
  pending: idle(5, 30 * DAY),
  funding_detected: underWay('vault'),
  published: FINISHED,
  expired_unfunded: trouble(7 * DAY),
  failed: trouble(30 * DAY),
  refunded_by_user: FINISHED,
  recovery_published: FINISHED,
};
/** Watched for as long as the config names it. Its own plan says when (see `planWallet`). */
const WALLET: Stage = idle(5, null);
/** Watched for as long as the config names it, at the interval that it says. */
const ROUTE: Stages = { available: idle(30, null), unavailable: idle(30, null) };

/** A word that stands in no table: looked at slowly, and not for ever. */
const UNNAMED: Stage = idle(30, 30 * DAY, 5);

/** Not known to the upstream yet: soon, for it may be indexed at any moment. */
const UNSEEN: Stage = idle(5, null, 2);

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

/**
 * The interval, at a price of 1, of a stage without law that has lasted so long, seconds: a thirtieth of its age, within
 * bounds. What the upstream has not shown ages from when it was named.
 */
export function stageInterval({ everyMs }: { everyMs: number }, ageSeconds: number): number {
  return Math.max(everyMs / SECOND, Math.min(IDLE_LONGEST_MS / SECOND, ageSeconds / IDLE_SHARE));
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
