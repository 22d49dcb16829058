import type { Logger } from 'pino';
import { Duty, sharedWaitMs } from '../../duty.ts';
import type { ClaimOrder, Claims } from '../../store/deliveries.ts';
import type { WakeLog } from '../../store/senders.ts';
import type { Heartbeat } from '../heartbeat.ts';

/** Attempts under way at once in this process. Each receiver may always have one. */
const MOST_AT_ONCE = 500;

const WAIT_MS = 1_000;
const ERROR_RETRY_MS = 1_000;

/** Dependencies of a sender. */
export type SenderDeps = { heartbeat: Heartbeat; wakes: WakeLog; log: Logger };

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

/** Shares this process's limit of attempts under way, and the wake-ups of receivers with something to do. */
export class Sender {
  readonly #deps: SenderDeps;
  readonly #listeners = new Map<string, DeliveryListener>();
  readonly #listening: Duty;
  /** Last wake-up that was read; null where those before the next are unknown. */
  #lastWake: string | null = null;
  #underWay = 0;

  constructor(deps: SenderDeps) {
    this.#deps = deps;
    deps.heartbeat.onTakeOver(() => this.#wakeAll());
    this.#listening = new Duty({
      everyMs: 0,
      run: () => this.#listen(),
      onError: (error) => {
        deps.log.debug({ error }, 'sender.error');
        this.#lastWake = null;
        return { waitMs: ERROR_RETRY_MS };
      },
    });
  }

  get id(): string {
    return this.#deps.heartbeat.id;
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

  #wakeAll(): void {
    for (const listener of this.#listeners.values()) listener.wake();
  }

  start(): void {
    this.#listening.start();
  }

  /** As in Heartbeat. A claim belongs to the life of its request: it is read before that. */
  get life(): number {
    return this.#deps.heartbeat.life;
  }

  /** As in Heartbeat. */
  isSure(life: number): boolean {
    return this.#deps.heartbeat.isSure(life);
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

  async #listen(): Promise<void> {
    const { wakes } = this.#deps;
    if (this.#lastWake === null) {
      this.#lastWake = await wakes.newest();
      // Earlier notices are unknown: every listener is woken.
      this.#wakeAll();
    }
    const found = await wakes.after(this.#lastWake, {
      process: this.id,
      waitMs: Math.ceil(sharedWaitMs(WAIT_MS)),
    });
    this.#lastWake = found.last;
    for (const receiver of found.receivers) this.wake(receiver);
  }

  /** Ends the wait for receivers that have something to do; nothing new is begun. Resolves when its connection is free. */
  async stopListening(): Promise<void> {
    await this.#listening.close();
  }
}
