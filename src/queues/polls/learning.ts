import type { Logger } from 'pino';
import { BoundedMap, bytesOfTexts, CACHES } from '../../domain/caches.ts';
import type { Arrived } from '../../domain/cadence/arrivals.ts';
import { expectedBy } from '../../domain/cadence/expected.ts';
import { type Knowledge, knowledgeOf, type LearningRules } from '../../domain/cadence/knowledge.ts';
import {
  type Increment,
  increments,
  isRefund,
  observed,
  type StageObservation,
  type StatusPoll,
} from '../../domain/cadence/learning.ts';
import type { OpenTransfer } from '../../domain/cadence/wallet.ts';
import { failedOf, type Statistic } from '../../domain/cadence/watch-rules.ts';
import type { CadenceModel } from '../../domain/cadence/watched.ts';
import type { NewSnapshot } from '../../domain/changes/next-snapshot.ts';
import type { ExpectedBy } from '../../domain/events/event-schema.ts';
import { type Snapshot, stageOf } from '../../domain/subjects/record.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import { ANY_ROUTE, routeName } from '../../domain/transfers/transfer.ts';
import { Duty } from '../../duty.ts';
import type { LearnedStore } from '../../store/learned.ts';

/** Dependencies of learning, and the rules that it begins with. */
export type LearningDeps = LearningRules & { learned: LearnedStore; log: Logger };

const SHARE_EVERY_MS = 5_000;

const LONGEST_ESTIMATE = 7 * 86_400;

type PendingIncrements = { route: string; statistic: Statistic; bins: Map<number, Increment> };

/** Learns stage durations from polls: adds them up, and every few seconds writes them and reads the sums of all processes. */
export class Learning {
  readonly #deps: LearningDeps;
  readonly #batches = new BoundedMap<string, PendingIncrements>({
    ...CACHES.learnedBatches,
    bytesOf: () => 0,
  });
  /** Quote estimates that are not written yet: route -> seconds. */
  readonly #unwritten = new BoundedMap<string, number>({
    ...CACHES.learnedEstimates,
    bytesOf: (route) => bytesOfTexts(route),
  });
  #knowledge: Knowledge;
  readonly #sharing: Duty;

  constructor(deps: LearningDeps) {
    this.#deps = deps;
    this.#knowledge = knowledgeOf([], { ...deps, nowMs: 0 });
    this.#sharing = new Duty({
      everyMs: SHARE_EVERY_MS,
      isShared: true,
      run: () => this.#share(),
      onError: (error) => this.#report(error),
    });
  }

  async start(): Promise<void> {
    await this.#share().catch((error: unknown) => this.#report(error));
    this.#sharing.start();
  }

  get model(): CadenceModel {
    const { rules, arrivals } = this.#deps;
    const { curve, filledShares } = this.#knowledge;
    const usualArrivals = this.#knowledge.arrivals.usualPerSecond;
    return { rules, arrivals, usualArrivals, curve, filledShares };
  }

  get stages(): Knowledge['stages'] {
    return this.#knowledge.stages;
  }

  /** Time after which a subject under way counts as overdue by the learned statistics, ms; null while they are too few. */
  overdueAfterMs(subject: SubjectId, snapshot: Snapshot): number | null {
    const { watch } = stageOf(subject, snapshot.status);
    if (watch === null) return null;
    const seconds = this.#knowledge.p99Seconds(routeName(snapshot.record), watch);
    return seconds === null ? null : Math.round(seconds * 1_000);
  }

  /** Time by which a subject is expected to end its stage; null where it waits for nothing, or too little is known. */
  expectedBy(subject: SubjectId, snapshot: NewSnapshot, nowMs: number): ExpectedBy | null {
    return expectedBy({ subject, snapshot, nowMs }, this.#knowledge.ends);
  }

  saw(poll: StatusPoll): void {
    if (isRefund(poll)) this.#countTransfer('refunded', poll.before);
    const seen = observed(poll);
    if (seen === null) return;
    this.#add(seen, seen.route);
    if (seen.route !== ANY_ROUTE) this.#add(seen, ANY_ROUTE);
  }

  sawOverdue(snapshot: Snapshot): void {
    this.#countTransfer('overdue', snapshot);
  }

  #countTransfer(statistic: Statistic, { record }: Snapshot): void {
    for (const route of new Set([routeName(record), ANY_ROUTE])) {
      this.#count({ route, statistic }, { bin: 0, ended: 1, watchedSeconds: 0 });
    }
  }

  /** Notes that a transfer was found in the status of an earlier poll, without being read again. */
  sawOpen({ subject, status, route, sinceMs }: OpenTransfer, poll: { fromMs: number; nowMs: number }): void {
    const { watch } = stageOf(subject, status);
    if (watch === null || poll.fromMs >= poll.nowMs) return;
    const interval = {
      fromSeconds: (poll.fromMs - sinceMs) / 1_000,
      toSeconds: (poll.nowMs - sinceMs) / 1_000,
      ended: false,
    };
    this.#add({ route, watch, interval, failed: false }, route);
    if (route !== ANY_ROUTE) this.#add({ route, watch, interval, failed: false }, ANY_ROUTE);
  }

  #add({ watch, interval, failed, route: seenOn }: StageObservation, route: string): void {
    for (const increment of increments(this.#knowledge.curve(seenOn, watch), interval)) {
      this.#count({ route, statistic: watch }, increment);
    }
    if (!failed) return;
    const ending = { ...interval, ended: true };
    for (const { bin, ended } of increments(this.#knowledge.failed(seenOn, watch), ending)) {
      // The watched time is counted with the stage itself.
      this.#count({ route, statistic: failedOf(watch) }, { bin, ended, watchedSeconds: 0 });
    }
  }

  sawEstimate(route: string, seconds: number): void {
    if (route === ANY_ROUTE || this.#knowledge.estimates.get(route) === seconds) return;
    if (Number.isInteger(seconds) && seconds > 0 && seconds <= LONGEST_ESTIMATE)
      this.#unwritten.set(route, seconds);
  }

  sawArrivals({ seen, watchedSeconds }: Arrived): void {
    this.#count({ route: ANY_ROUTE, statistic: 'arrivals' }, { bin: 0, ended: seen, watchedSeconds });
  }

  #count(
    { route, statistic }: { route: string; statistic: Statistic },
    { bin, ended, watchedSeconds }: Increment,
  ): void {
    const name = `${route}:${statistic}`;
    const batch = this.#batches.get(name) ?? { route, statistic, bins: new Map<number, Increment>() };
    this.#batches.set(name, batch);
    const sum = batch.bins.get(bin) ?? { bin, ended: 0, watchedSeconds: 0 };
    batch.bins.set(bin, {
      bin,
      ended: sum.ended + ended,
      watchedSeconds: sum.watchedSeconds + watchedSeconds,
    });
  }

  async #share(): Promise<void> {
    await this.#write();
    await this.#read();
  }

  #report(error: unknown): void {
    if (!this.#sharing.isClosed) this.#deps.log.error({ error }, 'learning.error');
  }

  /** Writes the batches. A batch whose write fails is lost: it is an estimate, and more follow. */
  async #write(): Promise<void> {
    const batches = [...this.#batches.entries()].map(([, batch]) => batch);
    this.#batches.clear();
    const estimates = new Map(this.#unwritten.entries());
    this.#unwritten.clear();
    await this.#deps.learned.estimate(estimates);
    for (const { route, statistic, bins } of batches) {
      await this.#deps.learned.add({ route, statistic, increments: bins.values() });
    }
  }

  async #read(): Promise<void> {
    this.#knowledge = await this.#deps.learned.knowledge(this.#deps);
  }

  async close(): Promise<void> {
    await this.#sharing.close();
    // Redis may be away: the last seconds are an estimate like the others.
    await this.#share().catch(() => undefined);
  }
}
