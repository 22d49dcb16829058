import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import type { EndpointGroup } from '../../domain/subjects/kinds.ts';
import { type SubjectId, subjectKind } from '../../domain/subjects/subject.ts';
import { NOTHING_OBSERVED } from '../../store/observed.ts';
import { type PollStart, takePoll } from '../../store/poll-start.ts';
import type { PollJob } from '../names.ts';
import type { Adapters } from './adapters.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { PollFailure, PollFailures } from './poll-failures.ts';
import type { PollParts } from './poll-parts.ts';
import { AT_ONCE, over, type Polled } from './polled.ts';
import { awaitSlot } from './slot.ts';

/** Who runs the polls of one endpoint group. `tookMs` hears how long it took to take a claim. */
export type PollRunner = {
  endpointGroup: EndpointGroup;
  process: string;
  parts: PollParts;
  adapters: Adapters;
  dispatcher: Dispatcher;
  failures: PollFailures;
  tookMs: (ms: number) => void;
};

/** After an error of our own (Redis away, a bug) a poll is tried again; it counts against nobody. */
const ERROR_RETRY_MS = 2_000;

/**
 * Runs one poll: takes a claim; makes the request, takes in what it brings and plans the next poll,
 * each as the kind of the subject has it; and says in the plan how it ended. Never throws.
 */
export async function runPoll(job: PollJob, runner: PollRunner, signal: AbortSignal): Promise<void> {
  const { member, token: claimedToken } = job;
  const { dispatcher, parts } = runner;
  let start: PollStart | null = null;
  try {
    start = await take(job, runner);
    if (start === null) return;
    dispatcher.hold({ claimedToken, member, token: start.token });
    const polled = await poll(start, runner, signal).catch((error: unknown): Polled => {
      if (!signal.aborted) parts.log.error({ member, error }, 'poll.error');
      const next = { ...AT_ONCE, restMs: signal.aborted ? 0 : ERROR_RETRY_MS };
      return { end: 'back', next, observed: NOTHING_OBSERVED, outcome: 'aborted' };
    });
    await end(start, runner, polled);
  } catch (error) {
    // The claim goes back by its lease: Redis is away, and that counts against nobody.
    parts.log.warn({ member, error }, 'poll.not_ended');
  } finally {
    dispatcher.release({ claimedToken, member, token: start?.token ?? null });
  }
}

/** Takes a claim, with all that is known before its request. */
async function take(job: PollJob, { parts, process, tookMs }: PollRunner): Promise<PollStart | null> {
  const { redis, keys, stores } = parts;
  const { subjects, registry, importedQuotes } = stores;
  const beganAt = performance.now();
  const start = await takePoll({ redis, keys, subjects, registry, importedQuotes }, job, process);
  tookMs(performance.now() - beganAt);
  return start;
}

/** Polls a subject in its slot of the budget, by the adapter of its kind, where there is something left to find out. */
async function poll(start: PollStart, runner: PollRunner, signal: AbortSignal): Promise<Polled> {
  const { endpointGroup, adapters, parts, failures } = runner;
  const adapter = adapters[subjectKind(start.subject)](start);
  try {
    if (start.claims.length === 0 || (await adapter.isOver(start))) return over('ended');
    await awaitSlot(start, { plan: parts.stores.plan, endpointGroup }, signal);
    return await adapter.poll(start, signal);
  } catch (error) {
    if (signal.aborted) return { ...over('aborted'), end: 'back' };
    const failure = await failures.handle(error, start);
    logFailure(parts.log, start.subject, failure);
    return adapter.failed(start, failure);
  }
}

/** Says in the plan how a poll ended, and when the next is due. */
async function end(start: PollStart, runner: PollRunner, polled: Polled): Promise<void> {
  const { parts, failures, dispatcher } = runner;
  const { member, subject, token, endpointGroup } = start;
  const { next, observed, outcome } = polled;
  const ended = { member, subject, token, endpointGroup };
  const hasToHear = await parts.stores.plan.end(ended, polled.end, next, observed);
  if (hasToHear && outcome === 'answered') await failures.answered(start);
  // Of what may have ended a process, one is polled at a time: the next one waits for this end.
  if (next.restMs === 0 || next.alarmMs === 0 || start.lane === 'suspect') dispatcher.wake();
  parts.signals.emit('poll.ended', {
    endpointGroup: runner.endpointGroup,
    kind: subjectKind(subject),
    outcome,
    lagSeconds: start.lateMs / 1_000,
  });
}

function logFailure(log: Logger, subject: SubjectId, failure: PollFailure): void {
  const { code, reason, support, afterMs } = failure;
  const level = code === 'invalid-request' ? 'error' : 'info';
  log[level]({ subject, code, reason, ...support, nextInMs: Math.round(afterMs) }, 'poll.failed');
}
