import type { Logger } from 'pino';
import { Duty } from '../../duty.ts';
import type { ClaimOrder, Claims, DeliveryStore } from '../../store/deliveries.ts';
import type { Registry } from '../../store/registry.ts';
import type { SenderStore, WakeLog } from '../../store/senders.ts';

/**
 * A sending process notes that it runs every BEAT_MS, and counts as running for LEASE_MS after its last beat. A stall of Redis
 * or of the process of 8 s is no crash; after a crash, another process claims its deliveries within 10 s.
 */
const BEAT_MS = 300;
const LEASE_MS = 9_300;

/** Nothing is begun when the last beat is older than this: another process may have our claims by then. */
const SURE_MS = LEASE_MS - 700;

/** Attempts under way at once in this process. Each receiver may always have one. */
const MOST_AT_ONCE = 500;

const WAIT_MS = 1_000;
const ERROR_RETRY_MS = 1_000;

/** Dependencies of a sender. `id` names the process. */
export type SenderDeps = {
  id: string;
  senders: SenderStore;
  wakes: WakeLog;
  registry: Registry;
  deliveries: DeliveryStore;
  log: Logger;
};

/**
 * The deliveries of one receiver in this process. A script that opens deliveries may claim them in the same step: `order` returns
 * the order to claim by, null where it wants none now. It makes no claim of its own until `offer` brings the result; null where
 * there is none.
 */
export type DeliveryListener = {
  wake(): void;
  order(): ClaimOrder | null;
  offer(claims: Claims | null): void;
};

/** Shares this process's heartbeat, its limit of attempts under way, and the wake-ups of receivers with something to do. */
export class Sender {
  readonly #deps: SenderDeps;
  readonly #listeners = new Map<string, DeliveryListener>();
  readonly #beating: Duty;
  readonly #listening: Duty;
  /** Last wake-up that was read; null where those before the next are unknown. */
  #lastWake: string | null = null;
  #beatAt = Number.NEGATIVE_INFINITY;
  #underWay = 0;

  constructor(deps: SenderDeps) {
    this.#deps = deps;
    const onError = (error: unknown): void => deps.log.debug({ error }, 'sender.error');
    this.#beating = new Duty({ everyMs: BEAT_MS, run: () => this.beat(), onError });
    this.#listening = new Duty({
      everyMs: 0,
      run: () => this.#listen(),
      onError: (error) => {
        onError(error);
        this.#lastWake = null;
        return { waitMs: ERROR_RETRY_MS };
      },
    });
  }

  get id(): string {
    return this.#deps.id;
  }

  listen(receiver: string, listener: DeliveryListener): void {
    this.#listeners.set(receiver, listener);
  }

  listener(receiver: string): DeliveryListener | null {
    return this.#listeners.get(receiver) ?? null;
  }

  wake(receiver: string): void {
    this.#listeners.get(receiver)?.wake();
  }

  async start(): Promise<void> {
    await this.beat();
    this.#beating.start();
    this.#listening.start();
  }

  isSure(): boolean {
    return performance.now() - this.#beatAt < SURE_MS;
  }

  capacity(wanted: number, underWay: number): number {
    return Math.min(wanted, Math.max(MOST_AT_ONCE - this.#underWay, underWay === 0 ? 1 : 0));
  }

  /** True when the most attempts are under way: a delivery claimed ahead would only wait here. */
  get isFull(): boolean {
    return this.#underWay >= MOST_AT_ONCE;
  }

  count(change: number): void {
    this.#underWay += change;
  }

  /** Notes once that this process runs, and takes over the claims of processes that stopped. */
  async beat(): Promise<void> {
    const { id, senders } = this.#deps;
    const startedAt = performance.now();
    const { nowMs, gone } = await senders.heartbeat(id, LEASE_MS);
    this.#beatAt = startedAt;
    if (gone.length > 0) await this.#takeOver(gone, nowMs);
  }

  /**
   * Queues the deliveries of processes that stopped beating, and wakes every receiver, as only those processes knew some due
   * times. After a crash amid it the next process does the rest.
   */
  async #takeOver(gone: readonly string[], nowMs: number): Promise<void> {
    const { id, registry, deliveries, senders, log } = this.#deps;
    const receivers = await registry.receivers();
    const counts = await Promise.all(receivers.map(({ name }) => deliveries.takeOver(name, id)));
    for (const listener of this.#listeners.values()) listener.wake();
    await senders.remove(nowMs);
    const claimed = counts.reduce((sum, count) => sum + count, 0);
    if (claimed > 0) log.warn({ processes: gone, deliveries: claimed }, 'deliveries.taken_over');
  }

  async #listen(): Promise<void> {
    const { wakes } = this.#deps;
    if (this.#lastWake === null) {
      this.#lastWake = await wakes.newest();
      // Earlier notices are unknown: every listener is woken.
      for (const listener of this.#listeners.values()) listener.wake();
    }
    const found = await wakes.after(this.#lastWake, { process: this.id, waitMs: WAIT_MS });
    this.#lastWake = found.last;
    for (const receiver of found.receivers) this.wake(receiver);
  }

  /** Ends the wait for receivers that have something to do; nothing new is begun. Resolves when its connection is free. */
  async stopListening(): Promise<void> {
    await this.#listening.close();
  }

  /** Ends the heartbeat: other processes take over what this one still holds. The owner closes its connection. */
  async close(): Promise<void> {
    void this.#listening.close();
    await this.#beating.close();
    await this.#deps.senders.end(this.id);
  }
}
