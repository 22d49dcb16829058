import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Directory } from '../domain/chains.ts';
import type { Signals } from '../signals.ts';
import type { RedisClient } from '../store/commands.ts';
import type { DeliveryStore } from '../store/deliveries.ts';
import type { EventLog } from '../store/event-log.ts';
import type { Keys } from '../store/keys.ts';
import type { ReceiverStore } from '../store/receivers.ts';
import type { Registry, StoredReceiver } from '../store/registry.ts';
import type { RelayLease } from '../store/relay-lease.ts';
import type { ReplayStore } from '../store/replays.ts';
import { SCHEMA_VERSION } from '../store/schema-version.ts';
import type { SetAside } from '../store/set-aside.ts';
import type { DeliveryQueues } from './delivery-queues.ts';
import { type LogBatch, NewerEntryError, readBatch } from './log-batch.ts';
import { openDeliveries } from './open-deliveries.ts';
import { entitledTo } from './openings.ts';
import { replaysUnderWay, takeReplay } from './replays.ts';
import { Resumption } from './resumption.ts';

/** How many entries of the log a receiver is taken along at once. */
const BATCH = 200;

/** How long a quiet relay waits for the next entry; also how often a lease is renewed or asked for. */
const QUIET_MS = 1_000;
const ERROR_RETRY_MS = 1_000;

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
  queues: DeliveryQueues;
  signals: Signals;
  log: Logger;
};

/**
 * Moves the cursor of every receiver along the event log and opens the deliveries that follow from it. One process
 * relays at a time. A delivery's fact and job are written before the cursor moves: a relay that dies in between leaves
 * a successor that finds fact and job and adds nothing.
 */
export class Relay {
  readonly #parts: RelayParts;
  readonly #resumption: Resumption;
  #running: Promise<void> | null = null;
  #closing = false;
  #holding = false;
  readonly #closed = new AbortController();
  /** Receivers that the last round failed with -> when they are taken on again (own clock, ms). */
  readonly #failed = new Map<string, number>();

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
        // Read before the round: an entry that comes while it runs ends the wait at once.
        const newest = await this.#parts.events.newest();
        const moved = await this.#round();
        if (!moved && !this.#closing) await this.#wait(newest);
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

  /** One round over all receivers, if this process relays. Returns whether any of them moved. */
  async #round(): Promise<boolean> {
    const { lease, registry } = this.#parts;
    const token = await lease.hold();
    this.#hold(token !== null);
    if (token === null) return false;
    const nowMs = performance.now();
    const receivers = (await registry.receivers()).filter(
      ({ name, removed }) => !removed && (this.#failed.get(name) ?? 0) <= nowMs,
    );
    const replays = await replaysUnderWay(this.#parts.replays);
    const results = await Promise.allSettled(
      receivers.map((receiver) => this.#take(token, receiver, replays.get(receiver.name) ?? null)),
    );
    let stopped: NewerEntryError | null = null;
    for (const [index, result] of results.entries()) {
      if (result.status === 'fulfilled') continue;
      const error: unknown = result.reason;
      if (error instanceof NewerEntryError) stopped = error;
      else this.#note(receivers[index]?.name ?? '', error);
    }
    const moved = results.some((result) => result.status === 'fulfilled' && result.value);
    // The others are taken along as far as they can be read before the lease goes.
    if (stopped !== null && !moved) throw stopped;
    return moved;
  }

  #hold(holding: boolean): void {
    if (holding === this.#holding) return;
    this.#holding = holding;
    this.#parts.signals.emit('relay.moved', { holding });
  }

  /** One receiver's error holds up no other. */
  #note(receiver: string, error: unknown): void {
    if (this.#closing) return;
    this.#parts.log.error({ receiver, error }, 'relay.error');
    this.#failed.set(receiver, performance.now() + ERROR_RETRY_MS);
  }

  /** Leaves the lease to a newer version, which can read on. No cursor has moved past what stopped us. */
  async #standAside({ entry }: NewerEntryError): Promise<void> {
    const { lease, signals, log } = this.#parts;
    const { id, version, reason } = entry;
    log.error({ entry: id, found: version, expected: SCHEMA_VERSION, reason }, 'relay.stopped');
    signals.emit('relay.stopped', { stopped: true });
    await lease.release();
    this.#hold(false);
    await this.#rest(STAND_ASIDE_MS);
    signals.emit('relay.stopped', { stopped: false });
  }

  async #rest(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#closed.signal }).catch(() => undefined);
  }

  /** Takes one receiver a batch further, and the replay for it if there is one. Returns whether there was anything. */
  async #take(token: string, receiver: StoredReceiver, replay: string | null): Promise<boolean> {
    const standing = await this.#resumption.step(token, receiver.name);
    if (standing !== 'open') return standing === 'busy';
    const moved = await this.#follow(token, receiver);
    const replayed = replay !== null && (await takeReplay({ token, receiver, id: replay }, this.#parts));
    return moved || replayed;
  }

  async #follow(token: string, receiver: StoredReceiver): Promise<boolean> {
    const { lease, events } = this.#parts;
    const cursor = (await lease.cursor(receiver.name)) ?? '0-0';
    const batch = await readBatch(await events.after(cursor, BATCH), events);
    if (batch.last === null) {
      if (batch.stoppedBy !== null) throw new NewerEntryError(batch.stoppedBy);
      return false;
    }
    await this.#setAside(batch);
    const entitled = await entitledTo(receiver, batch.facts, this.#parts);
    if (!(await openDeliveries({ token, receiver, entitled, replay: null }, this.#parts))) return false;
    return lease.advance(token, receiver.name, batch.last);
  }

  /** Keeps what nobody can read, each once for all receivers, before the cursor goes past it. */
  async #setAside({ unreadable }: LogBatch): Promise<void> {
    const { setAside, signals, log } = this.#parts;
    for (const entry of unreadable) {
      if (!(await setAside.add(entry))) continue;
      signals.emit('relay.set-aside', { entry: entry.id });
      log.error({ entry: entry.id, reason: entry.reason }, 'relay.set_aside');
    }
  }

  /** Waits for a new entry; without the lease, for the time to ask for it again. */
  async #wait(newest: string): Promise<void> {
    const { blocking, keys } = this.#parts;
    if (!this.#holding) {
      await this.#rest(QUIET_MS);
      return;
    }
    await blocking.xread('COUNT', 1, 'BLOCK', QUIET_MS, 'STREAMS', keys.events, newest);
  }

  /** Ends the round under way and gives the lease back. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#closed.abort();
    await this.#running;
    await this.#parts.lease.release();
  }
}
