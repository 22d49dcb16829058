import type { Knowledge } from '../domain/cadence/knowledge.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import type { RelayStores } from '../queues/deliveries/relay-parts.ts';
import type { AnswerStore } from '../store/answers.ts';
import type { CheckStore } from '../store/checks.ts';
import type { RedisClient } from '../store/commands.ts';
import type { ConsumerStore } from '../store/consumers.ts';
import type { LearnedStore } from '../store/learned.ts';
import type { PlanStore } from '../store/plan.ts';
import type { SessionStore } from '../store/sessions.ts';
import type { SubjectStore } from '../store/subjects.ts';
import type { TrackedStore } from '../store/tracked.ts';

/** What operators see and act with, whether they ask a running daemon or the command line: its own stores. */
export type OperationParts = {
  redis: RedisClient;
  /** What chains and tokens are called, as the daemon knew it last. */
  directory: Directory;
  /** What was learned of all pairs of chains, as it stands now. */
  knowledge: () => Promise<Knowledge>;
  /** The time that what leaves the config is suspended. */
  graceSpanMs: number;
  stores: RelayStores & {
    subjects: SubjectStore;
    plan: PlanStore;
    answers: AnswerStore;
    consumers: ConsumerStore;
    tracked: TrackedStore;
    learned: LearnedStore;
    sessions: SessionStore;
    checks: CheckStore;
  };
};
