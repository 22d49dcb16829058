import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { type Job, Worker } from 'bullmq';
import type { PlannedPoll } from '../../domain/cadence/next-poll.ts';
import type { SubjectPlan } from '../../domain/cadence/subject-plan.ts';
import { unseenSnapshot } from '../../domain/changes/next-snapshot.ts';
import { type Claim, parseClaimRoot } from '../../domain/subjects/claim.ts';
import { isPollable, type Surface } from '../../domain/subjects/kinds.ts';
import type { Snapshot, UpstreamRecord } from '../../domain/subjects/record.ts';
import { asSubjectId, intentId, type SubjectId, subjectKind } from '../../domain/subjects/subject.ts';
import type { PartnerPricing } from '../../pollers/partner-route.ts';
import { pollSubject } from '../../pollers/poll-subject.ts';
import type { Reading } from '../../pollers/reading.ts';
import type { QuotingService } from '../../pollers/route.ts';
import type { PollOutcome } from '../../signals.ts';
import type { RedisClient } from '../../store/commands.ts';
import type { HandedQuotes } from '../../store/handed-quotes.ts';
import type { HealthStore } from '../../store/health.ts';
import type { Keys } from '../../store/keys.ts';
import { NOTHING_OBSERVED, type Observed, type PollEnd } from '../../store/plan.ts';
import { type PollStart, takePoll } from '../../store/poll-start.ts';
import { NOTHING_KNOWN } from '../../store/subjects.ts';
import { POLL_JOB, type PollJob, TAKE_OVER } from '../names.ts';
import { commitDue } from './commit-flagged.ts';
import { commitRecord, commitShort, planOf } from './commit-record.ts';
import type { Dispatcher } from './dispatcher.ts';
import { missingRecord, type PollFailure, PollFailures } from './poll-failures.ts';
import {
  breakWalk,
  failedListing,
  pollWalkPage,
  pollWalletListing,
  type WalletParts,
} from './poll-wallet.ts';
import type { QuoteVerification } from './quote-verification.ts';
import { openTransfer } from './take-page.ts';
import { parseWalk, type WalkPage } from './walks.ts';

/** Everything a poll worker works with. */
export type PollParts = WalletParts & {
  redis: RedisClient;
  keys: Keys;
  health: HealthStore;
  handedQuotes: HandedQuotes;
  quotes: QuoteVerification;
  /** Null where the config names no open quoting service; then no process of it polls routes. */
  quoting: QuotingService | null;
  /** Null where the config has no route that is priced with the key. */
  partner: PartnerPricing | null;
};

/** After an error of our own (Redis away, a bug) a poll is tried again; it counts against nobody. */
const ERROR_RETRY_MS = 2_000;

/** Of one answer, so much that cannot be read is told one by one. */
const MOST_REPORTED = 10;

/** A page of a walk that fails so often ends the walk; the next one comes by itself. */
const PAGE_TRIES = 5;

/** A superseded answer is asked for again at once: it raced with a newer one. */
const SUPERSEDED_RETRY_MS = 250;

/**
 * A request that goes out later than its slot by more than this takes another one; each time twice as much is allowed, or
 * a process that is always held up for longer would never ask for anything.
 */
const LATE_MS = 30;

/** How a poll ended: what becomes of its subject, when it is polled next, what it observed, and what is counted. */
type Ended = { end: PollEnd; next: PlannedPoll; observed: Observed; outcome: PollOutcome };

const AT_ONCE: PlannedPoll = {
  virtualSeconds: 0,
  restMs: 0,
  latestMs: null,
  alarmMs: null,
  unseen: false,
};

type PollRun = { job: Job<PollJob>; signal: AbortSignal };

/**
 * Jobs are fetched for about so long before those that were fetched begin: BullMQ fetches one after the other until it has
 * as many as may be under way, and only then begins them. Behind a slow Redis hundreds would wait for each other's round
 * trips; few at a time cost the more where it is quick.
 */
const FETCHED_FOR_MS = 1_000;
const LEAST_FETCHED = 4;
const MOST_FETCHED = 100;

/** Polls one surface of the upstream: takes claims from its queue, one request each. */
export class PollWorker {
  readonly #surface: Surface;
  readonly #process: string;
  readonly #parts: PollParts;
  readonly #dispatcher: Dispatcher;
  readonly #failures: PollFailures;
  #worker: Worker<PollJob> | null = null;
  #capacity = 1;
  #underWay = 0;
  /** What a round trip takes, ms: a mean over some of late. */
  #tripMs = FETCHED_FOR_MS;

  constructor(surface: Surface, parts: PollParts, by: { process: string; dispatcher: Dispatcher }) {
    this.#surface = surface;
    this.#process = by.process;
    this.#parts = parts;
    this.#dispatcher = by.dispatcher;
    this.#failures = new PollFailures(surface, parts);
  }

  start({ capacity }: { capacity: number }): void {
    // A processor that declares its third parameter can be cancelled at shutdown.
    const process = async (job: Job<PollJob>, _token?: string, signal?: AbortSignal): Promise<void> => {
      this.#count(1);
      try {
        await this.#run({ job, signal: signal ?? new AbortController().signal });
      } finally {
        this.#count(-1);
      }
    };
    this.#capacity = capacity;
    const worker = new Worker<PollJob>(this.#surface, process, {
      connection: this.#parts.redis,
      prefix: this.#parts.keys.queues,
      concurrency: this.#concurrency(),
      ...TAKE_OVER,
    });
    worker.on('error', (error) => this.#parts.log.debug({ error: error.message }, 'poll-worker.error'));
    this.#worker = worker;
  }

  /** Counts polls that begin, or end. */
  #count(change: number): void {
    this.#underWay += change;
    if (this.#worker !== null) this.#worker.concurrency = this.#concurrency();
  }

  /** As many as are under way, and some more to be fetched. */
  #concurrency(): number {
    const fetched = Math.max(
      LEAST_FETCHED,
      Math.min(MOST_FETCHED, Math.round(FETCHED_FOR_MS / this.#tripMs)),
    );
    return Math.min(this.#capacity, this.#underWay + fetched);
  }

  isRunning(): boolean {
    return this.#worker?.isRunning() ?? false;
  }

  /** Stops taking polls and waits for those under way; `abort` cuts them off and hands them back. */
  async close(abort: AbortSignal): Promise<void> {
    const worker = this.#worker;
    if (worker === null) return;
    const cut = (): void => worker.cancelAllJobs('shutdown');
    abort.addEventListener('abort', cut);
    if (abort.aborted) cut();
    await worker.close();
    abort.removeEventListener('abort', cut);
  }

  /** Runs one job: takes the claim, polls in its slot, and says in the plan how it ended. The job never fails. */
  async #run({ job, signal }: PollRun): Promise<void> {
    const { member, token: handedToken } = POLL_JOB.parse(job.data);
    let start: PollStart | null = null;
    try {
      const takenAt = performance.now();
      start = await takePoll(this.#parts, { member, token: handedToken }, this.#process);
      this.#tripMs += (performance.now() - takenAt - this.#tripMs) / 10;
      if (start === null) return;
      this.#dispatcher.hold({ handedToken, member, token: start.token });
      const ended = await this.#poll(start, signal).catch((error: unknown): Ended => {
        if (!signal.aborted) this.#parts.log.error({ member, error }, 'poll.error');
        const next = { ...AT_ONCE, restMs: signal.aborted ? 0 : ERROR_RETRY_MS };
        return { end: 'back', next, observed: NOTHING_OBSERVED, outcome: 'aborted' };
      });
      await this.#end(start, ended);
    } catch (error) {
      // The claim goes back by its lease: Redis is away, and that counts against nobody.
      this.#parts.log.warn({ member, error }, 'poll.not_ended');
    } finally {
      this.#dispatcher.release({ handedToken, member, token: start?.token ?? null });
    }
  }

  async #end(start: PollStart, { end, next, observed, outcome }: Ended): Promise<void> {
    const { member, subject, token, surface } = start;
    const keepMs = this.#parts.retentionMs;
    const poll = { member, subject, token, surface };
    const hasToHear = await this.#parts.plan.end(poll, end, next, { observed, keepMs });
    if (hasToHear && outcome === 'answered') await this.#failures.answered(start);
    // Of what may have ended a process, one is polled at a time: the next one waits for this end.
    if (next.restMs === 0 || next.alarmMs === 0 || start.lane === 'suspect') this.#dispatcher.wake();
    this.#parts.signals.emit('poll.ended', {
      surface: this.#surface,
      kind: subjectKind(subject),
      outcome,
      lagSeconds: start.lateMs / 1_000,
    });
  }

  async #poll(start: PollStart, signal: AbortSignal): Promise<Ended> {
    const walk = start.walk === null ? null : this.#pageOf(start);
    if (start.walk !== null && walk === null) return over('ended');
    if (walk === null && start.claims.length === 0) return over('ended');
    try {
      const ended =
        walk === null ? await this.#pollSubject(start, signal) : await this.#pollPage(start, walk, signal);
      return ended;
    } catch (error) {
      if (signal.aborted) return { ...over('aborted'), end: 'back', next: AT_ONCE };
      const failure = await this.#failures.handle(error, start);
      this.#logFailure(start.subject, failure);
      return walk === null ? this.#failed(start, failure) : this.#failedPage(start, walk, failure);
    }
  }

  #pageOf(start: PollStart): WalkPage | null {
    const route = start.member.split(':')[1] ?? '';
    return start.claims.length === 0 ? null : parseWalk(start.subject, route, start.walk ?? {});
  }

  async #pollSubject(start: PollStart, signal: AbortSignal): Promise<Ended> {
    const { subject, isAsked, handed } = start;
    // A wallet is never served, by whatever it is shown: it has no record of its own.
    const isAwaited = subjectKind(subject) !== 'wallet' && start.claims.some((claim) => !claim.served);
    const asked = isAwaited || isAsked;
    const unverified = handed !== null && this.#parts.quotes.isDue(handed) ? handed : null;
    if (!asked && unverified === null && planOf(this.#parts, start, start).isOver) {
      // A process that was killed may have stored the end of a transfer, and not told yet that it is short.
      await commitShort(this.#parts, start, start);
      return over('ended');
    }
    await this.#slot(start, signal);
    if (unverified !== null) {
      await this.#parts.quotes.verify(unverified.quote, start, signal);
      // The request of this slot may be made, and what is known has changed: the quote itself is asked for with the next.
      const next = { ...AT_ONCE, alarmMs: 0 };
      return { end: 'next', next, observed: NOTHING_OBSERVED, outcome: 'verified' };
    }
    if (subjectKind(subject) === 'wallet') {
      const onReading = (reading: Reading): void => this.#reportUnreadable(subject, reading);
      const { next, observed } = await pollWalletListing(this.#parts, { start, signal, onReading });
      return { end: 'next', next: next ?? AT_ONCE, observed, outcome: 'answered' };
    }
    if (subjectKind(subject) === 'by-tx') return this.#find(start, signal);
    const next = await this.#ask(start, signal);
    return next === null
      ? { ...over('answered') }
      : { end: 'next', next, observed: NOTHING_OBSERVED, outcome: 'answered' };
  }

  /** Waits for the poll's slot of the budget. A process that was held up takes another, so that none are used at once. */
  async #slot(start: PollStart, signal: AbortSignal): Promise<void> {
    let atMs = performance.now() + start.inMs;
    for (let allowedMs = LATE_MS; ; allowedMs *= 2) {
      const restMs = atMs - performance.now();
      if (restMs > 1) await wait(restMs, undefined, { signal });
      signal.throwIfAborted();
      const lateMs = performance.now() - atMs;
      if (lateMs <= allowedMs) return;
      const inMs = await this.#parts.plan.reslot(this.#surface);
      start.planMs += lateMs + inMs;
      start.nowMs += Math.round(lateMs + inMs);
      atMs = performance.now() + inMs;
    }
  }

  /**
   * Looks for the transfer that a transaction belongs to. What is found gets the claims of the transaction, and is polled and
   * told as itself; then the transaction has nothing more to say.
   */
  async #find(start: PollStart, signal: AbortSignal): Promise<Ended> {
    const { subject, claims } = start;
    const askedAt = performance.now();
    const reading = await pollSubject(this.#parts, { subject, route: null, nowMs: start.nowMs }, signal);
    const nowMs = start.nowMs + Math.round(performance.now() - askedAt);
    this.#reportUnreadable(subject, reading);
    const found = reading.records.flatMap((record) =>
      isPollable(record.subject) ? [record.subject] : record.names.map(intentId),
    );
    for (const one of new Set(found)) await this.#parts.subjects.claim(one, claims);
    if (found.length > 0) return over('answered');
    const [only] = reading.records;
    const next =
      only === undefined
        ? planOf(this.#parts, { ...start, snapshot: null }, start).next()
        : await this.#follow(start, only, nowMs);
    if (only !== undefined && next === null) return over('answered');
    return { end: 'next', next: next ?? AT_ONCE, observed: NOTHING_OBSERVED, outcome: 'answered' };
  }

  /** Takes in a record that can be asked for by its transaction alone. Returns when that is due next; null when it is over. */
  async #follow(start: PollStart, record: UpstreamRecord, nowMs: number): Promise<PlannedPoll | null> {
    const { subject } = record;
    const { asOf, price, claims } = start;
    const [known = NOTHING_KNOWN] = await this.#parts.subjects.look([subject]);
    const sighting = { asOf, nowMs, price, exact: true, claims };
    const { outcome, snapshot } = await commitRecord(this.#parts, record, known, sighting);
    if (outcome === 'superseded') {
      return { ...AT_ONCE, restMs: SUPERSEDED_RETRY_MS, alarmMs: SUPERSEDED_RETRY_MS };
    }
    return planOf(this.#parts, { subject, snapshot, claims }, { ...start, nowMs }).next();
  }

  /** Makes the request of a poll and takes in what it brings. Returns when the next is due; null when it is over. */
  async #ask(start: PollStart, signal: AbortSignal): Promise<PlannedPoll | null> {
    const { subject } = start;
    const askedAt = performance.now();
    const reading = await pollSubject(
      this.#parts,
      { subject, route: start.route, nowMs: start.nowMs },
      signal,
    );
    const answeredMs = start.nowMs + Math.round(performance.now() - askedAt);
    this.#reportUnreadable(subject, reading);
    if (reading.useless) throw reading.useless;
    const record = reading.records.find((candidate) => candidate.subject === subject);
    if (record === undefined) throw missingRecord(subject, reading);
    const taken = await commitRecord(this.#parts, record, start, {
      asOf: start.asOf,
      nowMs: answeredMs,
      price: start.price,
      exact: true,
      claims: start.claims.filter((claim) => !claim.served),
    });
    if (taken.outcome === 'superseded') {
      return { ...AT_ONCE, restMs: SUPERSEDED_RETRY_MS, alarmMs: SUPERSEDED_RETRY_MS };
    }
    // A doubt is not told, but looked at again soon.
    const doubt = taken.outcome === 'stale' ? { key: '', sinceMs: start.nowMs } : null;
    const snapshot = taken.snapshot === null ? null : { ...taken.snapshot, doubt };
    const plan = planOf(this.#parts, { ...start, snapshot }, start);
    let standing = snapshot ?? unseenSnapshot(start.nowMs);
    if (doubt === null) {
      const affected = { ...start, snapshot: standing };
      standing = await commitDue(this.#parts, affected, { due: plan.due, nowMs: start.nowMs });
    }
    if (taken.stored && snapshot !== null) await this.#noteTransfer(start, standing, plan);
    return plan.next();
  }

  /** Notes with the wallets of a transfer what a look-up of its own showed. */
  async #noteTransfer(
    { subject, nowMs, claims }: PollStart,
    snapshot: Snapshot,
    { isOver }: SubjectPlan,
  ): Promise<void> {
    const transfer = openTransfer(subject, snapshot, nowMs);
    await this.#parts.wallets.noteTransfer(walletRoots(claims), { ...transfer, isOver });
  }

  /** A poll that failed: its subject waits alone, or the surface is what failed. */
  #failed(start: PollStart, failure: PollFailure): Ended {
    const isWallet = subjectKind(start.subject) === 'wallet';
    return {
      end: failure.own ? 'failed' : 'back',
      next: { ...AT_ONCE, restMs: failure.afterMs },
      observed:
        isWallet && failure.own ? failedListing(this.#parts, start, failure.afterMs) : NOTHING_OBSERVED,
      outcome: 'failed',
    };
  }

  /** Polls a page of a walk. */
  async #pollPage(start: PollStart, walk: WalkPage, signal: AbortSignal): Promise<Ended> {
    await this.#slot(start, signal);
    const onReading = (reading: Reading): void => this.#reportUnreadable(walk.wallet, reading);
    const { next, observed } = await pollWalkPage(this.#parts, walk, { start, signal, onReading });
    return next === null
      ? { ...over('answered'), observed }
      : { end: 'next', next, observed, outcome: 'answered' };
  }

  async #failedPage(start: PollStart, walk: WalkPage, failure: PollFailure): Promise<Ended> {
    // Any 400 on a cursor means that it has expired: the next poll of the first page begins the walk anew.
    if (failure.code === 'invalid-request' || walk.tries + 1 >= PAGE_TRIES) {
      await breakWalk(this.#parts, walk, start.nowMs);
      return over('failed');
    }
    if (failure.own) await this.#parts.walks.noteFailure(walk);
    return this.#failed(start, failure);
  }

  #reportUnreadable(subject: SubjectId, reading: Reading): void {
    for (const reason of reading.unreadable.slice(0, MOST_REPORTED)) {
      this.#parts.signals.emit('record.unreadable', { where: subject, reason });
      this.#parts.log.warn({ subject, reason }, 'record.unreadable');
    }
    const more = reading.unreadable.length - MOST_REPORTED;
    if (more > 0) this.#parts.log.warn({ subject, reason: `${more} more` }, 'record.unreadable');
    for (const record of reading.records) this.#reportMembers(subject, record);
  }

  /** A member that is not as the interface describes it says nothing, and is counted; null is how a member says nothing. */
  #reportMembers(where: SubjectId, { subject, said, unreadable }: UpstreamRecord): void {
    for (const member of unreadable.filter((name) => (said[name] ?? null) !== null)) {
      const reason = `${member} of ${subject} is not as the interface describes it`;
      this.#parts.signals.emit('record.unreadable', { where, reason });
      this.#parts.log.debug({ subject, reason }, 'record.unreadable');
    }
  }

  #logFailure(subject: SubjectId, failure: PollFailure): void {
    const { code, reason, support, afterMs } = failure;
    const level = code === 'invalid-request' ? 'error' : 'info';
    this.#parts.log[level](
      { subject, code, reason, ...support, nextInMs: Math.round(afterMs) },
      'poll.failed',
    );
  }
}

/** A poll after which nothing is left to do. */
function over(outcome: PollOutcome): Ended {
  return { end: 'finish', next: AT_ONCE, observed: NOTHING_OBSERVED, outcome };
}

/** The wallets among the claims on a subject, as subjects. */
function walletRoots(claims: readonly Claim[]): SubjectId[] {
  return claims
    .map((claim) => parseClaimRoot(claim.root).subject)
    .filter((subject) => subject.startsWith('wallet:'))
    .map(asSubjectId);
}
