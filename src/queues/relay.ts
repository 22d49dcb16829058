import type { Logger } from 'pino';
import { parseClaimRoot } from '../domain/claim.ts';
import { passesFilter } from '../domain/filter.ts';
import { wantsType } from '../domain/glob.ts';
import type { Signals } from '../signals.ts';
import type { RedisClient } from '../store/commands.ts';
import type { DeliveryStore } from '../store/deliveries.ts';
import type { EventLog, LogEntry } from '../store/event-log.ts';
import type { Keys } from '../store/keys.ts';
import type { Registry, StoredReceiver, StoredSubscription } from '../store/registry.ts';
import type { RelayLease } from '../store/relay-lease.ts';
import type { DeliveryQueues } from './delivery-queues.ts';

/** How many entries of the log a receiver is taken along at once. */
const BATCH = 200;

/** How long a quiet relay waits for the next entry; also how often a lease is renewed or asked for. */
const QUIET_MS = 1_000;
const ERROR_RETRY_MS = 1_000;

/** Receives the ids of one delivery and whom it is for. */
type Opening = { eventId: string; eventType: string; entry: string; roots: string[] };

/** What the relay works with. `blocking` is a connection of its own, for it waits on it. */
export type RelayParts = {
  blocking: RedisClient;
  keys: Keys;
  lease: RelayLease;
  events: EventLog;
  registry: Registry;
  deliveries: DeliveryStore;
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
  #running: Promise<void> | null = null;
  #closing = false;
  #holding = false;

  constructor(parts: RelayParts) {
    this.#parts = parts;
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
    const moved = await Promise.all(receivers.map((receiver) => this.#take(token, receiver)));
    return moved.some((one) => one);
  }

  /** Takes one receiver a batch further. Returns whether there was anything. */
  async #take(token: string, receiver: StoredReceiver): Promise<boolean> {
    const { lease, events, registry, deliveries, queues, signals } = this.#parts;
    const cursor = (await lease.cursor(receiver.name)) ?? '0-0';
    const entries = await events.after(cursor, BATCH);
    const last = entries.at(-1);
    if (last === undefined) return false;
    const roots = entries.flatMap((entry) => (entry.kind === 'operator' ? [] : entry.roots));
    const subscriptions = await registry.subscriptions(roots);
    const openings: Opening[] = [];
    for (const entry of entries) {
      const opening = await this.#opening(entry, receiver, subscriptions);
      if (opening !== null) openings.push(opening);
    }
    const results = await deliveries.open(token, receiver.name, openings);
    if (results.includes('fenced')) return false;
    const open = openings.filter((_, index) => results[index] !== 'done');
    await queues.add(
      receiver.name,
      open.map(({ eventId }) => ({ eventId, afterMs: 0 })),
    );
    for (const { eventId, eventType } of openings.filter((_, index) => results[index] === 'opened')) {
      signals.emit('delivery.opened', { receiver: receiver.name, eventId, eventType });
    }
    return lease.advance(token, receiver.name, last.id);
  }

  /** The delivery that an entry means for a receiver; null when it means none. */
  async #opening(
    entry: LogEntry,
    receiver: StoredReceiver,
    subscriptions: ReadonlyMap<string, StoredSubscription>,
  ): Promise<Opening | null> {
    const place = entry.kind === 'audience' ? entry.entry : entry.id;
    const event = entry.kind === 'audience' ? await this.#parts.events.at(entry.entry) : entry.event;
    // A late audience of an event that has left the log: there is nothing to deliver any more.
    if (event === null || !wantsType(receiver.events, event.type)) return null;
    const opening = { eventId: event.id, eventType: event.type, entry: place };
    if (entry.kind === 'operator') return { ...opening, roots: [] };
    const roots = entry.roots.filter((root) =>
      subscriptions.get(parseClaimRoot(root).subscription)?.receivers.includes(receiver.name),
    );
    const wanted = roots.length > 0 && passesFilter(receiver.filter, { record: event.data.record, roots });
    return wanted ? { ...opening, roots } : null;
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
