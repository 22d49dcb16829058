import { type Job, Worker } from 'bullmq';
import type { EndpointGroup } from '../../domain/subjects/kinds.ts';
import type { StartedPoll } from '../../store/poll-start.ts';
import type { PollContext } from './poll-context.ts';
import { PollFailures } from './poll-failures.ts';
import { MOST_IN_JOB, POLL_JOB, type PollJob, type SentPoll, TAKE_OVER } from './poll-queues.ts';
import { type PollDeps, type PollRunner, runPoll, takePolls } from './run-poll.ts';

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
