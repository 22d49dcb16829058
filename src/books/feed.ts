import { isTransfer } from '../domain/books/book-state.ts';
import { dayAt } from '../domain/books/day.ts';
import type { DayRules } from '../domain/books/report.ts';
import type { BreakKind } from '../domain/books/report-schema.ts';
import { renderEvent } from '../domain/events/make-event.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import { type Fact, matchFacts, readBatch, wholeFact } from '../queues/deliveries/matches.ts';
import type { DeliveryFact, DeliveryStore } from '../store/deliveries.ts';
import type { EventLog } from '../store/event-log.ts';
import { compareEntries } from '../store/log-entry.ts';
import type { Registry } from '../store/registry.ts';
import type { SubjectStore } from '../store/subjects.ts';
import type { BookStore, FollowedDelivery, Place } from './book-store.ts';
import { type FeedItem, ingest, observationOf, snapshotsSince, subjectOf } from './observations.ts';

type Break = { kind: BreakKind; detail: string; log: string; entry: string };

/** Span before its last entry from which a log that went back is read again; events that are known are not ingested twice. */
const AGAIN_MS = 60_000;

/** Compares the place of the books with the log. Null where the log continues. */
async function findBreak(place: Place, events: EventLog): Promise<Break | null> {
  const [log, trimmed] = await Promise.all([events.ensureName(), events.trimmed()]);
  if (log !== place.log) {
    const detail = `found the event log ${log}, expected ${place.log}, read up to ${place.entry}: it was lost with its Redis. What happened between is not in the books but for what is still under way`;
    return { kind: 'other-log', detail, log, entry: trimmed ?? '0-0' };
  }
  if (trimmed !== null && compareEntries(place.entry, trimmed) < 0) {
    const detail = `events from ${timeOf(place.entry)} to ${timeOf(trimmed)} left the log (retention) before the books read them`;
    return { kind: 'trimmed', detail, log, entry: trimmed };
  }
  if (place.entry === '0-0' || place.entry === trimmed || (await events.at(place.entry)) !== null)
    return null;
  const [last] = (await events.before(place.entry, 1)).entries;
  const fromMs = Math.max(0, Number((last?.id ?? '0-0').split('-')[0]) - AGAIN_MS);
  const detail = `the entry ${place.entry}, which the books had read, is not in the log any more: its Redis was set back to ${last === undefined ? 'its beginning' : timeOf(last.id)}`;
  const again = `${fromMs}-0`;
  const entry = trimmed !== null && compareEntries(again, trimmed) < 0 ? trimmed : again;
  return { kind: 'lost', detail, log, entry };
}

function timeOf(entry: string): string {
  return new Date(Number(entry.split('-')[0])).toISOString();
}

/** Most deliveries per check, and most checks in one round, so that other work can run. */
const LOOKED_AT_TOGETHER = 200;
const MOST_LOOKS = 10;

/** Waits between two checks of a delivery that is not done. */
const LEAST_MS = 1_000;
const MOST_MS = 3_600_000;

/** A delivery without a fact whose event is older is no longer checked. */
const GONE_AFTER_MS = 86_400_000;

/**
 * Checks due deliveries, and notes those that were done. An open one is checked less and less often, but again when the day is
 * closed (`closesMs`): that report names the open ones. Returns whether all due deliveries were checked.
 */
export async function readDeliveries(
  books: BookStore,
  deps: { place: Place; deliveries: DeliveryStore; nowMs: number; closesMs: number },
): Promise<boolean> {
  for (let pass = 0; pass < MOST_LOOKS; pass += 1) {
    const due = await books.dueDeliveries(deps.nowMs, LOOKED_AT_TOGETHER);
    if (due.length > 0) await readStates(books, due, deps);
    if (due.length < LOOKED_AT_TOGETHER) return true;
  }
  return false;
}

async function readStates(
  books: BookStore,
  due: readonly FollowedDelivery[],
  {
    place,
    deliveries,
    nowMs,
    closesMs,
  }: { place: Place; deliveries: DeliveryStore; nowMs: number; closesMs: number },
): Promise<void> {
  const facts = await Promise.all(due.map(({ receiver, eventId }) => deliveries.fact(receiver, eventId)));
  const noted = due.map((one, index) => {
    const fact = facts[index] ?? null;
    const ageMs = Math.max(0, nowMs - one.eventMs);
    if (fact?.outcome === 'delivered') {
      const deliveredMs = fact.deliveredAt ?? fact.attempts.at(-1)?.atMs ?? nowMs;
      return { ...one, state: 'delivered', deliveredMs, checkMs: null };
    }
    const isGone = fact === null && ageMs > GONE_AFTER_MS;
    const waitMs = Math.min(MOST_MS, Math.max(LEAST_MS, ageMs / 4));
    const nextMs = Math.round(nowMs + waitMs);
    const checkMs = isGone ? null : nowMs < closesMs ? Math.min(nextMs, closesMs) : nextMs;
    return { ...one, state: isGone ? 'gone' : stateOf(fact), deliveredMs: null, checkMs };
  });
  await books.move({ from: place, to: place }, (writer) => writer.noteDeliveries(noted));
}

function stateOf(fact: DeliveryFact | null): string {
  if (fact === null || (fact.outcome === 'pending' && fact.tries === 0)) return 'waiting';
  return fact.outcome === 'dead' ? 'dead' : 'retrying';
}

/** The rules of the books. `closeAfterMs` is also the wait of a day after its end for late observations. */
type BookRules = DayRules & { zone: string; retentionMs: number };

/** The stores that feed the books. */
export type FeedSources = {
  events: EventLog;
  registry: Registry;
  subjects: SubjectStore;
  deliveries: DeliveryStore;
  directory: Directory;
};

/** The result of a round. `isAtEnd`: nothing more to read; `stoppedBy`: an entry that only a newer version can read. */
export type Fed = {
  ingested: number;
  isAtEnd: boolean;
  broke: Break | null;
  stoppedBy: string | null;
  closed: string[];
};

const BATCH = 200;

/** Interval of the snapshot checks, and of the writes of a place that only moves `readMs`. */
const SNAPSHOTS_EVERY_MS = 30_000;
const NOTE_EVERY_MS = 15_000;

const PRUNED_AT_ONCE = 200;

const MOST_NAMED = 3;

/**
 * Ingests the event log into the books. One round at a time, and one process at a time: a lease excludes others, and the
 * place, which moves in the same transaction as the rows, makes a concurrent write void.
 */
export class Feed {
  readonly #books: BookStore;
  readonly #sources: FeedSources;
  readonly #rules: BookRules;
  #place: Place | null = null;

  constructor(books: BookStore, sources: FeedSources, rules: BookRules) {
    this.#books = books;
    this.#sources = sources;
    this.#rules = rules;
  }

  get place(): Place | null {
    return this.#place;
  }

  /** Clears the place: another process may have moved it. */
  reset(): void {
    this.#place = null;
  }

  /**
   * Reads a part of the log. `mayClose`: the clocks agree; `confirmedMs`: the confirmed time, by which the retention ends.
   * Both are omitted where nothing else is known. Throws an OvertakenError where another process feeds too.
   */
  async round(
    nowMs: number,
    { mayClose = true, confirmedMs = nowMs }: { mayClose?: boolean; confirmedMs?: number } = {},
  ): Promise<Fed> {
    let place = this.#place ?? (await this.#books.place()) ?? (await this.#begin(nowMs));
    const broke = await findBreak(place, this.#sources.events);
    if (broke !== null) place = await this.#passBreak(place, broke, nowMs);
    const { entries, more } = await this.#sources.events.scan(place.entry, BATCH);
    const batch = await readBatch(entries, this.#sources.events);
    const seen = await this.#seen(batch.facts);
    const isAtEnd = !more && !batch.isCut && batch.stoppedBy === null;
    const isWorthNoting = batch.last !== null || (isAtEnd && nowMs - place.readMs >= NOTE_EVERY_MS);
    let ingested = 0;
    if (isWorthNoting) {
      const to = { ...place, entry: batch.last ?? place.entry, readMs: isAtEnd ? nowMs : place.readMs };
      const from = place;
      const { directory } = this.#sources;
      ingested = await this.#books.move({ from, to }, async (writer) => {
        const reported = seen.filter(({ isLate }) => !isLate);
        const { ingested: count, expired } = await ingest(writer, { place: from, directory }, reported);
        const late = seen.filter(({ isLate }) => isLate);
        const booked = await writer.bookedEvents(late.map(({ observation }) => observation.event.id));
        await writer.follow(
          // Deliveries of events outside the books are not followed: nothing would ever remove them.
          late.flatMap(({ observation: { event }, receivers, entry }) => {
            // After the event, also where a clock was ahead: entries have the same time until that has come.
            const eventMs = Math.max(Number(entry.split('-')[0]), Date.parse(event.timestamp) + 1);
            return booked.has(event.id)
              ? receivers.map((receiver) => ({ eventId: event.id, receiver, eventMs }))
              : [];
          }),
        );
        if (expired.length > 0) {
          await writer.noteBreak(nowMs, { kind: 'expired', detail: expiredText(expired) });
        }
        for (const { reason } of batch.unreadable) {
          await writer.noteBreak(nowMs, {
            kind: 'unreadable',
            detail: `an event that cannot be read: ${reason}`,
          });
        }
        return count;
      });
      place = to;
    }
    this.#place = place;
    const closesMs = dayAt(place.closedMs, place.zone).toMs + this.#rules.closeAfterMs;
    const { deliveries } = this.#sources;
    // A day is closed only after all its deliveries were checked: its report would name some that were done in time.
    const isComplete = await readDeliveries(this.#books, { place, deliveries, nowMs, closesMs });
    const closed = mayClose && isAtEnd && isComplete ? await this.#atEnd(nowMs, confirmedMs) : [];
    return { ingested, isAtEnd, broke, stoppedBy: batch.stoppedBy?.id ?? null, closed };
  }

  async #begin(nowMs: number): Promise<Place> {
    const { events } = this.#sources;
    const { zone } = this.#rules;
    const [log, trimmed, oldest] = await Promise.all([
      events.ensureName(),
      events.trimmed(),
      events.after('0-0', 1),
    ]);
    const [first] = oldest.entries;
    const firstMs = first === undefined ? nowMs : Number(first.id.split('-')[0]);
    const openedMs = dayAt(firstMs, zone).fromMs;
    return this.#books.begin({
      log,
      entry: trimmed ?? '0-0',
      epoch: 1,
      zone,
      openedMs,
      closedMs: openedMs,
      readMs: 0,
      checkedMs: 0,
    });
  }

  async #passBreak(from: Place, broke: Break, nowMs: number): Promise<Place> {
    const { log, entry, kind, detail } = broke;
    const to = { ...from, log, entry, epoch: from.epoch + 1, checkedMs: 0 };
    await this.#books.move({ from, to }, (writer) => writer.noteBreak(nowMs, { kind, detail }));
    this.#place = to;
    return to;
  }

  /** Renders the events of transfers for a reader of everything, each with its matching receivers. */
  async #seen(facts: readonly Fact[]): Promise<(FeedItem & { isLate: boolean })[]> {
    const { registry, directory } = this.#sources;
    const wanted = facts.filter(({ event, claimKeys }) => claimKeys !== null && isTransfer(event));
    const subscriptions = await registry.subscriptions(
      wanted.map(wholeFact).flatMap(({ claimKeys }) => claimKeys ?? []),
    );
    const matched = await matchFacts(wanted, { registry, directory });
    const receivers = new Map<string, string[]>();
    for (const receiver of await registry.receivers()) {
      if (receiver.removed) continue;
      for (const { at } of matched(receiver))
        receivers.set(at, [...(receivers.get(at) ?? []), receiver.name]);
    }
    // The books name a transfer's subscriptions also while those are suspended.
    return wanted.map(wholeFact).map(({ event, claimKeys, place, at }) => ({
      observation: observationOf(renderEvent(event, claimKeys ?? [], subscriptions, directory), event),
      entry: at,
      receivers: receivers.get(at) ?? [],
      isLate: place !== at,
    }));
  }

  /** Does the work at the end of the log: transfers without events, days that are over, and removals. */
  async #atEnd(nowMs: number, confirmedMs: number): Promise<string[]> {
    const place = this.#place;
    if (place === null) return [];
    // A clock that was set back stored snapshots before that time: all are checked again.
    const isWhole = place.checkedMs === 0 || nowMs < place.checkedMs - SNAPSHOTS_EVERY_MS;
    if (!isWhole && nowMs - place.checkedMs < SNAPSHOTS_EVERY_MS) return [];
    const found = await snapshotsSince(isWhole ? 0 : place.checkedMs - SNAPSHOTS_EVERY_MS, this.#sources);
    const due = found.filter(
      ({ lastEntry }) => lastEntry === null || compareEntries(lastEntry, place.entry) <= 0,
    );
    const closed: string[] = [];
    const to = { ...place, zone: this.#rules.zone, checkedMs: nowMs, readMs: nowMs };
    const ends: number[] = [];
    for (;;) {
      const day = dayAt(to.closedMs, to.zone);
      if (day.toMs + this.#rules.closeAfterMs > nowMs) break;
      to.closedMs = day.toMs;
      ends.push(day.toMs);
      closed.push(day.day);
    }
    await this.#books.move({ from: place, to }, async (writer) => {
      const booked = await writer.transfers(due.map(subjectOf));
      const news = due.filter((one) => {
        const before = booked.get(subjectOf(one));
        const { status } = one.observation.event.data;
        if (before === undefined) return true;
        // After a restore, an older snapshot has less than the books: its missed changes are found again under their old ids.
        const isOfNow = one.observation.event.data.epoch >= this.#sources.subjects.epoch.begun.epoch;
        return isOfNow && before.epoch < place.epoch && before.state.status !== status;
      });
      await ingest(writer, { place, directory: this.#sources.directory }, news);
      for (const end of ends) await writer.close(end, this.#rules);
      await writer.prune({
        nowMs: Math.min(nowMs, confirmedMs),
        retentionMs: this.#rules.retentionMs,
        count: PRUNED_AT_ONCE,
      });
    });
    this.#place = to;
    return closed;
  }
}

function expiredText(subjects: readonly string[]): string {
  const named = [...new Set(subjects)];
  const more = named.length > MOST_NAMED ? ` and ${named.length - MOST_NAMED} more` : '';
  return `events of transfers that the books had removed (books.retention) are not in them: ${named.slice(0, MOST_NAMED).join(', ')}${more}`;
}
