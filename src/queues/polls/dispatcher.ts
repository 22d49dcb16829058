import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import type { EndpointGroup } from '../../domain/subjects/kinds.ts';
import { Duty } from '../../duty.ts';
import { messageOf } from '../../errors.ts';
import { reportError, type Signals } from '../../signals.ts';
import { chunks } from '../../store/commands.ts';
import type { ClaimedPoll, PlanStore } from '../../store/plan.ts';
import { parseMember } from '../../store/plan-members.ts';
import type { PollStart } from '../../store/poll-start.ts';
import { type Follow, isQuietEnd, PollEnds, type Polled } from './poll-ends.ts';
import { MOST_IN_JOB, type PollQueues } from './poll-queues.ts';

/** Share of the last `ofMs` in which an event loop was busy, 0 to 1. */
type Busy = () => { share: number; ofMs: number };

/** A share over a shorter time is not meaningful. */
const LEAST_SPAN_MS = 50;

/** Share from which the process is the bottleneck: more polls would only wait in it, and cost memory. */
const BUSY_SHARE = 0.9;

const FEWER = 0.8;
const MORE = 1.5;

/** Polls that occupy a process when the upstream answers at once: each waits for its job, its request, and twice for Redis. */
const LEAST = 400;

/**
 * Number of polls that a process has under way at once: the capacity, unless the process itself is the bottleneck.
 *
 * | the event loop | of what is allowed      | allowed from then on        |
 * |----------------|-------------------------|-----------------------------|
 * | is busy        |                         | a fifth fewer, at least 400 |
 * | is free        | most is with workers    | half as many more           |
 * | is free        | little is               | the same                    |
 */
export class LoadLimit {
  readonly #capacity: number;
  readonly #busy: Busy;
  #allowed: number;

  constructor(capacity: number, busy: Busy = eventLoopBusy()) {
    this.#capacity = capacity;
    this.#busy = busy;
    this.#allowed = Math.min(capacity, LEAST);
  }

  get allowed(): number {
    return this.#allowed;
  }

  /** Adapts to how busy the event loop was while workers had `started` polls. Polls that only wait for a worker do not count. */
  adapt(started: number): void {
    const { share, ofMs } = this.#busy();
    if (ofMs < LEAST_SPAN_MS) return;
    if (share >= BUSY_SHARE) this.#allowed = Math.floor(this.#allowed * FEWER);
    else if (started > this.#allowed / MORE) this.#allowed = Math.ceil(this.#allowed * MORE);
    this.#allowed = Math.min(this.#capacity, Math.max(LEAST, this.#allowed));
  }
}

function eventLoopBusy(): Busy {
  let before = performance.eventLoopUtilization();
  return () => {
    const { utilization, active, idle } = performance.eventLoopUtilization(before);
    const ofMs = active + idle;
    if (ofMs >= LEAST_SPAN_MS) before = performance.eventLoopUtilization();
    return { share: utilization, ofMs };
  };
}

type DispatcherDeps = { plan: PlanStore; queues: PollQueues; signals: Signals; log: Logger };

type DispatcherOptions = { endpointGroup: EndpointGroup; process: string; capacity: number };

/** Time ahead of a slot at which it is assigned: long enough for a job to reach its worker. */
const AHEAD_MS = 150;

const MOST = 100;

/** With the most polls under way, share of them that must end before the plan is requested again. */
const WORTH_A_CLAIM = 0.25;

/** Longest wait for a claim: other processes request polls as well, of which nothing wakes this one. */
const QUIET_MS = 1_000;

/** Shortest interval, however many slots there are: a few claims at once cost little more than one. */
const SHORTEST_MS = 10;

const ERROR_RETRY_MS = 1_000;

const FAILING_AFTER_MS = 8_000;

const RENEW_EVERY_MS = 2_000;
const REPAIR_EVERY_MS = 2_000;

/** Longest renewal and check. */
const MOST_MS = 5_000;

/** Interval of renewing claims on their way to a worker; see CLAIM_LEASE of the plan. */
const CLAIM_RENEW_EVERY_MS = 1_000;

/** Age at which a job that no worker has claimed is checked: Redis may have lost it. */
const CLAIMED_MS = 5_000;

/** Claims polls of an endpoint group by plan and budget and renews their leases. One per process and group; all share a plan. */
export class Dispatcher {
  readonly #deps: DispatcherDeps;
  readonly #options: DispatcherOptions;
  readonly #limit: LoadLimit;
  readonly #ends: PollEnds;
  /** Members under way by token; and, by token, claims on their way to a worker, with the time they were sent. */
  readonly #held = new Map<string, string>();
  readonly #claimed = new Map<string, { member: string; job: string; at: number; storedAt: number }>();
  readonly #claiming: Duty;
  readonly #renewing: Duty;
  readonly #repairing: Duty;
  /** Start of the time in which claims fail (own clock, ms), and the reason. */
  #failing: { sinceMs: number; reason: string } | null = null;
  #ignoreRequests: () => void = () => undefined;

  constructor(deps: DispatcherDeps, options: DispatcherOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#limit = new LoadLimit(options.capacity);
    const { endpointGroup } = options;
    this.#ends = new PollEnds(deps.plan, endpointGroup);
    this.#claiming = new Duty({
      everyMs: QUIET_MS,
      isShared: true,
      run: async () => ({ waitMs: await this.#claim() }),
      onError: (error) => ({ waitMs: this.#fail(error) }),
    });
    this.#renewing = new Duty({
      everyMs: RENEW_EVERY_MS,
      isShared: true,
      mostMs: MOST_MS,
      run: () => this.#renew(),
      onError: (error) => {
        if (this.isRunning()) deps.log.warn({ endpointGroup, error }, 'lease.error');
      },
    });
    this.#repairing = new Duty({
      everyMs: REPAIR_EVERY_MS,
      isShared: true,
      mostMs: MOST_MS,
      run: () => this.#repair(),
      onError: (error) => {
        if (this.isRunning()) reportError(deps, 'repair.error', { endpointGroup, error });
      },
    });
  }

  start(): void {
    this.#ignoreRequests = this.#deps.plan.onRequest(this.#options.endpointGroup, () => this.wake());
    this.#claiming.start(0);
    this.#renewing.start();
    this.#repairing.start();
  }

  isRunning(): boolean {
    return this.#claiming.isOn;
  }

  failure(): string | null {
    const { sinceMs, reason } = this.#failing ?? { sinceMs: performance.now(), reason: '' };
    return performance.now() - sinceMs >= FAILING_AFTER_MS ? reason : null;
  }

  wake(): void {
    this.#claiming.soon();
  }

  hold(poll: { claimedToken: string; member: string; token: string }): void {
    this.#claimed.delete(poll.claimedToken);
    this.#held.set(poll.member, poll.token);
  }

  release(poll: { claimedToken: string; member: string; token: string | null }): void {
    this.#claimed.delete(poll.claimedToken);
    if (poll.token !== null && this.#held.get(poll.member) === poll.token) this.#held.delete(poll.member);
    if (this.#free() === Math.ceil(this.#limit.allowed * WORTH_A_CLAIM)) this.wake();
  }

  /**
   * Ends a held poll, and what follows that. An end may wait while another held poll has yet to end, and claims are not limited by the number of polls under way.
   */
  end(start: PollStart, polled: Polled, follow: Follow): Promise<void> {
    const { member, subject, token } = start;
    const { end: outcome, next, observed } = polled;
    const isLast = this.#held.size <= this.#ends.waiting + 1;
    const isLimited = this.#free() < MOST_IN_JOB;
    const mayWait = !isLast && !isLimited && this.isRunning() && isQuietEnd(start, polled);
    return this.#ends.end({ poll: { member, subject, token }, outcome, next, observed }, mayWait, follow);
  }

  /** Sends the ends that wait, before a failure counts, and lets none wait behind it. Resolves when their responses count. */
  doubt(): Promise<void> {
    return this.#ends.doubt();
  }

  get #underWay(): number {
    return this.#held.size + this.#claimed.size;
  }

  #free(): number {
    return this.#limit.allowed - this.#underWay;
  }

  async #claim(): Promise<number> {
    const waitMs = await this.round();
    this.#failing = null;
    return waitMs;
  }

  /** Returns the wait until the next claim. */
  #fail(error: unknown): number {
    const reason = messageOf(error);
    this.#failing = { sinceMs: this.#failing?.sinceMs ?? performance.now(), reason };
    reportError(this.#deps, 'dispatch.error', { endpointGroup: this.#options.endpointGroup, error });
    return ERROR_RETRY_MS;
  }

  /** Claims due polls and passes them on. Returns the ms until another request is worth it. */
  async round(): Promise<number> {
    const { endpointGroup, process } = this.#options;
    const now = performance.now();
    // First: the steps before the claim may fail.
    void this.#ends.flush();
    await this.#removeLost(now);
    this.#limit.adapt(this.#held.size);
    const most = Math.max(0, Math.min(MOST, this.#free()));
    const sent = this.#stillClaimed(now);
    const claimed = await this.#deps.plan.claim(endpointGroup, { process, most, aheadMs: AHEAD_MS, sent });
    for (const token of claimed.arrived) this.#claimed.delete(token);
    await this.#hand(claimed.polls, now);
    if (claimed.returned > 0) {
      this.#deps.signals.emit('claims.returned', { endpointGroup, count: claimed.returned });
    }
    for (const { member, crashes } of claimed.crashed) {
      const { subject } = parseMember(member);
      this.#deps.signals.emit('poll.crashed', { subject, crashes });
      this.#deps.log.error({ subject, crashes }, 'poll.crashed');
    }
    if (most === 0) return QUIET_MS;
    return Math.max(SHORTEST_MS, Math.min(QUIET_MS, claimed.waitMs ?? QUIET_MS));
  }

  /** Passes claims to the queue. A claim that may not have reached it is renewed by no process, and returns to the plan. */
  async #hand(polls: readonly ClaimedPoll[], now: number): Promise<void> {
    if (polls.length === 0) return;
    const jobs = chunks(polls, MOST_IN_JOB);
    // Before they are sent: a worker may take one before the reply reaches us.
    for (const some of jobs) {
      const job = some[0]?.token ?? '';
      for (const { member, token } of some) this.#claimed.set(token, { member, job, at: now, storedAt: now });
    }
    try {
      await this.#deps.queues.add(this.#options.endpointGroup, jobs);
    } catch (error) {
      for (const { token } of polls) this.#claimed.delete(token);
      throw error;
    }
  }

  #stillClaimed(now: number): { member: string; token: string }[] {
    const still: { member: string; token: string }[] = [];
    for (const [token, sent] of this.#claimed) {
      if (now - sent.storedAt < CLAIM_RENEW_EVERY_MS) continue;
      sent.storedAt = now;
      still.push({ member: sent.member, token });
    }
    return still;
  }

  async #removeLost(now: number): Promise<void> {
    const old = [...this.#claimed].filter(([, { at }]) => now - at > CLAIMED_MS);
    const jobs = new Set(old.map(([, { job }]) => job));
    const lost = await this.#deps.queues.missing(this.#options.endpointGroup, [...jobs]);
    for (const [token, sent] of old) {
      if (lost.includes(sent.job)) this.#claimed.delete(token);
      else sent.at = now;
    }
  }

  async #renew(): Promise<void> {
    const { endpointGroup, process } = this.#options;
    const polls = [...this.#held].map(([member, token]) => ({ member, token }));
    // Each claim records as well that this process is alive.
    if (polls.length === 0) return;
    await this.#deps.plan.renew(endpointGroup, { process, polls });
  }

  /** Checks a part of the plan. It repairs something only if keys were lost or written by another program. */
  async #repair(): Promise<void> {
    const { endpointGroup } = this.#options;
    for (const member of await this.#deps.plan.repair(endpointGroup)) {
      const { subject } = parseMember(member);
      this.#deps.signals.emit('repair.done', { what: 'poll-missing', subject });
      this.#deps.log.warn({ what: 'poll-missing', subject }, 'repair.done');
    }
  }

  /** Claims nothing more. Held leases are renewed until `close`. */
  stop(): void {
    this.#ignoreRequests();
    void this.#claiming.close();
    void this.#ends.flush();
  }

  async close(): Promise<void> {
    this.#ignoreRequests();
    void this.#repairing.close();
    await Promise.all([this.#claiming.close(), this.#renewing.close()]);
  }
}
