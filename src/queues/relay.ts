import type { Logger } from 'pino';
import type { Signals } from '../signals.ts';
import type { RedisClient } from '../store/commands.ts';
import type { DeliveryStore } from '../store/deliveries.ts';
import type { EventLog } from '../store/event-log.ts';
import type { Keys } from '../store/keys.ts';
import type { ReceiverStore } from '../store/receivers.ts';
import type { Registry, StoredReceiver } from '../store/registry.ts';
import type { RelayLease } from '../store/relay-lease.ts';
import type { ReplayStore } from '../store/replays.ts';
import type { DeliveryQueues } from './delivery-queues.ts';
import { openDeliveries } from './open-deliveries.ts';
import { entitledTo } from './openings.ts';
import { replaysUnderWay, takeReplay } from './replays.ts';
import { Resumption } from './resumption.ts';

/** How many entries of the log a receiver is taken along at once. */
const BATCH = 200;

/** How long a quiet relay waits for the next entry; also how often a lease is renewed or asked for. */
const QUIET_MS = 1_000;
const ERROR_RETRY_MS = 1_000;

/** What the relay works with. `blocking` is a connection of its own, for it waits on it. */
export type RelayParts = {
  blocking: RedisClient;
  keys: Keys;
  lease: RelayLease;
  events: EventLog;
  registry: Registry;
  receivers: ReceiverStore;
  deliveries: DeliveryStore;
  replays: ReplayStore;
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
        this.#parts.log.error({ error }, 'relay.error');
        await new Promise((resolve) => setTimeout(resolve, ERROR_RETRY_MS));
      }
    }
  }

  /** One round over all receivers, if this process relays. Returns whether any of them moved. */
  async #round(): Promise<boolean> {
    const { lease, registry, signals } = this.#parts;
    const token = await lease.hold();
    if ((token !== null) !== this.#holding) {
      this.#holding = token !== null;
      signals.emit('relay.moved', { holding: this.#holding });
    }
    if (token === null) return false;
    const receivers = (await registry.receivers()).filter((receiver) => !receiver.removed);
    const replays = await replaysUnderWay(this.#parts.replays);
    const moved = await Promise.all(
      receivers.map((receiver) => this.#take(token, receiver, replays.get(receiver.name) ?? null)),
    );
    return moved.some((one) => one);
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
    const entries = await events.after(cursor, BATCH);
    const last = entries.at(-1);
    if (last === undefined) return false;
    const entitled = await entitledTo(receiver, entries, this.#parts);
    if (!(await openDeliveries({ token, receiver, entitled, replay: null }, this.#parts))) return false;
    return lease.advance(token, receiver.name, last.id);
  }

  /** Waits for a new entry; without the lease, for the time to ask for it again. */
  async #wait(newest: string): Promise<void> {
    const { blocking, keys } = this.#parts;
    if (!this.#holding) {
      await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
      return;
    }
    await blocking.xread('COUNT', 1, 'BLOCK', QUIET_MS, 'STREAMS', keys.events, newest);
  }

  /** Ends the round under way and gives the lease back. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#running;
    await this.#parts.lease.release();
  }
}
