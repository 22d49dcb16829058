import { wantsType } from '../../domain/events/filter.ts';
import { MOST_OPEN } from '../../store/backlog.ts';
import type { StoredReceiver } from '../../store/definitions.ts';
import { compareEntries } from '../../store/log-entry.ts';
import type { Replay, ReplayStore } from '../../store/replays.ts';
import { openDeliveries } from './follow.ts';
import { type Fact, type Match, matchesOf, NewerEntryError, readBatch, wholeFact } from './matches.ts';
import type { RelayContext } from './relay-context.ts';

const BATCH = 200;

/** Open deliveries below which a replay goes on: new events must find free slots. */
const MOST_PENDING = MOST_OPEN / 2;

/** Reads the replays under way, by receiver, the first requested first. */
export async function replaysUnderWay(replays: ReplayStore): Promise<Map<string, string>> {
  const first = new Map<string, string>();
  for (const id of await replays.open()) {
    const replay = await replays.read(id);
    if (replay === null) await replays.remove(id);
    else if (!first.has(replay.receiver)) first.set(replay.receiver, id);
  }
  return first;
}

type ReplayStep = { token: string; receiver: StoredReceiver; id: string };

/**
 * Advances a replay by a batch, under the relay's fencing token. Returns true when there is more to do at once. Skips
 * unreadable entries, which were quarantined when they were new. Throws NewerEntryError before an entry of a newer version.
 */
export async function takeReplay({ token, receiver, id }: ReplayStep, deps: RelayContext): Promise<boolean> {
  const { stores, directory } = deps;
  const { events, registry, replays, backlog } = stores;
  const replay = await replays.read(id);
  if (replay === null || (await backlog.counts(receiver.name)).pending >= MOST_PENDING) return false;
  if (replay.places !== null) return takePlaces({ token, receiver, id }, replay.places, deps);
  const piece = await events.after(replay.cursor, BATCH);
  const entries = piece.entries.filter(({ id }) => compareEntries(id, replay.end) <= 0);
  const { facts, read, last, stoppedBy, isCut } = await readBatch(entries, events);
  if (stoppedBy !== null && read === 0) throw new NewerEntryError(stoppedBy);
  const wanted = facts
    .map(wholeFact)
    .filter(
      ({ event, place }) =>
        isInRange(place, replay) && (replay.types === null || wantsType(replay.types, event.type)),
    );
  const matched = await matchesOf(receiver, wanted, { registry, directory });
  if (!(await openReplayed(matched, { token, receiver, id }, deps))) return false;
  const isLast = !piece.more || entries.length < piece.entries.length;
  const ended = isLast && !isCut && stoppedBy === null;
  return replays.advance(token, id, { cursor: last ?? replay.end, read, ended });
}

/** Opens deliveries of a replay. Their events are no longer without a receiver. False when another process relays now. */
async function openReplayed(
  matched: readonly Match[],
  { token, receiver, id }: ReplayStep,
  deps: RelayContext,
): Promise<boolean> {
  const plan = { token, receiver, matched, replay: id, cursor: null };
  if ((await openDeliveries(plan, deps)) === null) return false;
  await deps.stores.unmatched.remove(matched.map(({ entry }) => entry));
  return true;
}

async function takePlaces(
  { token, receiver, id }: ReplayStep,
  places: readonly string[],
  deps: RelayContext,
): Promise<boolean> {
  const { stores, directory } = deps;
  const facts = await factsAt(places, receiver.name, stores);
  const matched = await matchesOf(receiver, facts, { registry: stores.registry, directory });
  if (!(await openReplayed(matched, { token, receiver, id }, deps))) return false;
  return stores.replays.advance(token, id, { cursor: '0-0', read: facts.length, ended: true });
}

/** Reads events at entries, with the claims to a receiver, also later ones in its delivery. Omits gone and unreadable ones. */
export async function factsAt(
  places: readonly string[],
  receiver: string,
  { events, deliveries }: RelayContext['stores'],
): Promise<Fact[]> {
  const { facts } = await readBatch(
    (await events.readAllAt(places)).filter((entry) => entry !== null),
    events,
  );
  return Promise.all(
    facts.map(async (event) => {
      const fact = wholeFact(event);
      if (fact.claimKeys === null) return fact;
      const existing = await deliveries.fact(receiver, fact.event.id);
      const isSuspended = (existing?.suspended ?? '') !== '';
      return {
        ...fact,
        isSuspended,
        claimKeys: [...new Set([...fact.claimKeys, ...(existing?.claimKeys ?? [])])],
      };
    }),
  );
}

/** True when a place is in a replay's range. A subscribers entry belongs to the range of the event that it names. */
function isInRange(place: string, { since, until }: Replay): boolean {
  return compareEntries(place, since) > 0 && compareEntries(place, until) < 0;
}
