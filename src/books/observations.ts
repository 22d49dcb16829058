import { createHash } from 'node:crypto';
import {
  type BookState,
  believableMs,
  happenedMs,
  isOfOurClock,
  nextState,
  type Observation,
  phaseOf,
} from '../domain/books/book-state.ts';
import { bookedMs, linesOf, type Posting, postingsBetween } from '../domain/books/postings.ts';
import { fundedAt } from '../domain/changes/next-snapshot.ts';
import type { Event, RenderedEvent } from '../domain/events/event.ts';
import { renderEvent } from '../domain/events/make-event.ts';
import { storableText } from '../domain/json.ts';
import { asSubjectId, eventKind, foldHex, parseSubjectId } from '../domain/subjects/subject.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import type { Match } from '../queues/deliveries/matches.ts';
import type { StoredReceiver } from '../store/definitions.ts';
import type { DeliveryFact, DeliveryStore } from '../store/deliveries.ts';
import type { RelayLease } from '../store/lease.ts';
import { compareEntries } from '../store/log-entry.ts';
import type { Registry } from '../store/registry.ts';
import type { ChangedSubject, SubjectEntry, SubjectStore } from '../store/subjects.ts';
import type {
  BookedEvent,
  BookedTransfer,
  BookStore,
  BookWriter,
  FollowedDelivery,
  Intake,
  Place,
} from './book-store.ts';

/** An observation to ingest, with its entry in the log and its receivers. */
export type FeedItem = { observation: Observation; entry: string; receivers: readonly string[] };

/** Builds the observation of an event, with the facts of its rendering for a reader of everything. */
export function observationOf(rendered: RenderedEvent, event: Event): Observation {
  const { transfer = null, wallets, subscriptions, metadata } = rendered.data;
  return { event, facts: transfer, subscribers: { wallets, subscriptions, metadata } };
}

/**
 * Ingests observations, in the transaction of their place, each once. One that a later event of the same log has overtaken is
 * noted and posts nothing. Observations of a removed transfer are omitted: its money had come and gone. Returns how many were
 * new, and the transfers of omitted ones.
 */
export async function ingest(
  books: BookWriter,
  { place, directory }: { place: Place; directory: Directory },
  seen: readonly FeedItem[],
): Promise<{ ingested: number; expired: string[] }> {
  const bookedEvents = await books.bookedEvents(seen.map(({ observation }) => observation.event.id));
  const subjects = [...new Set(seen.map(subjectOf))];
  const transfers = await books.transfers(subjects);
  const gone = await books.expired(subjects.filter((subject) => !transfers.has(subject)));
  const expired: string[] = [];
  const intakes: { event: BookedEvent; postings: Posting[]; receivers: readonly string[] }[] = [];
  const touched = new Set<string>();
  for (const one of seen) {
    const { id } = one.observation.event;
    const ingested = bookedEvents.has(id) ? null : booked(one, place, transfers.get(subjectOf(one)) ?? null);
    if (ingested === null) continue;
    bookedEvents.add(id);
    const { subject, epoch, sequence, state } = ingested.event;
    if (gone.has(subject)) {
      expired.push(subject);
      continue;
    }
    transfers.set(subject, { subject, epoch, sequence, bookedMs: ingested.touchedMs, state });
    touched.add(subject);
    intakes.push({ ...ingested, receivers: one.receivers });
  }
  if (intakes.length === 0) return { ingested: 0, expired };
  const changed = [...touched].flatMap((subject) => transfers.get(subject) ?? []);
  await books.take({
    events: intakes.map(({ event }) => event),
    postings: intakes.flatMap(({ event, postings }) => postings.map((posting) => ({ event, posting }))),
    transfers: changed,
    deliveries: intakes.flatMap(({ event, receivers }) =>
      receivers.map((receiver) => ({ eventId: event.eventId, receiver, eventMs: event.atMs })),
    ),
    tokens: tokensOf(
      changed.map(({ state }) => state),
      directory,
    ),
  });
  return { ingested: intakes.length, expired };
}

const MOST_NAMED = 3;

/** Names transfers whose observations were omitted. */
export function expiredText(subjects: readonly string[]): string {
  const named = [...new Set(subjects)];
  const more = named.length > MOST_NAMED ? ` and ${named.length - MOST_NAMED} more` : '';
  return `events of transfers that the books had removed (books.retention) are not in them: ${named.slice(0, MOST_NAMED).join(', ')}${more}`;
}

/** Longest subject that is a key unchanged: an index of Postgres accepts no row beyond some 2,700 bytes. */
const LONGEST_SUBJECT = 300;

/** Returns the name of a transfer in the books. */
export function subjectOf({ observation }: FeedItem): string {
  return asKey(observation.event.data.subject.id);
}

function asKey(id: string): string {
  const subject = storableText(id);
  if (subject.length <= LONGEST_SUBJECT) return subject;
  return `${subject.slice(0, 200).toWellFormed()}…${createHash('sha256').update(subject).digest('hex')}`;
}

/** Books an event by the known state of its transfer and the closed days; null where its money is counted with another. */
function booked(
  seen: FeedItem,
  place: Place,
  before: BookedTransfer | null,
): { event: BookedEvent; postings: Posting[]; touchedMs: number } | null {
  const { observation, entry } = seen;
  const { event } = observation;
  const isPassed = before !== null && before.epoch === place.epoch && event.data.sequence <= before.sequence;
  const after = isPassed ? before.state : nextState(before?.state ?? null, observation);
  if (before === null && after.isCountedElsewhere) return null;
  const times = {
    openedMs: place.openedMs,
    closedMs: place.closedMs,
    lastBookedMs: before?.state.reportedMs ?? before?.bookedMs ?? null,
  };
  const seenMs = Date.parse(event.timestamp);
  const postings = postingsBetween(before?.state ?? null, after, { observation, times });
  const happened = bookedMs(believableMs(happenedMs(event), seenMs), times);
  const eventMs = Math.max(happened, ...postings.map((posting) => posting.bookedMs));
  // An event of our own clock does not move the upstream's next report into its day.
  const isBeside = before !== null && postings.length === 0 && (isPassed || isOfOurClock(event));
  return {
    touchedMs: Math.max(eventMs, before?.bookedMs ?? 0),
    event: {
      eventId: event.id,
      subject: subjectOf(seen),
      epoch: isPassed ? before.epoch : place.epoch,
      sequence: isPassed ? before.sequence : event.data.sequence,
      type: event.type,
      atMs: seenMs,
      bookedMs: eventMs,
      entry,
      state: isBeside ? after : { ...after, reportedMs: eventMs },
    },
    postings,
  };
}

/** Returns the tokens of some transfers, as far as their decimals are certain. */
function tokensOf(states: readonly BookState[], directory: Directory): Intake['tokens'] {
  const tokens = new Map<string, Intake['tokens'][number]>();
  for (const { chainId, token } of states.flatMap(linesOf)) {
    const listed = chainId === '' || token === '' ? null : directory.token(chainId, token);
    if (listed !== null) tokens.set(`${chainId} ${token}`, { chainId, token: foldHex(token), ...listed });
  }
  return [...tokens.values()];
}

const CHUNK = 200;

/** A transfer as in its snapshot. `lastEntry` is the place of its newest event in the log; null for none. */
type SnapshotSeen = FeedItem & { lastEntry: string | null };

/**
 * Returns open transfers whose snapshot was first stored, or got an event, since a time (Redis time, ms). Those that were open
 * when their wallet was subscribed are history: no event reports them until they change, and the books get them here. Throws
 * where one cannot be read: the end of a day waits for it, the events of the log do not.
 */
export async function snapshotsSince(
  sinceMs: number,
  sources: { subjects: SubjectStore; registry: Registry; directory: Directory },
): Promise<SnapshotSeen[]> {
  const { subjects } = sources;
  const seen: SnapshotSeen[] = [];
  let from: ChangedSubject | null = null;
  for (;;) {
    const some: ChangedSubject[] = await subjects.changed(from, CHUNK);
    const recent = some.filter(({ atMs }) => atMs >= sinceMs);
    const ids = recent.flatMap(({ subject }) => {
      const key = parseSubjectId(subject);
      return key?.kind === 'intent' || key?.kind === 'deposit-address' ? [asSubjectId(subject)] : [];
    });
    const entries = await subjects.peekEach(ids);
    for (const [index, id] of ids.entries()) {
      const fault = entries[index]?.fault;
      if (fault !== undefined) throw new Error(`${id} cannot be read: ${fault}`);
      const one = await readOne(id, entries[index], sources);
      if (one !== null) seen.push(one);
    }
    from = some.at(-1) ?? null;
    if (some.length < CHUNK || recent.length < some.length || from === null) return seen;
  }
}

async function readOne(
  subject: ReturnType<typeof asSubjectId>,
  entry: SubjectEntry | undefined,
  { subjects, registry, directory }: { subjects: SubjectStore; registry: Registry; directory: Directory },
): Promise<SnapshotSeen | null> {
  const snapshot = entry?.snapshot ?? null;
  if (snapshot === null || snapshot.salvaged === true || phaseOf(snapshot.status) !== 'open') return null;
  const [lastEntry = null] = await subjects.entries.list([subject], { before: null, from: null, count: 1 });
  const claimKeys = (entry?.claims ?? []).map(({ key }) => key);
  const kind = eventKind(subject);
  const since = fundedAt(subject, snapshot);
  const event: Event = {
    id: `snapshot ${asKey(subject)} ${snapshot.version}`,
    type: `${kind}.${snapshot.status.toLowerCase()}`,
    timestamp: new Date(snapshot.observedAtMs).toISOString(),
    data: {
      subject: { kind, id: subject },
      sequence: snapshot.sequence,
      epoch: snapshot.epoch,
      status: snapshot.status,
      previousStatus: null,
      changes: [],
      record: snapshot.record,
      upstreamUpdatedAt: snapshot.updatedAt,
      detectionDelaySeconds: null,
      ...(since === null ? {} : { fundedAt: since }),
      ...(entry?.promised === null || entry?.promised === undefined ? {} : { promised: entry.promised }),
    },
  };
  const rendered = renderEvent(event, claimKeys, await registry.subscriptions(claimKeys), directory);
  return { observation: observationOf(rendered, event), entry: lastEntry ?? '0-0', receivers: [], lastEntry };
}

/**
 * Returns the entries of the events, among those that a receiver matches now, that it was owed: with a delivery, or not yet read
 * by the relay. Books that begin later than the receiver read events from before a change of its filter.
 */
export async function owedTo(
  { name }: StoredReceiver,
  matched: readonly Match[],
  { lease, deliveries }: { lease: RelayLease; deliveries: DeliveryStore },
): Promise<string[]> {
  if (matched.length === 0) return [];
  // In this order: a delivery is opened in the step that moves the cursor past its event.
  const cursor = await lease.cursor(name);
  const owed = await Promise.all(
    matched.map(
      async ({ at, event }) =>
        compareEntries(at, cursor) > 0 || (await deliveries.fact(name, event.id)) !== null,
    ),
  );
  return matched.flatMap(({ at }, index) => (owed[index] === true ? [at] : []));
}

/** Most deliveries per check, and most checks in one round, so that other work can run. */
const CHECKED_TOGETHER = 200;
const MOST_PASSES = 10;

/** Waits between two checks of a delivery that is not done, and of a dead letter, which only an operator delivers. */
const LEAST_MS = 1_000;
const MOST_MS = 60_000;
const MOST_DEAD_MS = 600_000;

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
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    const due = await books.dueDeliveries(deps.nowMs, CHECKED_TOGETHER);
    if (due.length > 0) await readStates(books, due, deps);
    if (due.length < CHECKED_TOGETHER) return true;
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
    const mostMs = fact?.outcome === 'dead' ? MOST_DEAD_MS : MOST_MS;
    const waitMs = Math.min(mostMs, Math.max(LEAST_MS, ageMs / 4));
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
