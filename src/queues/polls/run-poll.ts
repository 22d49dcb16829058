import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { type Job, Worker } from 'bullmq';
import type { Logger } from 'pino';
import { quoteVault } from '../../domain/quotes/quote-vault.ts';
import type { EndpointGroup } from '../../domain/subjects/kinds.ts';
import { type SubjectId, type SubjectKind, subjectKind, vaultId } from '../../domain/subjects/subject.ts';
import { parseClaimKey } from '../../domain/subjects/subscription.ts';
import { type Pricing, pollPrice, pollRecord } from '../../pollers/poll-subject.ts';
import { reportError } from '../../signals.ts';
import { NOTHING_OBSERVED } from '../../store/observed.ts';
import type { PlanStore } from '../../store/plan.ts';
import { isOpenStatusMember } from '../../store/plan-members.ts';
import { type PollStart, type StartedPoll, startPolls } from '../../store/poll-start.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { PollContext } from './poll-context.ts';
import { type Adapter, AT_ONCE, over, type Polled } from './poll-ends.ts';
import { type PollFailure, PollFailures } from './poll-failures.ts';
import { openStatusAdapter } from './poll-open-status.ts';
import { pageAdapter } from './poll-page.ts';
import { MOST_IN_JOB, POLL_JOB, type PollJob, type SentPoll, TAKE_OVER } from './poll-queues.ts';
import { type Poll, recordAdapter } from './poll-record.ts';
import { transactionAdapter } from './poll-transaction.ts';
import { walletAdapter } from './poll-wallet.ts';
import { type QuoteVerification, UNDECIDED_RETRY_MS } from './quote-verification.ts';

/** Lateness for another slot, doubled each time: else a process that is always later would never make a request. */
const LATE_MS = 30;

/** Waits for the poll's slot of the budget. A process that was held up takes another, so that none are used at once. */
async function awaitSlot(
  start: PollStart,
  { plan, endpointGroup }: { plan: PlanStore; endpointGroup: EndpointGroup },
  signal: AbortSignal,
): Promise<void> {
  let atMs = performance.now() + start.inMs;
  for (let allowedMs = LATE_MS; ; allowedMs *= 2) {
    const restMs = atMs - performance.now();
    if (restMs > 1) await wait(restMs, undefined, { signal });
    signal.throwIfAborted();
    const lateMs = performance.now() - atMs;
    if (lateMs <= allowedMs) return;
    const inMs = await plan.reslot(endpointGroup);
    start.planMs += lateMs + inMs;
    start.nowMs += Math.round(lateMs + inMs);
    atMs = performance.now() + inMs;
  }
}

/** Process, adapters and dispatcher of polls, which all endpoint groups share. */
export type PollDeps = { process: string; adapters: Adapters; dispatcher: Dispatcher };

/** Runs the polls of one endpoint group. `tookMs` receives the time that taking a claim took. */
export type PollRunner = PollDeps & {
  endpointGroup: EndpointGroup;
  deps: PollContext;
  failures: PollFailures;
  tookMs: (ms: number) => void;
};

/** Wait after an error of our own (Redis away, a bug). No failure is counted. */
const ERROR_RETRY_MS = 2_000;

/** Starts the polls of a job. Where that fails, they return to the plan by their leases. */
async function takePolls(
  sent: readonly SentPoll[],
  { deps, process, tookMs }: PollRunner,
): Promise<StartedPoll[]> {
  const { redis, keys, stores } = deps;
  const { subjects, registry, importedQuotes, wallets } = stores;
  const beganAt = performance.now();
  const readers = { redis, keys, subjects, registry, importedQuotes, wallets };
  const started = await startPolls(readers, sent, process).catch((error: unknown) => {
    const fault = error instanceof Error ? error : new Error(String(error));
    return sent.map(() => fault);
  });
  tookMs(performance.now() - beganAt);
  return started;
}

/** Runs one started poll: requests, ingests and plans by the kind's adapter, and notes the end. Never throws. */
async function runPoll(
  sent: SentPoll,
  start: StartedPoll,
  runner: PollRunner,
  signal: AbortSignal,
): Promise<void> {
  const { member, token: claimedToken } = sent;
  const { dispatcher, deps } = runner;
  let token: string | null = null;
  try {
    if (start instanceof Error) throw start;
    if (start === null) return;
    token = start.token;
    dispatcher.hold({ claimedToken, member, token });
    const polled = await poll(start, runner, signal).catch((error: unknown): Polled => {
      if (!signal.aborted) reportError(deps, 'poll.error', { member, error });
      const next = { ...AT_ONCE, restMs: signal.aborted ? 0 : ERROR_RETRY_MS };
      return { end: 'back', next, observed: NOTHING_OBSERVED, outcome: 'aborted' };
    });
    await end(start, runner, polled);
  } catch (error) {
    // The claim returns to the plan by its lease: Redis is away, and no failure is counted.
    deps.log.warn({ member, error }, 'poll.not_ended');
    deps.signals.emit('error.internal', { part: 'poll' });
  } finally {
    dispatcher.release({ claimedToken, member, token });
  }
}

async function poll(start: PollStart, runner: PollRunner, signal: AbortSignal): Promise<Polled> {
  const { endpointGroup, adapters, deps, failures } = runner;
  const adapter = adapters[subjectKind(start.subject)](start);
  try {
    if (start.claims.length === 0 || (await adapter.isOver(start))) return over('ended');
    await awaitSlot(start, { plan: deps.stores.plan, endpointGroup }, signal);
    return await adapter.poll(start, signal);
  } catch (error) {
    if (signal.aborted) return { ...over('aborted'), end: 'back' };
    await runner.dispatcher.doubt();
    const failure = await failures.handle(error, start);
    // Ends that were sent meanwhile may not have found it.
    await runner.dispatcher.doubt();
    logFailure(deps.log, start.subject, failure);
    return adapter.failed(start, failure);
  }
}

async function end(start: PollStart, runner: PollRunner, polled: Polled): Promise<void> {
  const { deps, failures, dispatcher } = runner;
  const { subject } = start;
  const { next, outcome, observed } = polled;
  // Stored or not: what counts then is the version in Redis.
  if (observed.after !== undefined) deps.stores.wallets.holdOpen(subject, observed.after);
  await dispatcher.end(start, polled, async (isWaitedFor) => {
    if (isWaitedFor && outcome === 'answered') await failures.answered(start);
  });
  // Of polls that may have ended a process, one is made at a time: the next one waits for this end.
  if (next.restMs === 0 || next.alarmMs === 0 || start.lane === 'suspect') dispatcher.wake();
  deps.signals.emit('poll.ended', {
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

/** Polls a quote whose signature is undecided: it stays in the plan beyond the end of its tracking, until it is decided. */
function untilDecided(record: Adapter): Adapter {
  const later: Polled = {
    end: 'next',
    next: { ...AT_ONCE, restMs: UNDECIDED_RETRY_MS },
    observed: NOTHING_OBSERVED,
    outcome: 'verified',
  };
  return {
    isOver: async () => false,
    poll: async (start, signal) => {
      if (await record.isOver(start)) return later;
      const polled = await record.poll(start, signal);
      return polled.end === 'finish' ? { ...polled, end: 'next', next: later.next } : polled;
    },
    failed: record.failed,
  };
}

/** Claims the vault of an imported quote for the subscriptions that want it, before the quote is polled. */
function withVault(adapter: Adapter, { stores: { subjects } }: PollContext): Adapter {
  return {
    isOver: async (start) => {
      const vault = start.imported === null ? null : quoteVault(start.imported.quote);
      const claims = start.claims.filter(({ key }) =>
        start.subscriptions.get(parseClaimKey(key).subscription)?.vaultQuotes?.includes(start.subject),
      );
      if (vault !== null && !('found' in vault) && claims.length > 0) {
        await subjects.claim(vaultId(vault), claims);
      }
      return adapter.isOver(start);
    },
    poll: (start, signal) => adapter.poll(start, signal),
    failed: (start, failure) => adapter.failed(start, failure),
  };
}

type Adapters = Readonly<Record<SubjectKind, (start: PollStart) => Adapter>>;

/**
 * Builds the adapters of all kinds. `quotes` verifies imported quotes, `pricing` provides the prices of routes, `openStatus` the
 * statuses of the open source; null without it.
 */
export function adaptersOf(
  deps: PollContext,
  { quotes, pricing, openStatus }: { quotes: QuoteVerification; pricing: Pricing; openStatus: Poll | null },
): Adapters {
  const { client } = deps;
  const record = recordAdapter(deps, ({ subject }, signal) => pollRecord(client, subject, signal));
  const transaction = transactionAdapter(deps, ({ subject }, signal) => pollRecord(client, subject, signal));
  const route = recordAdapter(deps, (target, signal) => pollPrice(pricing, target, signal));
  const wallet = walletAdapter(deps);
  const undecided = untilDecided(record);
  const isOpenAlone = openStatus !== null && deps.rules.statusSource === 'open';
  const intent = isOpenAlone ? recordAdapter(deps, openStatus) : record;
  const second = openStatus === null ? null : openStatusAdapter(deps, openStatus);
  return {
    intent: ({ member }) => (second !== null && isOpenStatusMember(member) ? second : intent),
    gasless: () => record,
    vault: () => record,
    quote: ({ imported }) => {
      if (imported === null) return record;
      if (quotes.isDue(imported)) return withVault(quotes, deps);
      return withVault(imported.verdict === null ? undecided : record, deps);
    },
    'by-tx': () => transaction,
    route: () => route,
    wallet: (start) => (start.sweep === null ? wallet : pageAdapter(deps, start)),
    'deposit-address': () => record,
    other: () => record,
  };
}

/**
 * Time for which jobs are fetched before those that were fetched begin. BullMQ fetches one after the other up to its
 * concurrency, and only then begins them. Behind a slow Redis hundreds would wait for each other's round trips; few at a time
 * cost more where it is quick.
 */
const FETCHED_FOR_MS = 1_000;
const LEAST_FETCHED = 4;
const MOST_FETCHED = 100;

/** Polls one endpoint group of the upstream: takes jobs of some claims from its queue. A claim is one request. */
export class PollWorker {
  readonly #deps: PollContext;
  readonly #runner: PollRunner;
  #worker: Worker<PollJob> | null = null;
  #capacity = 1;
  /** Jobs and polls under way. */
  #jobs = 0;
  #underWay = 0;
  /** Running mean of a round trip, ms. */
  #tripMs = FETCHED_FOR_MS;

  constructor(endpointGroup: EndpointGroup, deps: PollContext, by: PollDeps) {
    const { stores, signals, log } = deps;
    const failures = new PollFailures(endpointGroup, { health: stores.health, signals, log });
    this.#deps = deps;
    this.#runner = { ...by, endpointGroup, deps, failures, tookMs: (ms) => this.#took(ms) };
  }

  start({ capacity }: { capacity: number }): void {
    // BullMQ can cancel a processor at shutdown if it declares its third parameter.
    const process = async (job: Job<PollJob>, _token?: string, signal?: AbortSignal): Promise<void> =>
      this.run(POLL_JOB.parse(job.data), signal ?? new AbortController().signal);
    this.#capacity = capacity;
    const worker = new Worker<PollJob>(this.#runner.endpointGroup, process, {
      connection: this.#deps.redis,
      prefix: this.#deps.keys.queues,
      concurrency: this.#concurrency(),
      ...TAKE_OVER,
    });
    worker.on('error', (error) => this.#deps.log.debug({ error: error.message }, 'poll-worker.error'));
    this.#worker = worker;
  }

  /** Runs the polls of a job side by side. None of them throws, and none waits for another. */
  async run({ polls }: PollJob, signal: AbortSignal): Promise<void> {
    this.#jobs += 1;
    this.#underWay += polls.length;
    this.#adapt();
    const starts = await takePolls(polls, this.#runner);
    await Promise.all(polls.map((poll, at) => this.#run(poll, starts[at] ?? null, signal)));
    this.#jobs -= 1;
    this.#adapt();
  }

  async #run(poll: SentPoll, start: StartedPoll, signal: AbortSignal): Promise<void> {
    await runPoll(poll, start, this.#runner, signal);
    this.#underWay -= 1;
    this.#adapt();
  }

  #adapt(): void {
    if (this.#worker !== null) this.#worker.concurrency = this.#concurrency();
  }

  #took(ms: number): void {
    this.#tripMs += (ms - this.#tripMs) / 10;
  }

  #concurrency(): number {
    const fetched = Math.max(
      LEAST_FETCHED,
      Math.min(MOST_FETCHED, Math.round(FETCHED_FOR_MS / this.#tripMs)),
    );
    const free = Math.ceil(Math.max(0, this.#capacity - this.#underWay) / MOST_IN_JOB);
    return Math.max(1, this.#jobs + Math.min(fetched, free));
  }

  isRunning(): boolean {
    return this.#worker?.isRunning() ?? false;
  }

  /** Stops taking polls and waits for those under way; `abort` cuts them off and releases them. */
  async close(abort: AbortSignal): Promise<void> {
    const worker = this.#worker;
    if (worker === null) return;
    const cut = (): void => worker.cancelAllJobs('shutdown');
    abort.addEventListener('abort', cut);
    if (abort.aborted) cut();
    await worker.close();
    abort.removeEventListener('abort', cut);
  }
}
