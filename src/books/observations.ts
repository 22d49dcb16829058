import { createHash } from 'node:crypto';
import {
  type BookState,
  believableMs,
  happenedMs,
  isOfOurClock,
  nextState,
  type Observation,
} from '../domain/books/book-state.ts';
import { bookedMs, linesOf, type Posting, postingsBetween } from '../domain/books/postings.ts';
import type { Event, RenderedEvent } from '../domain/events/event.ts';
import { storableText } from '../domain/storable-text.ts';
import { foldHex } from '../domain/subjects/subject.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import type { BookedEvent, BookedTransfer, BookWriter, Intake, Place } from './book-store.ts';

/** Something that the books take in: as it was seen, where it stands in the log, and for whom it is. */
export type Seen = { observation: Observation; entry: string; receivers: readonly string[] };

/** An event of the log, with what its rendering for one who sees all says of it. */
export function observationOf(rendered: RenderedEvent, event: Event): Observation {
  const { transfer = null, wallets, subscriptions, metadata } = rendered.data;
  return { event, facts: transfer, subscribers: { wallets, subscriptions, metadata } };
}

/**
 * Takes things in, in the transaction of their place: each once, whatever comes twice. Where a later event of the same log
 * has been taken in already, one is noted and posts nothing. What is said of a transfer that the books had forgotten is left
 * out: its money had come and gone. Returns how many were new, and of which
 * transfers some were left out.
 */
export async function takeIn(
  books: BookWriter,
  { place, directory }: { place: Place; directory: Directory },
  seen: readonly Seen[],
): Promise<{ taken: number; forgotten: string[] }> {
  const known = await books.knownEvents(seen.map(({ observation }) => observation.event.id));
  const subjects = [...new Set(seen.map(subjectOf))];
  const transfers = await books.transfers(subjects);
  const gone = await books.forgotten(subjects.filter((subject) => !transfers.has(subject)));
  const forgotten: string[] = [];
  const intakes: { event: BookedEvent; postings: Posting[]; receivers: readonly string[] }[] = [];
  const touched = new Set<string>();
  for (const one of seen) {
    const { id } = one.observation.event;
    const taken = known.has(id) ? null : booked(one, place, transfers.get(subjectOf(one)) ?? null);
    if (taken === null) continue;
    known.add(id);
    const { subject, epoch, sequence, state } = taken.event;
    if (gone.has(subject)) {
      forgotten.push(subject);
      continue;
    }
    transfers.set(subject, { subject, epoch, sequence, bookedMs: taken.touchedMs, state });
    touched.add(subject);
    intakes.push({ ...taken, receivers: one.receivers });
  }
  if (intakes.length === 0) return { taken: 0, forgotten };
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
  return { taken: intakes.length, forgotten };
}

/** The longest subject that is a key as it is: an index of Postgres takes no row beyond some 2,700 bytes. */
const LONGEST_SUBJECT = 300;

/** What a transfer is called in the books. */
export function subjectOf({ observation }: Pick<Seen, 'observation'>): string {
  return asKey(observation.event.data.subject.id);
}

/** The id of a subject as a key of either database. */
export function asKey(id: string): string {
  const subject = storableText(id);
  if (subject.length <= LONGEST_SUBJECT) return subject;
  return `${subject.slice(0, 200).toWellFormed()}…${createHash('sha256').update(subject).digest('hex')}`;
}

/**
 * What an event comes to after what is known of its transfer, and before when nothing of it is booked any more; null where its
 * money is counted with another.
 */
function booked(
  seen: Seen,
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
    lastBookedMs: before?.state.saidMs ?? before?.bookedMs ?? null,
  };
  const seenMs = Date.parse(event.timestamp);
  const postings = postingsBetween(before?.state ?? null, after, { observation, times });
  const happened = bookedMs(believableMs(happenedMs(event), seenMs), times);
  const eventMs = Math.max(happened, ...postings.map((posting) => posting.bookedMs));
  // A word of our own clock does not move what the upstream says next into its day.
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
      state: isBeside ? after : { ...after, saidMs: eventMs },
    },
    postings,
  };
}

/** What the tokens of some transfers are called, as far as their decimals are certain. */
function tokensOf(states: readonly BookState[], directory: Directory): Intake['tokens'] {
  const tokens = new Map<string, Intake['tokens'][number]>();
  for (const { chainId, token } of states.flatMap(linesOf)) {
    const known = chainId === '' || token === '' ? null : directory.token(chainId, token);
    if (known !== null) tokens.set(`${chainId} ${token}`, { chainId, token: foldHex(token), ...known });
  }
  return [...tokens.values()];
}
