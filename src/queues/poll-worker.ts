import { DelayedError, type Job, Worker } from 'bullmq';
import { isFinished, nextPoll, type PlannedPoll } from '../domain/cadence/next-poll.ts';
import { routeInterval } from '../domain/cadence/route-interval.ts';
import { type Claim, parseClaimRoot } from '../domain/claim.ts';
import type { HandedState } from '../domain/handed-quote.ts';
import { unseenSnapshot } from '../domain/next-snapshot.ts';
import type { Snapshot } from '../domain/record.ts';
import type { RouteDefinition } from '../domain/route.ts';
import { asSubjectId, parseSubjectId, type SubjectId, subjectKind } from '../domain/subject.ts';
import { timedMoments } from '../domain/timed.ts';
import { pollSubject } from '../pollers/poll-subject.ts';
import type { Reading } from '../pollers/reading.ts';
import type { QuotingService } from '../pollers/route.ts';
import type { PollOutcome } from '../signals.ts';
import type { RedisClient } from '../store/commands.ts';
import type { HealthStore } from '../store/health.ts';
import type { Keys } from '../store/keys.ts';
import type { StoredSubscription } from '../store/registry.ts';
import type { PollStart } from '../store/subjects.ts';
import type { Surface } from '../store/surface.ts';
import { commitRecord, commitTimed, overdueTimes } from './commit-record.ts';
import { POLL_JOB, type PollJob, TAKE_OVER } from './names.ts';
import { missingRecord, type PollFailure, PollFailures } from './poll-failures.ts';
import { breakWalk, pollWalkPage, pollWalletListing, type WalletParts } from './poll-wallet.ts';
import type { QuoteVerification } from './quote-verification.ts';
import { openTransfer } from './take-page.ts';

/** Everything a poll worker works with. */
export type PollParts = WalletParts & {
  redis: RedisClient;
  keys: Keys;
  health: HealthStore;
  quotes: QuoteVerification;
  /** Null where the config names no open quoting service; then no process of it polls routes. */
  quoting: QuotingService | null;
};

/** After so many polls that ended with their process, a subject is polled slowly. */
const CRASHES_TOLERATED = 3;
const CAREFUL_EVERY_MS = 300_000;

/** After an error of our own (Redis away, a bug) a poll is tried again. */
const ERROR_RETRY_MS = 2_000;

/** A page of a walk that fails so often ends the walk; the next one comes by itself. */
const PAGE_TRIES = 5;

/** A superseded answer is asked for again at once: it raced with a newer one. */
const SUPERSEDED_RETRY_MS = 250;

const CONCURRENCY = 50;

/**
 * What a poll knows before its request, with the quote itself where it was handed over, and the definition of a route.
 */
type Begun = PollStart & { handed: HandedState | null; route: RouteDefinition | null };

type PollRun = { job: Job<PollJob>; token: string | undefined; signal: AbortSignal };

/** Polls one surface of the upstream: takes due subjects and pages from its queue, one request each. */
export class PollWorker {
  readonly #surface: Surface;
  readonly #parts: PollParts;
  readonly #failures: PollFailures;
  #worker: Worker<PollJob> | null = null;

  constructor(surface: Surface, parts: PollParts) {
    this.#surface = surface;
    this.#parts = parts;
    this.#failures = new PollFailures(surface, parts);
  }

  start(): void {
    // A processor that declares its third parameter can be cancelled at shutdown.
    const process = async (job: Job<PollJob>, token?: string, signal?: AbortSignal): Promise<void> =>
      this.#process({ job, token, signal: signal ?? new AbortController().signal });
    const worker = new Worker<PollJob>(this.#surface, process, {
      connection: this.#parts.redis,
      prefix: this.#parts.keys.queues,
      concurrency: CONCURRENCY,
      maximumRateLimitDelay: 1_000,
      ...TAKE_OVER,
    });
    worker.on('error', (error) => this.#parts.log.debug({ error: error.message }, 'poll-worker.error'));
    this.#worker = worker;
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
    await worker.close();
    abort.removeEventListener('abort', cut);
  }

  /** Runs one job. Whatever happens, the job of a wanted subject is delayed again and never fails. */
  async #process(run: PollRun): Promise<void> {
    let afterMs: number | null;
    try {
      const work = POLL_JOB.parse(run.job.data);
      afterMs = work.do === 'subject' ? await this.#pollSubject(work, run) : await this.#pollPage(work, run);
    } catch (error) {
      if (!run.signal.aborted) this.#parts.log.error({ job: run.job.id, error }, 'poll.error');
      afterMs = run.signal.aborted ? 0 : ERROR_RETRY_MS;
    }
    if (afterMs === null) return;
    await run.job.moveToDelayed(Date.now() + afterMs, run.token);
    throw new DelayedError();
  }

  /** Polls a subject. Returns the ms until its next poll; null ends its job. */
  async #pollSubject(work: Extract<PollJob, { do: 'subject' }>, run: PollRun): Promise<number | null> {
    const { subject } = work;
    let start = await this.#begin(subject, { counted: true });
    if (start.dueMs === null || start.claims.length === 0) return this.#end(subject, start, 'ended', null);
    const crashes = start.starts - 1;
    if (crashes >= CRASHES_TOLERATED && work.careful !== crashes) return this.#careful(work, crashes, run);
    // A wallet is never served, by whatever it is shown: it has no record of its own.
    const isAwaited = subjectKind(subject) !== 'wallet' && start.claims.some((claim) => !claim.served);
    const asked = (await this.#parts.queues.takeLook(subject)) || isAwaited;
    const unverified = start.handed !== null && this.#parts.quotes.isDue(start.handed) ? start.handed : null;
    this.#parts.pricing.asked(this.#surface, { planned: !asked && unverified === null });
    if (
      !asked &&
      unverified === null &&
      isFinished({ ...this.#parts, subject, snapshot: start.snapshot, nowMs: start.nowMs })
    ) {
      return this.#end(subject, start, 'ended', null);
    }
    const waitMs = await this.#parts.health.waitMs(this.#surface);
    if (waitMs > 0)
      return this.#end(subject, start, 'put-off', {
        afterMs: spread(waitMs),
        demand: null,
      });
    try {
      if (unverified !== null) {
        const didAsk = await this.#parts.quotes.verify(unverified.quote, start, run.signal);
        if (didAsk) {
          await this.#failures.answered();
          const next = { afterMs: 0, demand: null };
          return await this.#end(subject, start, 'answered', next);
        }
        start = { ...(await this.#begin(subject, { counted: false })), starts: start.starts };
      }
      const next = await this.#ask(subject, start, run);
      await this.#failures.answered();
      return await this.#end(subject, start, 'answered', next);
    } catch (error) {
      const failure = run.signal.aborted ? null : await this.#failures.handle(error);
      const afterMs = failure?.afterMs ?? 0;
      if (failure) this.#logFailure(subject, failure);
      const next = { afterMs, demand: null };
      return this.#end(subject, start, failure ? 'failed' : 'aborted', next);
    }
  }

  async #begin(subject: SubjectId, options: { counted: boolean }): Promise<Begun> {
    const start = await this.#parts.subjects.beginPoll(subject, options);
    const key = parseSubjectId(subject);
    const route = key?.kind === 'route' ? await this.#parts.registry.route(key.name) : null;
    return { ...start, handed: await this.#parts.quotes.of(subject), route };
  }

  /** Makes the request of a poll and takes in what it brings. Returns when the next is due; null when it is over. */
  async #ask(subject: SubjectId, start: Begun, run: PollRun): Promise<PlannedPoll | null> {
    if (subjectKind(subject) === 'wallet') {
      const onReading = (reading: Reading): void => this.#reportUnreadable(subject, reading);
      return pollWalletListing(this.#parts, subject, { start, signal: run.signal, onReading });
    }
    const askedAt = performance.now();
    const reading = await pollSubject(this.#parts, { subject, route: start.route }, run.signal);
    const answeredMs = start.nowMs + Math.round(performance.now() - askedAt);
    this.#reportUnreadable(subject, reading);
    const roots = start.claims.map((claim) => claim.root);
    const subscriptions = await this.#parts.registry.subscriptions(roots);
    const record = reading.records.find((candidate) => candidate.subject === subject);
    if (record === undefined) throw missingRecord(subject, reading);
    const taken = await commitRecord(this.#parts, record, start, {
      asOf: start.asOf,
      nowMs: answeredMs,
      exact: true,
      claims: start.claims.filter((claim) => !claim.served),
    });
    if (taken.outcome === 'superseded') {
      return { afterMs: SUPERSEDED_RETRY_MS, demand: null };
    }
    const standing = taken.snapshot ?? unseenQuote(start);
    if (standing === null) return this.#next(subject, { ...start, snapshot: null }, subscriptions);
    const doubted = taken.outcome === 'stale' ? { key: '', sinceMs: start.nowMs } : null;
    const known = { subject, snapshot: { ...standing, doubt: doubted }, claims: start.claims };
    const { nowMs, handed } = start;
    const snapshot = doubted
      ? known.snapshot
      : await commitTimed(this.#parts, known, { nowMs, subscriptions, handed });
    await this.#noteSight(subject, start, snapshot);
    return this.#next(subject, { ...start, snapshot: isStored(snapshot) ? snapshot : null }, subscriptions);
  }

  /** Notes when a look-up showed a subject, and with the wallets of a transfer what it showed. */
  async #noteSight(subject: SubjectId, start: PollStart, snapshot: Snapshot): Promise<void> {
    const { nowMs, claims } = start;
    const isOver = isFinished({ subject, snapshot, nowMs, finished: this.#parts.finished });
    if (!isOver) await this.#parts.subjects.noteSeen([subject], nowMs);
    for (const wallet of walletRoots(claims)) {
      const open = isOver ? [] : [openTransfer(subject, snapshot, nowMs)];
      await this.#parts.wallets.sight(wallet, { open, ended: isOver ? [subject] : [], headAtMs: null });
    }
  }

  #next(
    subject: SubjectId,
    state: Begun,
    subscriptions: ReadonlyMap<string, StoredSubscription>,
  ): PlannedPoll | null {
    const { snapshot, nowMs, claims, handed, route } = state;
    if (route !== null) {
      return routeInterval({ everyMs: route.everyMs, price: this.#parts.pricing.price(subject) });
    }
    const standing = snapshot ?? unseenQuote(state);
    const learnedMs = snapshot === null ? null : this.#parts.learning.overdueAfterMs(subject, snapshot);
    const overdue = overdueTimes(claims, subscriptions, learnedMs);
    const moments = standing ? timedMoments(subject, standing, { overdue, handed }) : [];
    const deadlinesMs = moments.map((moment) => moment.atMs);
    const { finished, pricing, learning } = this.#parts;
    const next = nextPoll({
      subject,
      snapshot,
      nowMs,
      shown: false,
      price: pricing.price(subject),
      law: learning.law,
      finished,
      deadlinesMs,
    });
    return next.next === 'finish' ? null : next;
  }

  async #end(
    subject: SubjectId,
    start: PollStart,
    outcome: PollOutcome,
    next: PlannedPoll | null,
  ): Promise<number | null> {
    const lagMs = start.dueMs === null ? null : Math.max(0, start.nowMs - start.dueMs);
    const afterMs = await this.#parts.subjects.endPoll(subject, next);
    this.#parts.signals.emit('poll.ended', {
      surface: this.#surface,
      kind: subjectKind(subject),
      outcome,
      lagSeconds: lagMs === null ? null : lagMs / 1_000,
    });
    return afterMs;
  }

  /** Puts off a poll that seems to crash its process: it goes on, slowly, and somebody is told. */
  async #careful(work: Extract<PollJob, { do: 'subject' }>, crashes: number, run: PollRun): Promise<number> {
    const { subject } = work;
    this.#parts.signals.emit('poll.crashing', { subject, crashes });
    this.#parts.log.error({ subject, crashes, nextInMs: CAREFUL_EVERY_MS }, 'poll.crashing');
    await run.job.updateData({ ...work, careful: crashes + 1 });
    return CAREFUL_EVERY_MS;
  }

  /** Polls a page of a walk. Returns the ms until it is tried again; null when it is done or given up. */
  async #pollPage(work: Extract<PollJob, { do: 'page' }>, run: PollRun): Promise<number | null> {
    const { wallet, route, cursor, page } = work;
    const walk = { wallet, route, id: work.walk };
    const { subjects, walks, health } = this.#parts;
    this.#parts.pricing.asked(this.#surface, { planned: false });
    if (!(await walks.isPresent(walk))) return null;
    const start = await subjects.beginPoll(wallet, { counted: false });
    if (start.claims.length === 0) return null;
    const waitMs = await health.waitMs(this.#surface);
    if (waitMs > 0) return spread(waitMs);
    try {
      const onReading = (reading: Reading): void => this.#reportUnreadable(wallet, reading);
      await pollWalkPage(this.#parts, { ...walk, page, cursor }, { start, signal: run.signal, onReading });
      await this.#failures.answered();
      return null;
    } catch (error) {
      if (run.signal.aborted) return 0;
      const failure = await this.#failures.handle(error);
      this.#logFailure(wallet, failure);
      // Any 400 on a cursor means that it has expired: the next look at the first page begins the walk anew.
      if (failure.code === 'invalid-request' || work.tries + 1 >= PAGE_TRIES) {
        await breakWalk(this.#parts, walk, start.nowMs);
        return null;
      }
      await run.job.updateData({ ...work, tries: work.tries + (failure.counts ? 1 : 0) });
      return failure.afterMs;
    }
  }

  #reportUnreadable(subject: SubjectId, reading: Reading): void {
    for (const reason of reading.unreadable) {
      this.#parts.signals.emit('record.unreadable', { where: subject, reason });
      this.#parts.log.warn({ subject, reason }, 'record.unreadable');
    }
  }

  #logFailure(subject: SubjectId, failure: PollFailure): void {
    const { code, reason, afterMs } = failure;
    const level = code === 'invalid-request' ? 'error' : 'info';
    this.#parts.log[level]({ subject, code, reason, nextInMs: Math.round(afterMs) }, 'poll.failed');
  }
}

/** The wallets among the claims on a subject, as subjects. */
function walletRoots(claims: readonly Claim[]): SubjectId[] {
  return claims
    .map((claim) => parseClaimRoot(claim.root).subject)
    .filter((subject) => subject.startsWith('wallet:'))
    .map(asSubjectId);
}

/** Polls that were put off together come back apart. */
function spread(waitMs: number): number {
  return Math.round(waitMs * (1 + Math.random() * 0.5)) + 1;
}

/** The clock passes the expiry of a quote that was handed over also where the upstream has not shown the quote yet. */
function unseenQuote({ handed, nowMs }: Begun): Snapshot | null {
  return handed === null ? null : unseenSnapshot(nowMs);
}

function isStored(snapshot: Snapshot): boolean {
  return snapshot.version > 0;
}
