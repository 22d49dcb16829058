import type { Logger } from 'pino';
import { Duty, sharedWaitMs } from '../../duty.ts';
import { reportError } from '../../signals.ts';
import { chunks, SCHEMA_VERSION } from '../../store/commands.ts';
import type { StoredReceiver } from '../../store/definitions.ts';
import type { ReceiverProgress } from '../../store/lease.ts';
import { compareEntries, type ExpectedEntry } from '../../store/log-entry.ts';
import { isHeld } from '../../store/receivers.ts';
import type { Stores } from '../../store/stores.ts';
import { countUnmatched } from './count-unmatched.ts';
import { type Ahead, follow, type HeldLease, hasCapacity, PLACES_AT_ONCE } from './follow.ts';
import { NewerEntryError } from './matches.ts';
import { type LogSources, NextEntries } from './next-entries.ts';
import type { RelayContext } from './relay-context.ts';
import { RelayMemoryState, type Remembered } from './relay-memory.ts';
import { replaysUnderWay, takeReplay } from './replays.ts';

/** Time that a quiet relay waits for the next entry, and interval of requesting a lease. */
const QUIET_MS = 1_000;
const ERROR_RETRY_MS = 1_000;

/** Wait while a receiver that accepts deliveries has the most open deliveries. */
const FULL_MS = 20;

const RENEW_MS = 1_000;

/** Time for which a relay that stops before an entry of a newer version leaves the lease to others. */
const NEWER_WAIT_MS = 30_000;

/** Input of a round, requested at once: a round trip to Redis is slow under load. */
type RoundInput = { newest: string; token: string | null; round: RoundView };

/** State that only the holder of the lease changes, as its last round left it. Unknown under another fencing token. */
type HolderState = { token: string; names: readonly string[]; counted: string };

/**
 * Moves the cursor of every receiver along the event log and opens the deliveries that follow from it. One process relays at a
 * time. Opening deliveries and moving the cursor is one step under the fencing token. When a relay dies in between, its
 * successor finds the deliveries and adds nothing.
 */
export class Relay {
  readonly #deps: RelayContext;
  readonly #next: NextEntries;
  readonly #relaying: Duty;
  /** Renews the lease whatever the round does. */
  readonly #renewing: Duty;
  #isHolding = false;
  #isStopped = false;
  /** Receivers that failed in the last round -> time of the retry (own clock, ms). */
  readonly #failed = new Map<string, number>();
  /** Null where another process may have relayed since. */
  #state: HolderState | null = null;
  readonly #memory: RelayMemoryState;
  #came: { after: string; piece: Ahead['piece'] } | null = null;
  /** The step under way for entries that are expected. Everything else that moves cursors comes after it. */
  #expected: Promise<unknown> = Promise.resolve();

  constructor(deps: RelayContext, sources: LogSources) {
    this.#deps = deps;
    const opens = { ...deps, stores: { ...deps.stores, deliveries: sources.opening } };
    sources.own.onExpected((entries) => this.#openExpected(entries, opens));
    this.#memory = new RelayMemoryState(deps.stores.registry.definitions);
    this.#next = new NextEntries(deps.stores.events, sources);
    this.#relaying = new Duty({
      everyMs: QUIET_MS,
      isShared: true,
      run: async () => ({ waitMs: await this.#run() }),
      onError: (error) => {
        reportError(deps, 'relay.error', { error });
        return { waitMs: ERROR_RETRY_MS };
      },
    });
    this.#renewing = new Duty({
      everyMs: RENEW_MS,
      isShared: true,
      run: async () => {
        if (deps.stores.lease.token !== null) await this.#hold();
      },
      onError: () => undefined,
    });
  }

  start(): void {
    this.#relaying.start(0);
    this.#renewing.start();
  }

  isRunning(): boolean {
    return this.#relaying.isOn;
  }

  /** Makes a round, and waits for the next entry. Returns the wait until the next round. */
  async #run(): Promise<number> {
    this.#noteStopped(false);
    try {
      const { more, full, reached } = await this.round();
      return more || this.#relaying.isClosed ? 0 : await this.#wait(reached, full ? FULL_MS : QUIET_MS);
    } catch (error) {
      if (!(error instanceof NewerEntryError) || this.#relaying.isClosed) throw error;
      await this.#leaveToNewer(error);
      return NEWER_WAIT_MS;
    }
  }

  /** Takes or renews the lease. */
  async #hold(): Promise<string | null> {
    const token = await this.#deps.stores.lease.hold();
    this.#noteHolding(token !== null);
    return token;
  }

  async #release(): Promise<void> {
    await this.#deps.stores.lease.release();
    this.#noteHolding(false);
  }

  /** Makes one round over all receivers, under the lease; does nothing where another process has it. */
  async round(): Promise<Round & { reached: string }> {
    await this.#expected;
    this.#memory.note(null);
    const { newest, token, round } = await this.#readRound();
    const came = token === null ? IDLE : await this.#relay(token, round);
    // The place that all reached, not the newest entry: more may have been added amid the round.
    return { ...came, reached: came.reached ?? newest };
  }

  async #relay(token: string, view: RoundView): Promise<Round> {
    // It goes on while the lease under which it began is held.
    const isHeld = (): boolean => !this.#relaying.isClosed && this.#deps.stores.lease.token === token;
    const lease = { token, isHeld, failed: (name: string, error: unknown) => this.#note(name, error) };
    this.#state = null;
    const came = await relayRound(view, lease, this.#deps);
    const { counted } = came;
    // Otherwise another process may hold the lease: the next round requests it.
    if (counted !== null) this.#state = { token, names: [...view.available.keys()], counted };
    this.#memory.note(rememberedOf(view, came, token));
    return came;
  }

  /** Reads the input of a round in one round trip. Definitions are read after the entries that they are for. */
  async #readRound(): Promise<RoundInput> {
    const { events, registry, lease, replays, unmatched } = this.#deps.stores;
    const [before, came] = [this.#state, this.#came];
    this.#came = null;
    const names = before?.names ?? [];
    const entries = came?.piece.entries ?? [];
    const claimKeys = entries.flatMap((entry) => ('claimKeys' in entry ? entry.claimKeys : []));
    const [newest, token, receivers, underWay, guessed, place, subscriptions, continuing] = await Promise.all(
      [
        entries.at(-1)?.id ?? events.newest(),
        before !== null && before.token === lease.token ? before.token : this.#hold(),
        registry.receivers(),
        replaysUnderWay(replays),
        lease.readReceivers(names),
        before?.counted ?? unmatched.place(),
        registry.subscriptions(claimKeys),
        registry.continuing(claimKeys),
      ],
    );
    const nowMs = performance.now();
    const available = new Map<string, StoredReceiver>();
    const all = receivers.filter(({ removed }) => !removed);
    for (const receiver of all) {
      if ((this.#failed.get(receiver.name) ?? 0) <= nowMs) available.set(receiver.name, receiver);
    }
    const current = [...available.keys()];
    // Another process may have moved cursors until the lease was ours.
    const isSame = token !== null && token === before?.token;
    const standings =
      (isSame && names.join() === current.join()) || token === null
        ? guessed
        : await lease.readReceivers(current);
    const counted = isSame || token === null ? place : await unmatched.place();
    // Receivers that have reached the newest entry have nothing to read.
    const read = came ?? { after: newest, piece: { entries: [], more: false } };
    const ahead = { ...read, definitions: { subscriptions, continuing } };
    return { newest, token, round: { available, all, standings, replays: underWay, ahead, counted } };
  }

  /** Opens entries that are on their way, unless another step is under way. A round meets its error again. */
  #openExpected(entries: readonly ExpectedEntry[], deps: RelayContext): void {
    if (!this.#relaying.isOn) return;
    const step = { entries, token: this.#deps.stores.lease.token };
    const opening = this.#memory.openExpected(step, deps).then((reached) => this.#noteReached(reached));
    this.#expected = Promise.all([this.#expected, opening.catch(() => undefined)]);
  }

  #noteReached(reached: string | null): void {
    if (reached !== null && this.#state !== null) this.#state = { ...this.#state, counted: reached };
  }

  #noteHolding(holding: boolean): void {
    if (holding === this.#isHolding) return;
    this.#isHolding = holding;
    this.#deps.signals.emit('relay.moved', { holding });
  }

  #noteStopped(stopped: boolean): void {
    if (stopped === this.#isStopped) return;
    this.#isStopped = stopped;
    this.#deps.signals.emit('relay.stopped', { stopped });
  }

  #note(receiver: string, error: unknown): void {
    if (this.#relaying.isClosed) return;
    reportError(this.#deps, 'relay.error', { receiver, error });
    this.#failed.set(receiver, performance.now() + ERROR_RETRY_MS);
  }

  /** Leaves the lease to a newer version, which can read on. No cursor has moved past the entry that stopped us. */
  async #leaveToNewer({ entry }: NewerEntryError): Promise<void> {
    const { id, version, reason } = entry;
    this.#deps.log.error({ entry: id, found: version, expected: SCHEMA_VERSION, reason }, 'relay.stopped');
    this.#noteStopped(true);
    await this.#release();
  }

  /**
   * Waits where this process has the lease, and opens what comes as far as that needs no round. Returns the further wait until
   * the next round.
   */
  async #wait(newest: string, ms: number): Promise<number> {
    if (!this.#isHolding) return QUIET_MS;
    const { lease } = this.#deps.stores;
    const endMs = performance.now() + sharedWaitMs(ms);
    let mayBeOwn = true;
    for (let after = newest; !this.#relaying.isClosed; ) {
      const { isOwn, ...piece } = await this.#next.behind(after, { endMs, mayBeOwn });
      const { entries, more } = piece;
      if (entries.length === 0) return 0;
      await this.#expected;
      const reached = await this.#memory.open({ after, entries, token: lease.token, isOwn }, this.#deps);
      this.#noteReached(reached);
      if (isOwn && reached === null) {
        mayBeOwn = false;
        continue;
      }
      if (reached === null) this.#came = { after, piece };
      if (reached === null || more || performance.now() >= endMs) return 0;
      after = reached;
    }
    return 0;
  }

  async close(): Promise<void> {
    await Promise.all([this.#relaying.close(), this.#renewing.close()]);
    await this.#expected;
    await this.#release();
    this.#noteStopped(false);
  }
}

type ResumptionDeps = { stores: Pick<Stores, 'receivers' | 'deliveries' | 'backlog'>; log: Logger };

/** Deliveries that are opened or queued again in one step, so that neither Redis nor another receiver waits long. */
const RESUMPTION_BATCH = 500;

/**
 * Takes an `enabling` receiver one step further, under the relay's fencing token. Returns true when there is more to do.
 *
 * It opens the dead letters of the failing span again, then queues the deliveries that wait for another try. Only then are
 * attempts made and the cursor goes on. Turns are those of the opening: the oldest goes first. Each step can be repeated, so
 * that the next relay goes on after a crash.
 */
export async function resume(
  token: string,
  name: string,
  { stores: { receivers, deliveries, backlog }, log }: ResumptionDeps,
): Promise<boolean> {
  const { since } = await receivers.condition(name);
  const dead = since === null ? [] : await backlog.dead(name, { sinceMs: since, count: RESUMPTION_BATCH });
  if (dead.length > 0) return (await deliveries.renew(token, name, dead)) !== null;
  const came = await receivers.resume(token, name, RESUMPTION_BATCH);
  if (came === 'enabled') log.info({ receiver: name }, 'receiver.enabled');
  return came !== 'held';
}

/**
 * Input of a round: receivers by name (`all`: also just failed ones), their states, replays, entries behind most cursors, and
 * the entry up to which events without a receiver are `counted`.
 */
export type RoundView = {
  available: ReadonlyMap<string, StoredReceiver>;
  all: readonly StoredReceiver[];
  standings: readonly ReceiverProgress[];
  replays: ReadonlyMap<string, string>;
  ahead: Ahead | null;
  counted: string;
};

/**
 * Result of a round: more to do at once, an accepting receiver without slots, the entry all others reached (or null), and the
 * entry up to which events without a receiver are `counted`, null where another process may relay.
 */
export type Round = { more: boolean; full: boolean; reached: string | null; counted: string | null };

/** Returns what the relay can remember of a round; null where a receiver needs another round, or more than its entry. */
function rememberedOf(
  { available, all, standings, replays, ahead }: RoundView,
  { more, reached, counted }: Round,
  token: string,
): Remembered | null {
  const open = standings.filter((progress) => !isHeld(progress));
  const isQuiet = !more && replays.size === 0 && available.size === all.length;
  const isPlain = standings.every(({ state }) => state !== 'enabling') && open.every(hasCapacity);
  if (!isQuiet || !isPlain || reached === null || counted !== reached) return null;
  const receivers = open.flatMap(({ name }) => available.get(name) ?? []);
  return { token, at: reached, receivers, subscriptions: ahead?.definitions.subscriptions ?? new Map() };
}

const IDLE: Round = { more: false, full: false, reached: null, counted: null };

/**
 * Makes one round over all receivers: continues those that are being enabled, advances the others along the event log (reads
 * it, matches receivers with events, opens the deliveries), opens resends, and counts the events that no receiver gets.
 */
async function relayRound(view: RoundView, lease: HeldLease, deps: RelayContext): Promise<Round> {
  const open = view.standings.filter((progress) => !isHeld(progress));
  const enabling = view.standings.filter(({ state }) => state === 'enabling');
  let moved = false;
  for (const { name } of enabling) {
    if (!lease.isHeld()) return { ...IDLE, more: moved };
    moved = (await each(name, lease, () => resume(lease.token, name, deps))) || moved;
  }
  const [{ more, reached, stopped, isFenced }, replayed, counting] = await Promise.all([
    followLog({ ...view, standings: open }, lease, deps),
    replay({ ...view, standings: open }, lease, deps),
    countUnmatched({ receivers: view.all, ahead: view.ahead, from: view.counted }, lease, deps),
  ]);
  if (stopped !== null && !moved && !more && !replayed) throw stopped;
  const full = open.some((progress) => !hasCapacity(progress) && progress.state === 'ok');
  const counted = isFenced ? null : counting.reached;
  return { more: moved || more || counting.more || replayed, full, reached, counted };
}

/** Advances receivers along the log: those at the same place together, so that their entries are read once for all. */
async function followLog(
  { standings, available, ahead, counted }: RoundView,
  lease: HeldLease,
  deps: RelayContext,
): Promise<{ more: boolean; reached: string | null; stopped: NewerEntryError | null; isFenced: boolean }> {
  let more = false;
  let reached: string | null = null;
  let stopped: NewerEntryError | null = null;
  const places = [...Map.groupBy(standings.filter(hasCapacity), ({ cursor }) => cursor)];
  for (const some of chunks(places, PLACES_AT_ONCE)) {
    const results = await Promise.allSettled(
      some.map(([cursor, group]) => {
        const receivers = group.flatMap(({ name, open }) => {
          const receiver = available.get(name);
          return receiver === undefined ? [] : [{ receiver, open }];
        });
        const read = ahead?.after === cursor ? ahead : null;
        const isCounted = compareEntries(cursor, counted) < 0;
        return follow({ cursor, isCounted, receivers, ahead: read }, lease, deps);
      }),
    );
    // None of them is under way any more when one has failed.
    for (const result of results) {
      if (result.status === 'rejected') throw result.reason;
      const came = result.value;
      // The others advance as far as they can be read before the lease is released.
      if (came instanceof NewerEntryError) stopped = came;
      else if (came === 'fenced') return { more: false, reached: null, stopped: null, isFenced: true };
      else {
        more ||= came.more;
        if (reached === null || compareEntries(came.reached, reached) < 0) reached = came.reached;
      }
    }
  }
  return { more, reached, stopped, isFenced: false };
}

/** Advances the replays under way by a batch. Returns true when there is more to do at once. */
async function replay(
  { standings, available, replays }: RoundView,
  lease: HeldLease,
  deps: RelayContext,
): Promise<boolean> {
  let moved = false;
  for (const { name } of replays.size === 0 ? [] : standings) {
    const id = replays.get(name);
    const receiver = available.get(name);
    if (id === undefined || receiver === undefined) continue;
    if (!lease.isHeld()) return moved;
    moved = (await each(name, lease, () => takeReplay({ token: lease.token, receiver, id }, deps))) || moved;
  }
  return moved;
}

/** Works on one receiver. Its error holds up no other. */
async function each(name: string, { failed }: HeldLease, work: () => Promise<boolean>): Promise<boolean> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NewerEntryError) throw error;
    failed(name, error);
    return false;
  }
}
