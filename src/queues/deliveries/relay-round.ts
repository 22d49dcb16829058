import type { StoredReceiver } from '../../store/definitions.ts';
import { compareEntries } from '../../store/log-entry.ts';
import { isHeld } from '../../store/receivers.ts';
import type { Standing } from '../../store/relay-lease.ts';
import { type Ahead, follow, type HeldLease, hasRoom } from './follow.ts';
import { NewerEntryError } from './log-batch.ts';
import type { RelayParts } from './relay-parts.ts';
import { takeReplay } from './replays.ts';
import { resume } from './resumption.ts';
import { countUnmatched } from './unmatched.ts';

/**
 * What a round goes by: the receivers by name, `all` with those that failed just now, where each stands, the replays under
 * way by receiver, and what is known to stand behind the cursor of most.
 */
export type RoundView = {
  known: ReadonlyMap<string, StoredReceiver>;
  all: readonly StoredReceiver[];
  standings: readonly Standing[];
  replays: ReadonlyMap<string, string>;
  ahead: Ahead | null;
};

/**
 * What a round came to: whether there is more to do at once, whether a receiver that takes what it gets has no room, and
 * the entry up to which all others have been taken along (null: none were).
 */
export type Round = { more: boolean; full: boolean; reached: string | null };

export const IDLE: Round = { more: false, full: false, reached: null };

/**
 * One round over all receivers: goes on with those that are being enabled, takes the others along the event log (reads it,
 * finds out which receivers match which events, opens the deliveries), opens what is requested again, and
 * counts the events that no receiver gets.
 */
export async function relayRound(view: RoundView, lease: HeldLease, parts: RelayParts): Promise<Round> {
  const open = view.standings.filter((standing) => !isHeld(standing));
  const enabling = view.standings.filter(({ state }) => state === 'enabling');
  let moved = false;
  for (const { name } of enabling) {
    if (!lease.isHeld()) return { ...IDLE, more: moved };
    moved = (await each(name, lease, () => resume(lease.token, name, parts))) || moved;
  }
  const { more, reached, stopped } = await followLog({ ...view, standings: open }, lease, parts);
  const replayed = await replay({ ...view, standings: open }, lease, parts);
  const counting =
    lease.isHeld() && (await countUnmatched({ receivers: view.all, ahead: view.ahead }, lease, parts));
  if (stopped !== null && !moved && !more && !replayed) throw stopped;
  const full = open.some((standing) => !hasRoom(standing) && standing.state === 'ok');
  return { more: moved || more || counting || replayed, full, reached };
}

/** Takes receivers along the log: those at the same place together, so that what they are owed is read once for all. */
async function followLog(
  { standings, known, ahead }: RoundView,
  lease: HeldLease,
  parts: RelayParts,
): Promise<{ more: boolean; reached: string | null; stopped: NewerEntryError | null }> {
  let more = false;
  let reached: string | null = null;
  let stopped: NewerEntryError | null = null;
  for (const [cursor, group] of Map.groupBy(standings.filter(hasRoom), ({ cursor }) => cursor)) {
    const receivers = group.flatMap(({ name, open }) => {
      const receiver = known.get(name);
      return receiver === undefined ? [] : [{ receiver, open }];
    });
    const read = ahead?.after === cursor ? ahead : null;
    const came = await follow({ cursor, receivers, ahead: read }, lease, parts);
    // The others are taken along as far as they can be read before the lease goes.
    if (came instanceof NewerEntryError) stopped = came;
    else if (came === 'fenced') return { more: false, reached: null, stopped: null };
    else {
      more ||= came.more;
      if (reached === null || compareEntries(came.reached, reached) < 0) reached = came.reached;
    }
  }
  return { more, reached, stopped };
}

/** Takes the replays under way a batch further. Returns whether there is more to do at once. */
async function replay(
  { standings, known, replays }: RoundView,
  lease: HeldLease,
  parts: RelayParts,
): Promise<boolean> {
  const { token } = lease;
  let moved = false;
  for (const { name } of replays.size === 0 ? [] : standings) {
    const id = replays.get(name);
    const receiver = known.get(name);
    if (id === undefined || receiver === undefined) continue;
    if (!lease.isHeld()) return moved;
    moved = (await each(name, lease, () => takeReplay({ token, receiver, id }, parts))) || moved;
  }
  return moved;
}

/** Works on one receiver, whose error holds up no other. */
async function each(name: string, { failed }: HeldLease, work: () => Promise<boolean>): Promise<boolean> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NewerEntryError) throw error;
    failed(name, error);
    return false;
  }
}
