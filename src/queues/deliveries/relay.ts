import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Directory } from '../../domain/transfers/chains.ts';
import type { Signals } from '../../signals.ts';
import { type RedisClient, SCHEMA_VERSION } from '../../store/commands.ts';
import type { DeliveryStore } from '../../store/deliveries.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Keys } from '../../store/keys.ts';
import { compareEntries, type LogEntry } from '../../store/log-entry.ts';
import type { ReceiverStore } from '../../store/receivers.ts';
import type { Registry, StoredReceiver } from '../../store/registry.ts';
import type { RelayLease, Standing } from '../../store/relay-lease.ts';
import type { ReplayStore } from '../../store/replays.ts';
import type { SetAside } from '../../store/set-aside.ts';
import { type Ahead, BATCH, follow, hasRoom } from './follow.ts';
import { NewerEntryError } from './log-batch.ts';
import { replaysUnderWay, takeReplay } from './replays.ts';
import { Resumption } from './resumption.ts';
import type { Sender } from './sender.ts';

/** How long a quiet relay waits for the next entry; also how often a lease is renewed or asked for. */
const QUIET_MS = 1_000;
const ERROR_RETRY_MS = 1_000;

/** How soon it looks again at a receiver that takes what it gets and has as many open deliveries as may be. */
const FULL_MS = 20;

/** The lease is renewed amid a round as often as this, however long a step of it takes. */
const RENEW_MS = 1_000;

/** How long a relay that stands before what only a newer version can read leaves the lease to others. */
const STAND_ASIDE_MS = 30_000;

/** What the relay works with. `blocking` is a connection of its own, for it waits on it. */
export type RelayParts = {
  blocking: RedisClient;
  keys: Keys;
  lease: RelayLease;
  events: EventLog;
  registry: Registry;
  directory: Directory;
  receivers: ReceiverStore;
  deliveries: DeliveryStore;
  replays: ReplayStore;
  setAside: SetAside;
  sender: Sender;
  signals: Signals;
  log: Logger;
};

/**
 * What a round came to: whether there is more to do at once, whether a receiver that takes what it gets has no room, and
 * the entry up to which all others have been taken along (null: none were).
 */
type Round = { more: boolean; full: boolean; reached: string | null };

const IDLE: Round = { more: false, full: false, reached: null };

/** What a round goes by, asked for at once: Redis is far away when there is much to do. */
type View = {
  newest: string;
  token: string | null;
  known: Map<string, StoredReceiver>;
  standings: readonly Standing[];
  replays: Map<string, string>;
  ahead: Ahead | null;
};

/**
 * Moves the cursor of every receiver along the event log and opens the deliveries that follow from it. One process
 * relays at a time. Deliveries are opened and the cursor is moved in one step, under the fencing token: a relay that dies
 * in between leaves a successor that finds them and adds nothing.
 */
export class Relay {
  readonly #parts: RelayParts;
  readonly #resumption: Resumption;
  #running: Promise<void> | null = null;
  #closing = false;
  #holding = false;
  /** The fencing token of the lease, null while another process has it; and its renewal that is under way. */
  #token: string | null = null;
  #renewing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  readonly #closed = new AbortController();
  /** Receivers that the last round failed with -> when they are taken on again (own clock, ms). */
  readonly #failed = new Map<string, number>();
  /** The receivers of the last round. */
  #names: readonly string[] = [];
  /** What ended the wait before this round. */
  #came: Pick<Ahead, 'after' | 'entries'> | null = null;

  constructor(parts: RelayParts) {
    this.#parts = parts;
    this.#resumption = new Resumption(parts);
  }

  start(): void {
    this.#running = this.#run();
  }

  isRunning(): boolean {
    return this.#running !== null && !this.#closing;
  }

  async #run(): Promise<void> {
    while (!this.#closing) {
      try {
        const view = await this.#look();
        const { more, full, reached } = await this.#round(view);
        if (more || this.#closing) continue;
        // From where all have been taken along to, not from the newest entry: more may have come amid the round.
        await this.#wait(reached ?? view.newest, full ? FULL_MS : QUIET_MS);
      } catch (error) {
        if (this.#closing) return;
        if (error instanceof NewerEntryError) {
          await this.#standAside(error);
          continue;
        }
        this.#parts.log.error({ error }, 'relay.error');
        await this.#rest(ERROR_RETRY_MS);
      }
    }
  }

  /** Takes or renews the lease, and from then on keeps it, whatever the round does. */
  async #take(): Promise<string | null> {
    await this.#renewing;
    await this.#renew();
    clearInterval(this.#timer);
    if (this.#token !== null) this.#timer = setInterval(() => this.#renewLater(), RENEW_MS);
    return this.#token;
  }

  async #renew(): Promise<void> {
    this.#token = await this.#parts.lease.hold();
    this.#hold(this.#token !== null);
  }

  #renewLater(): void {
    this.#renewing = this.#renewing
      .then(async () => {
        if (this.#token !== null && !this.#closing) await this.#renew();
      })
      .catch(() => undefined);
  }

  async #release(): Promise<void> {
    clearInterval(this.#timer);
    this.#token = null;
    await this.#renewing;
    await this.#parts.lease.release();
    this.#hold(false);
  }

  /** Whether a round goes on: the lease under which it began still holds. */
  #keep(token: string): boolean {
    return !this.#closing && this.#token === token;
  }

  async #look(): Promise<View> {
    const { events, registry, lease, replays } = this.#parts;
    const [names, before, came] = [this.#names, this.#token, this.#came];
    this.#came = null;
    const [newest, token, receivers, underWay, guessed, subscriptions] = await Promise.all([
      events.newest(),
      this.#take(),
      registry.receivers(),
      replaysUnderWay(replays),
      lease.standing(names),
      registry.subscriptions((came?.entries ?? []).flatMap(rootsOf)),
    ]);
    const nowMs = performance.now();
    const known = new Map<string, StoredReceiver>();
    for (const receiver of receivers) {
      if (!receiver.removed && (this.#failed.get(receiver.name) ?? 0) <= nowMs)
        known.set(receiver.name, receiver);
    }
    this.#names = [...known.keys()];
    // Another process may have moved cursors until the lease was ours.
    const isSame = token === before && names.join() === this.#names.join();
    const standings = isSame || token === null ? guessed : await lease.standing(this.#names);
    const ahead = came === null ? null : { ...came, subscriptions };
    return { newest, token, known, standings, replays: underWay, ahead };
  }

  /** One round over all receivers. */
  async #round(view: View): Promise<Round> {
    const { token, known, standings, replays } = view;
    if (token === null) return IDLE;
    const open = standings.filter(({ state }) => state !== 'disabled' && state !== 'enabling');
    const enabling = standings.filter(({ state }) => state === 'enabling');
    let moved = false;
    for (const { name } of enabling) {
      if (!this.#keep(token)) return { ...IDLE, more: moved };
      moved = (await this.#each(name, () => this.#resumption.step(token, name))) || moved;
    }
    const { more, reached, stopped } = await this.#follow(token, { ...view, standings: open });
    const replayed = await this.#replay(token, { standings: open, known, replays });
    if (stopped !== null && !moved && !more && !replayed) throw stopped;
    const full = open.some((standing) => !hasRoom(standing) && standing.state === 'ok');
    return { more: moved || more || replayed, full, reached };
  }

  /** Takes receivers along the log: those at the same place together, so that what they are owed is read once for all. */
  async #follow(
    token: string,
    { standings, known, ahead }: Pick<View, 'standings' | 'known' | 'ahead'>,
  ): Promise<{ more: boolean; reached: string | null; stopped: NewerEntryError | null }> {
    let more = false;
    let reached: string | null = null;
    let stopped: NewerEntryError | null = null;
    for (const [cursor, group] of Map.groupBy(standings.filter(hasRoom), ({ cursor }) => cursor)) {
      const receivers = group.flatMap(({ name, open }) => {
        const receiver = known.get(name);
        return receiver === undefined ? [] : [{ receiver, open }];
      });
      const came = await follow(
        { token, cursor, receivers, ahead: ahead?.after === cursor ? ahead : null },
        { ...this.#parts, keep: () => this.#keep(token), failed: (name, error) => this.#note(name, error) },
      );
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

  async #replay(
    token: string,
    { standings, known, replays }: Pick<View, 'standings' | 'known' | 'replays'>,
  ): Promise<boolean> {
    let moved = false;
    for (const { name } of replays.size === 0 ? [] : standings) {
      const id = replays.get(name);
      const receiver = known.get(name);
      if (id === undefined || receiver === undefined) continue;
      if (!this.#keep(token)) return moved;
      moved = (await this.#each(name, () => takeReplay({ token, receiver, id }, this.#parts))) || moved;
    }
    return moved;
  }

  /** Works on one receiver, whose error holds up no other. */
  async #each(name: string, work: () => Promise<boolean>): Promise<boolean> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof NewerEntryError) throw error;
      this.#note(name, error);
      return false;
    }
  }

  #hold(holding: boolean): void {
    if (holding === this.#holding) return;
    this.#holding = holding;
    this.#parts.signals.emit('relay.moved', { holding });
  }

  #note(receiver: string, error: unknown): void {
    if (this.#closing) return;
    this.#parts.log.error({ receiver, error }, 'relay.error');
    this.#failed.set(receiver, performance.now() + ERROR_RETRY_MS);
  }

  /** Leaves the lease to a newer version, which can read on. No cursor has moved past what stopped us. */
  async #standAside({ entry }: NewerEntryError): Promise<void> {
    const { signals, log } = this.#parts;
    const { id, version, reason } = entry;
    log.error({ entry: id, found: version, expected: SCHEMA_VERSION, reason }, 'relay.stopped');
    signals.emit('relay.stopped', { stopped: true });
    await this.#release();
    await this.#rest(STAND_ASIDE_MS);
    signals.emit('relay.stopped', { stopped: false });
  }

  async #rest(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#closed.signal }).catch(() => undefined);
  }

  /** Waits for a new entry; without the lease, for the time to ask for it again. */
  async #wait(newest: string, ms: number): Promise<void> {
    const { blocking, events } = this.#parts;
    if (!this.#holding) {
      await this.#rest(QUIET_MS);
      return;
    }
    const entries = await events.awaitAfter(newest, { blocking, count: BATCH, waitMs: ms });
    if (entries.length > 0) this.#came = { after: newest, entries };
  }

  /** Ends the round under way and gives the lease back. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#closed.abort();
    await this.#running;
    await this.#release();
  }
}

function rootsOf(entry: LogEntry): readonly string[] {
  return 'roots' in entry ? entry.roots : [];
}
