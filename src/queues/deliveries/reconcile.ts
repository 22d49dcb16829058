import type { Logger } from 'pino';
import type { Directory } from '../../domain/transfers/chains.ts';
import { Duty, sharedWaitMs } from '../../duty.ts';
import { reportError, type Signals } from '../../signals.ts';
import { chunks, type RedisClient, redisTimeMs } from '../../store/commands.ts';
import type { ConfirmedTime } from '../../store/confirmed-time.ts';
import type { StoredReceiver } from '../../store/definitions.ts';
import type { EndedSubjects } from '../../store/ended-subjects.ts';
import type { Epoch, Restore } from '../../store/epoch.ts';
import type { ImportedQuotes } from '../../store/imported-quotes.ts';
import type { LearnedStore } from '../../store/learned.ts';
import { isolated } from '../../store/stored.ts';
import type { Stores } from '../../store/stores.ts';
import type { Settled } from '../../store/suspensions.ts';
import { goneFor, matchesOf, readBatch } from './matches.ts';

const MOST_READ = 10_000;

/**
 * Drops deliveries that a receiver can no longer get because the retention ended: open ones, and events behind its cursor.
 * Reports the losses. Returns the time (Redis time, ms) up to which the log may be trimmed: no event leaves it uncounted.
 */
async function dropExpired(
  deps: ReconcileContext,
  receiver: StoredReceiver,
  beforeMs: number,
): Promise<number> {
  const { stores, signals, log } = deps;
  const { name, removed: isAway } = receiver;
  const open = await stores.dropped.dropExpired(name, beforeMs);
  const { count, reachedMs } = await dropBehind(deps, receiver, beforeMs);
  // Losses while a receiver is away count once it is back. A receiver that was removed for good has lost nothing.
  let lost = open + (isAway ? 0 : count);
  for (const { reason, ...report } of await stores.dropped.report(name, { isAway })) {
    log.error({ receiver: name, ...report, reason }, 'receiver.events_dropped');
    if (reason === 'away') lost += report.count;
  }
  if (lost > 0) signals.emit('receiver.events-dropped', { receiver: name, count: lost });
  return reachedMs;
}

/** Drops the events behind the cursor of a receiver, and moves it. Returns how many it loses by that, and the time it reached. */
async function dropBehind(
  { stores, directory }: ReconcileContext,
  receiver: StoredReceiver,
  beforeMs: number,
): Promise<{ count: number; reachedMs: number }> {
  const { registry, events, lease, dropped } = stores;
  const { name, removed } = receiver;
  const reason = removed ? 'away' : 'retention';
  let from = await lease.cursor(name);
  let count = 0;
  for (let left = MOST_READ, more = msOf(from) < beforeMs; more; ) {
    if (left <= 0) return { count, reachedMs: msOf(from) };
    const piece = await events.between(from, { before: `${beforeMs}-0`, count: left });
    const { facts, gone, read, last, stoppedBy, isCut } = await readBatch(piece.entries, events);
    // An entry that only a newer version can read may be for any receiver: it counts by its place.
    const newer = stoppedBy === null ? null : (piece.entries[read]?.id ?? null);
    const to = newer ?? (isCut ? last : (piece.entries.at(-1)?.id ?? null));
    if (to === null) break;
    const matched = await matchesOf(receiver, facts, { registry, directory });
    const lost = (await goneFor(gone, registry))(receiver);
    const ids = [...matched.map(({ event }) => event.id), ...lost.map(({ eventId }) => eventId)];
    const all = newer === null ? ids : [...ids, `entry ${newer}`];
    const noted = await dropped.noteBehind(name, { from, to, reason }, all);
    if (noted === null) return { count, reachedMs: msOf(from) };
    count += noted;
    left -= read + 1;
    from = to;
    more = newer !== null || isCut || piece.more;
  }
  return { count, reachedMs: beforeMs };
}

function msOf(entry: string): number {
  return Number(entry.split('-')[0]);
}

/** The config that the check upholds: its `digest`, and the actions that bring Redis back to it. */
export type Upkeep = {
  digest: string;
  /** True when another config of this process replaces it: then the check upholds nothing. */
  isReplaced: () => boolean;
  /** True when Redis may hold a part of another config that was abandoned. */
  isPartlyApplied: () => boolean;
  resync: () => Promise<void>;
  /** Compares plans and registry with the config and repairs them, while the config is the newest of all processes. */
  store: () => Promise<void>;
};

/** Dependencies of the check. `process`: the one that delivers, as in Sender. */
type ReconcileContext = {
  redis: RedisClient;
  epoch: Epoch;
  confirmed: ConfirmedTime;
  stores: Stores & {
    ended: EndedSubjects;
    learned: LearnedStore;
    importedQuotes: ImportedQuotes;
  };
  directory: Directory;
  process: string;
  retentionMs: number;
  /** Time for which entries removed from the config stay suspended. */
  graceSpanMs: number;
  upkeep: Upkeep;
  signals: Signals;
  log: Logger;
};

const EVERY_MS = 5_000;

/**
 * Receivers whose queues are compared concurrently: a start waits for that, and a round trip is slow under load. With more,
 * Redis runs their scripts one after the other, for 30 ms and longer, while all other clients wait.
 */
const RECEIVERS_AT_ONCE = 16;

/** Receivers whose expired events are dropped in one check, and concurrently: those behind the log read a piece of it each. */
const TRIMMED_PER_CHECK = 100;
const TRIMMED_AT_ONCE = 8;

/** Receivers whose losses are noted since the log was trimmed, and the time (Redis time, ms) up to which it may be trimmed. */
type NotedLosses = { noted: ReadonlySet<string>; toMs: number };

const NO_LOSSES: NotedLosses = { noted: new Set(), toMs: Number.POSITIVE_INFINITY };

const AGAIN_AFTER_MS = 250;

/** A timer may end a little too early. */
const EARLY_MS = 2;

/** Wait of a Redis that went back for a process with the newest config; then the relay's lease holder writes its own. */
const NEWEST_FIRST_MS = 10_000;

/**
 * The repeating check of deliveries. It compares them with their queues and repairs differences, trims what is past its
 * retention, and compares counts with the stored state. Polls have their own check, over a bounded part of the plan at a time
 * (see Dispatcher).
 */
export class Reconcile {
  readonly #deps: ReconcileContext;
  readonly #rounds: Duty;
  #checkDueMs = 0;
  /** The config is to be compared before the check is due, or after one that failed before it. */
  #isCompareDue = false;
  #strangeConfig = false;
  #tracked = 0;
  #losses = NO_LOSSES;
  #lastRoundMs: number | null = null;

  constructor(deps: ReconcileContext) {
    this.#deps = deps;
    this.#rounds = new Duty({
      everyMs: EVERY_MS,
      isShared: true,
      run: () => this.#round(),
      onError: (error) => {
        reportError(deps, 'reconcile.error', { error });
        return this.#wait();
      },
    });
  }

  async start(): Promise<void> {
    const { epoch, upkeep } = this.#deps;
    // Nothing is committed until Redis is synchronised.
    epoch.onCheckDue(() => {
      if (upkeep.isReplaced()) return;
      this.#isCompareDue = true;
      this.#rounds.soon(AGAIN_AFTER_MS);
    });
    await this.check();
    this.#rounds.start();
  }

  /** Runs the check where it is due; before that, only compares the config. Returns the wait until the check is due. */
  async #round(): Promise<{ waitMs: number }> {
    if (performance.now() >= this.#checkDueMs - EARLY_MS) await this.check();
    else await this.#compareConfig();
    return this.#wait();
  }

  #wait(): { waitMs: number } {
    const leftMs = Math.max(0, this.#checkDueMs - performance.now());
    return { waitMs: this.#isCompareDue ? Math.min(leftMs, AGAIN_AFTER_MS) : leftMs };
  }

  /** End of the last check without error (own clock, ms); null before the first. */
  get lastRoundMs(): number | null {
    return this.#lastRoundMs;
  }

  /** Runs the check once. An error is logged, and the next check repeats the work. */
  async check(): Promise<void> {
    try {
      const [checked] = await Promise.allSettled([this.#checkStored()]);
      // Also after an error, which another comparison may meet again and again.
      await this.#compareConfig();
      if (checked.status === 'rejected') throw checked.reason;
      this.#lastRoundMs = Date.now();
    } catch (error) {
      if (!this.#rounds.isClosed) reportError(this.#deps, 'reconcile.error', { error });
    } finally {
      this.#checkDueMs = performance.now() + sharedWaitMs(EVERY_MS);
    }
  }

  async #checkStored(): Promise<void> {
    const { confirmed, stores } = this.#deps;
    const [{ confirmedMs }, receivers] = await Promise.all([confirmed.read(), stores.registry.receivers()]);
    for (const some of chunks(receivers, RECEIVERS_AT_ONCE))
      await Promise.all(some.map(({ name }) => this.#isolated(name, this.#repairDeliveries(name))));
    await this.#settle(confirmedMs);
    await Promise.all([this.#recount(), this.#trim(confirmedMs)]);
  }

  #isolated<T>(receiver: string, work: Promise<T>): Promise<T | null> {
    return isolated(receiver, work, (found) => this.#deps.signals.emit('store.foreign', found));
  }

  /** Queues an open delivery again that is missing in its receiver's queue. Also releases claims of dead processes. */
  async #repairDeliveries(receiver: string): Promise<void> {
    const { stores, process } = this.#deps;
    const { deliveries } = stores;
    const repair = async (): Promise<void> => {
      for (const id of await deliveries.repair(receiver))
        this.#report('delivery-missing', `${receiver} ${id}`);
    };
    await Promise.all([repair(), deliveries.takeOver(receiver, process)]);
  }

  /** Reports its repairs itself: another step beside it may fail. */
  async #recount(): Promise<void> {
    for (const what of await this.#deps.stores.subjects.recount()) this.#report('count-wrong', what);
  }

  /** Releases, ends or drops suspensions. The process with the newest config decides for how long. */
  async #settle(confirmedMs: number): Promise<void> {
    const { stores, upkeep, graceSpanMs, retentionMs } = this.#deps;
    const isNewest = !upkeep.isReplaced() && (await stores.registry.newestConfig()).digest === upkeep.digest;
    const due = { spanMs: isNewest ? graceSpanMs : null, confirmedMs, trimMs: confirmedMs - retentionMs };
    for (const settled of await stores.registry.suspensions.settle(due))
      await reportSettled(settled, this.#deps);
  }

  /** Removes data past its retention by confirmed time. At once, as a process wakes for each answer that it waits for. */
  async #trim(confirmedMs: number): Promise<void> {
    const { stores, retentionMs } = this.#deps;
    const { registry, tracked, importedQuotes } = stores;
    const beforeMs = confirmedMs - retentionMs;
    if (beforeMs <= 0) return;
    await Promise.all([
      registry.prune(beforeMs),
      tracked.prune(beforeMs, (quote) => importedQuotes.isOwn(quote)),
      this.#trimLog(beforeMs),
      stores.replays.trim(beforeMs),
      stores.learned.trim(beforeMs),
      this.#compactEnded(confirmedMs),
      stores.wallets.trimUnswept((wallet) => stores.plan.isTracked(wallet)),
    ]);
  }

  /** Trims the log (a hard cap) once the losses of all receivers are noted. With many receivers that takes several checks. */
  async #trimLog(beforeMs: number): Promise<void> {
    const { registry, events, backlog } = this.#deps.stores;
    const { noted, toMs } = this.#losses;
    // After an error it begins again.
    this.#losses = NO_LOSSES;
    const receivers = await registry.receivers();
    const due = receivers.filter(({ name }) => !noted.has(name)).slice(0, TRIMMED_PER_CHECK);
    let trimMs = Math.min(toMs, beforeMs);
    for (const some of chunks(due, TRIMMED_AT_ONCE)) {
      const reached = await Promise.all(
        some.flatMap((receiver) => [
          this.#isolated(receiver.name, dropExpired(this.#deps, receiver, beforeMs)),
          this.#isolated(receiver.name, backlog.trim(receiver.name, beforeMs)).then(() => beforeMs),
        ]),
      );
      trimMs = Math.min(trimMs, ...reached.map((atMs) => atMs ?? beforeMs));
    }
    const names = receivers.map(({ name }) => name);
    const all = new Set([...noted, ...due.map(({ name }) => name)]);
    const isNoted = names.every((name) => all.has(name));
    // What one check does not trim, the next one does, without noting anything again.
    if (!isNoted || (await events.trim(trimMs, names)).more) this.#losses = { noted: all, toMs: trimMs };
  }

  async #compactEnded(confirmedMs: number): Promise<void> {
    const { stores, retentionMs, log } = this.#deps;
    const loggedFromMs = await stores.events.loggedFromMs();
    const [moves] = await Promise.all([
      stores.ended.compact({ confirmedMs, retentionMs, loggedFromMs }),
      stores.ended.repair(),
    ]);
    if (moves.compacted + moves.removed > 0) log.info(moves, 'subjects.settled');
  }

  async #compareConfig(): Promise<void> {
    this.#isCompareDue = false;
    const { epoch, stores, upkeep, log } = this.#deps;
    const { digest: newest, behind } = await epoch.check();
    if (upkeep.isReplaced()) return;
    if (behind !== null && newest !== null && !(await this.#maySynchronise(behind))) return;
    if (newest === null || behind !== null || upkeep.isPartlyApplied()) {
      if (newest === null) this.#reportEmptied();
      await upkeep.resync();
      return;
    }
    const strange = newest !== upkeep.digest;
    if (strange && !this.#strangeConfig) {
      log.warn({ mine: upkeep.digest.slice(0, 12), newest: newest.slice(0, 12) }, 'config.differs');
    }
    this.#strangeConfig = strange;
    this.#tracked = await stores.tracked.count();
    if (!strange) await upkeep.store();
  }

  /**
   * True when this process may write its config to a Redis that went back: it has the newest known config, or it holds the
   * relay's lease and no process with that config did so within NEWEST_FIRST_MS.
   */
  async #maySynchronise({ digest, atMs }: Restore): Promise<boolean> {
    const { redis, stores, upkeep } = this.#deps;
    if (digest === upkeep.digest) return true;
    return stores.lease.token !== null && (await redisTimeMs(redis)) - (atMs ?? 0) > NEWEST_FIRST_MS;
  }

  /** Config subjects are tracked again; subjects that were tracked by themselves are lost: nothing else names them. */
  #reportEmptied(): void {
    this.#deps.log.error('redis.emptied');
    if (this.#tracked > 0) this.#deps.log.error({ subjects: this.#tracked }, 'tracked.lost');
    this.#tracked = 0;
  }

  #report(what: 'delivery-missing' | 'count-wrong', subject: string): void {
    this.#deps.signals.emit('repair.done', { what, subject });
    this.#deps.log.warn({ what, subject }, 'repair.done');
  }

  async close(): Promise<void> {
    await this.#rounds.close();
  }
}

type SettleContext = {
  stores: Stores;
  signals: Signals;
  log: Logger;
};

/** Reports a suspension move. Events that reach no receiver because of it are counted and listed as unmatched. */
export async function reportSettled(settled: Settled, deps: SettleContext): Promise<void> {
  const { signals, log, stores } = deps;
  if (settled.move === 'released') {
    log.info({ events: settled.events }, 'suspension.released');
    return;
  }
  const { reason, claimKeys, events, dropped } = settled;
  signals.emit('suspension.ended', { reason, events });
  log.warn({ reason, claimKeys, events }, 'suspension.ended');
  const gone = new Map<string, Set<string>>();
  for (const { entry, key } of dropped) gone.set(entry, (gone.get(entry) ?? new Set()).add(key));
  const places = [...gone.keys()];
  const entries = await stores.events.readAllAt(places);
  const unmatched = places.filter((place, index) => {
    const stored = entries[index] ?? null;
    if (stored?.kind !== 'event' || stored.claimKeys.length > 0) return false;
    return stored.withheld.every((key) => gone.get(place)?.has(key) === true);
  });
  await stores.unmatched.add(unmatched.map((entry) => ({ entry, reason: 'not-in-config' })));
  for (const _ of unmatched) signals.emit('event.unmatched', { reason: 'not-in-config' });
}
