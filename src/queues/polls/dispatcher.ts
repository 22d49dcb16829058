import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import type { EndpointGroup } from '../../domain/subjects/kinds.ts';
import type { Signals } from '../../signals.ts';
import type { ClaimedPoll, PlanStore } from '../../store/plan.ts';
import { parseMember } from '../../store/plan-members.ts';
import { withTimeout } from '../../with-timeout.ts';
import type { PollQueues } from './poll-queues.ts';

/** For which share of the last so many ms an event loop was busy, 0 to 1. */
type Busy = () => { share: number; ofMs: number };

/** A share over less than this says little. */
const LEAST_SPAN_MS = 50;

/** From this on the process is the bottleneck: more at once would only wait in it, and cost memory. */
const BUSY_SHARE = 0.9;

const FEWER = 0.8;
const MORE = 1.5;

/** So many at once keep a process busy whose upstream answers at once; each waits for its job, for Redis twice, and is asked. */
const LEAST = 400;

/**
 * The number of polls a process that has under way at once: as many as the capacity, unless the process itself is the bottleneck.
 *
 * | the event loop | of what is allowed      | allowed from then on        |
 * |----------------|-------------------------|-----------------------------|
 * | is busy        |                         | a fifth fewer, at least 400 |
 * | has room       | most is with workers    | half as many more           |
 * | has room       | little is               | the same                    |
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

  /** Looks at how busy the event loop was while workers had so many polls. What only waits for a worker says nothing. */
  adapt(taken: number): void {
    const { share, ofMs } = this.#busy();
    if (ofMs < LEAST_SPAN_MS) return;
    if (share >= BUSY_SHARE) this.#allowed = Math.floor(this.#allowed * FEWER);
    else if (taken > this.#allowed / MORE) this.#allowed = Math.ceil(this.#allowed * MORE);
    this.#allowed = Math.min(this.#capacity, Math.max(LEAST, this.#allowed));
  }
}

/** The utilization of this process's event loop. */
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

/** Which endpoint group is dispatched by which process, and how many polls it may have under way at once. */
type DispatcherOptions = { endpointGroup: EndpointGroup; process: string; capacity: number };

/** Slots of the budget are assigned so far ahead: long enough for a job to reach its worker. */
const AHEAD_MS = 100;

/** The most claims that one script hands out. */
const MOST = 100;

/** With all under way that may be, the plan is asked once so large a share of it has ended. */
const WORTH_A_CLAIM = 0.25;

/** With nothing to do, the plan is asked so often all the same: another process may have put something into it. */
const QUIET_MS = 500;

/** Not sooner than this again, however many slots there are: a few claims at once cost little more than one. */
const SHORTEST_MS = 10;

const ERROR_RETRY_MS = 1_000;

/** Claims that have failed for so long are no passing trouble. */
const FAILING_AFTER_MS = 8_000;

/** Leases are renewed so often, and a part of the plan is looked through. */
const RENEW_EVERY_MS = 2_000;
const REPAIR_EVERY_MS = 1_000;

/** A renewal or a check that takes longer is left to itself: a command to a frozen node of a cluster may never end. */
const MOST_MS = 5_000;

/** What is on its way to a worker is stored for it so often; see CLAIM_LEASE of the plan. */
const KEEP_EVERY_MS = 1_000;

/** Of a job that no worker has taken by then it is asked whether it is still there: a Redis may have lost it. */
const CLAIMED_MS = 5_000;

/**
 * Claims polls of one endpoint group, as the plan and the budget allow, and hands them to the workers; keeps the leases of what
 * this process works on. Every process has one per endpoint group; the plan is what they share.
 */
export class Dispatcher {
  readonly #parts: DispatcherDeps;
  readonly #options: DispatcherOptions;
  readonly #limit: LoadLimit;
  /** Members under way in this process, by their token; and, by token, what is on its way to a worker, with when it left. */
  readonly #held = new Map<string, string>();
  readonly #claimed = new Map<string, { member: string; at: number; keptAt: number }>();
  #wake: (() => void) | null = null;
  #woken = false;
  #running: Promise<void> | null = null;
  #timers: NodeJS.Timeout[] = [];
  #closing = false;
  /** Since when nothing could be claimed (own clock, ms), and why. */
  #failing: { sinceMs: number; reason: string } | null = null;
  /** One of each at a time: while Redis is away they would pile up, and all be made when it is back. See MOST_MS. */
  #renewing: Promise<unknown> | null = null;
  #repairing = false;

  constructor(parts: DispatcherDeps, options: DispatcherOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#limit = new LoadLimit(options.capacity);
  }

  start(): void {
    this.#running = this.#run();
    this.#timers = [
      setInterval(() => {
        this.#renewing ??= withTimeout(this.#renew(), MOST_MS).finally(() => {
          this.#renewing = null;
        });
      }, RENEW_EVERY_MS),
      setInterval(() => void this.#repair(), REPAIR_EVERY_MS),
    ];
  }

  isRunning(): boolean {
    return this.#running !== null && !this.#closing;
  }

  /** Why nothing can be claimed, where that has been so for a while; null otherwise. */
  failure(): string | null {
    const { sinceMs, reason } = this.#failing ?? { sinceMs: performance.now(), reason: '' };
    return performance.now() - sinceMs >= FAILING_AFTER_MS ? reason : null;
  }

  /** Asks the plan anew: something that this process put into it may be due at once. */
  wake(): void {
    this.#woken = true;
    this.#wake?.();
  }

  /** A worker of this process has taken a poll; `token` is its own. */
  hold(poll: { claimedToken: string; member: string; token: string }): void {
    this.#claimed.delete(poll.claimedToken);
    this.#held.set(poll.member, poll.token);
  }

  /** A job came to nothing, or its poll has ended. */
  release(poll: { claimedToken: string; member: string; token: string | null }): void {
    this.#claimed.delete(poll.claimedToken);
    if (poll.token !== null && this.#held.get(poll.member) === poll.token) this.#held.delete(poll.member);
    if (this.#free() === Math.ceil(this.#limit.allowed * WORTH_A_CLAIM)) this.wake();
  }

  get #underWay(): number {
    return this.#held.size + this.#claimed.size;
  }

  #free(): number {
    return this.#limit.allowed - this.#underWay;
  }

  async #run(): Promise<void> {
    while (!this.#closing) {
      try {
        const waitMs = await this.round();
        this.#failing = null;
        await this.#sleep(waitMs);
      } catch (error) {
        if (this.#closing) return;
        const reason = error instanceof Error ? error.message : String(error);
        this.#failing = { sinceMs: this.#failing?.sinceMs ?? performance.now(), reason };
        this.#parts.log.error({ endpointGroup: this.#options.endpointGroup, error }, 'dispatch.error');
        await this.#sleep(ERROR_RETRY_MS);
      }
    }
  }

  /** Claims what may be polled by now, and hands it on. Returns in how many ms it is worth to ask again. */
  async round(): Promise<number> {
    const { endpointGroup, process } = this.#options;
    const now = performance.now();
    await this.#forgetLost(now);
    // Also where nothing may be claimed: what woke us is heard then, or the next sleep would end before it began, for ever.
    this.#woken = false;
    this.#limit.adapt(this.#held.size);
    const most = Math.max(0, Math.min(MOST, this.#free()));
    const sent = this.#stillClaimed(now);
    const claimed = await this.#parts.plan.claim(endpointGroup, { process, most, aheadMs: AHEAD_MS, sent });
    for (const token of claimed.arrived) this.#claimed.delete(token);
    await this.#hand(claimed.polls, now);
    if (claimed.returned > 0) {
      this.#parts.signals.emit('claims.returned', { endpointGroup, count: claimed.returned });
    }
    for (const { member, crashes } of claimed.crashed) {
      const { subject } = parseMember(member);
      this.#parts.signals.emit('poll.crashed', { subject, crashes });
      this.#parts.log.error({ subject, crashes }, 'poll.crashed');
    }
    if (most === 0) return QUIET_MS;
    return Math.max(SHORTEST_MS, Math.min(QUIET_MS, claimed.waitMs ?? QUIET_MS));
  }

  /** Hands claims on. What may not have reached the queue is stored for nobody, and goes back. */
  async #hand(polls: readonly ClaimedPoll[], now: number): Promise<void> {
    if (polls.length === 0) return;
    // Before they are sent: a worker may take one before we hear of it.
    for (const { member, token } of polls) this.#claimed.set(token, { member, at: now, keptAt: now });
    try {
      await this.#parts.queues.add(this.#options.endpointGroup, polls);
    } catch (error) {
      for (const { token } of polls) this.#claimed.delete(token);
      throw error;
    }
  }

  /** What has been on its way to a worker for a while, and is to be stored for it. */
  #stillClaimed(now: number): { member: string; token: string }[] {
    const still: { member: string; token: string }[] = [];
    for (const [token, sent] of this.#claimed) {
      if (now - sent.keptAt < KEEP_EVERY_MS) continue;
      sent.keptAt = now;
      still.push({ member: sent.member, token });
    }
    return still;
  }

  /** Lets go of what was passed on long ago and whose job is gone. */
  async #forgetLost(now: number): Promise<void> {
    const old = [...this.#claimed].filter(([, { at }]) => now - at > CLAIMED_MS);
    const lost = await this.#parts.queues.missing(
      this.#options.endpointGroup,
      old.map(([token]) => token),
    );
    for (const [, sent] of old) sent.at = now;
    for (const token of lost) this.#claimed.delete(token);
  }

  async #sleep(ms: number): Promise<void> {
    if (this.#woken) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = null;
  }

  async #renew(): Promise<void> {
    const { endpointGroup, process } = this.#options;
    const polls = [...this.#held].map(([member, token]) => ({ member, token }));
    await this.#parts.plan.renew(endpointGroup, { process, polls }).catch((error: unknown) => {
      if (!this.#closing) this.#parts.log.warn({ endpointGroup, error }, 'lease.error');
    });
  }

  /** Looks through a part of the plan. Nothing is found unless keys were lost or written by something else. */
  async #repair(): Promise<void> {
    const { endpointGroup } = this.#options;
    if (this.#repairing) return;
    this.#repairing = true;
    try {
      for (const member of (await withTimeout(this.#parts.plan.repair(endpointGroup), MOST_MS)) ?? []) {
        const { subject } = parseMember(member);
        this.#parts.signals.emit('repair.done', { what: 'poll-missing', subject });
        this.#parts.log.warn({ what: 'poll-missing', subject }, 'repair.done');
      }
    } catch (error) {
      if (!this.#closing) this.#parts.log.warn({ endpointGroup, error }, 'repair.error');
    } finally {
      this.#repairing = false;
    }
  }

  /** Claims nothing more. What is held is stored until `end`. */
  stop(): void {
    this.#closing = true;
    this.#wake?.();
  }

  /** Lets go of everything. */
  async close(): Promise<void> {
    this.stop();
    for (const timer of this.#timers) clearInterval(timer);
    await this.#running;
    await this.#renewing;
  }
}
