import type { Receiver } from '../../config/config.ts';
import type { Notifier } from '../../notifiers/notifier.ts';
import type { ClaimOrder, Claims } from '../../store/deliveries.ts';
import { type PendingDelivery, pendingDelivery } from './attempts.ts';
import { type ClaimTime, GroupSize, type MessageDeliveries, PrefetchBuffer, splitGroup } from './prefetch.ts';
import { type DeliveryContext, type DeliveryRunner, type Places, runDelivery } from './run-delivery.ts';

/** Wait after an error of our own (Redis away, a bug). */
const ERROR_RETRY_MS = 2_000;

const LONGEST_WAIT_MS = 30_000;

const PREFETCHED_CHECK_MS = 1_000;

/** Delivers a receiver's events at its pace. Holds each until its end is noted, so that no running process sends one twice. */
export class DeliveryWorker {
  readonly #receiver: Receiver;
  readonly #deps: DeliveryContext;
  readonly #runner: DeliveryRunner;
  /** Deliveries that are being sent, or were sent and are not noted yet: id -> its end. */
  readonly #held = new Map<string, Promise<void>>();
  /** Those of them that have a place among the deliveries sent at once, until their end is on its way to Redis. */
  readonly #placed = new Set<string>();
  readonly #dueAgain = new Set<string>();
  readonly #prefetched: PrefetchBuffer;
  readonly #groupSize: GroupSize;
  readonly #cut = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | null = null;
  #isWokenAgain = false;
  /** Ends a claim that another script makes. */
  #ordered: ((claims: Claims | null) => void) | null = null;
  #state: 'new' | 'running' | 'closing' = 'new';

  constructor(receiver: Receiver, notifier: Notifier, deps: DeliveryContext) {
    this.#receiver = receiver;
    this.#deps = deps;
    this.#runner = { receiver, notifier, deps, places: this.#noted(), cut: this.#cut.signal };
    // Under a rate limit each delivery has its time, and a batch has rules of its own.
    const goesAhead = receiver.type === 'webhook' && receiver.rateLimit === null && receiver.concurrency > 1;
    this.#prefetched = new PrefetchBuffer(goesAhead ? receiver.concurrency : 0);
    this.#groupSize = new GroupSize({
      canGrow: notifier.deliverTogether !== undefined && receiver.rateLimit === null,
    });
  }

  start(): void {
    this.#state = 'running';
    this.#deps.sender.listen(this.#receiver.name, this);
    this.wake();
  }

  isRunning(): boolean {
    return this.#state === 'running';
  }

  wake(): void {
    if (this.#state !== 'running') return;
    if (this.#looking !== null) {
      this.#isWokenAgain = true;
      return;
    }
    clearTimeout(this.#timer);
    this.#during(this.#check());
  }

  order(): ClaimOrder | null {
    if (this.#state !== 'running' || this.#looking !== null) return null;
    const order = this.#order();
    if (order === null) return null;
    const { promise, resolve } = Promise.withResolvers<Claims | null>();
    this.#ordered = resolve;
    this.#during(
      promise.then((claims) => (claims === null ? this.#checkIn(ERROR_RETRY_MS) : this.#takeClaims(claims))),
    );
    return order;
  }

  offer(claims: Claims | null): void {
    this.#ordered?.(claims);
    this.#ordered = null;
  }

  #during(claiming: Promise<void>): void {
    this.#looking = claiming
      .catch((error: unknown) => {
        // A delivery claimed meanwhile is not held: the next claim queues it.
        if (this.#state === 'running')
          this.#deps.log.error({ receiver: this.#receiver.name, error }, 'delivery.error');
        this.#checkIn(ERROR_RETRY_MS);
      })
      .finally(() => {
        this.#looking = null;
        if (this.#isWokenAgain) {
          this.#isWokenAgain = false;
          this.wake();
        }
      });
  }

  async idle(): Promise<void> {
    while (this.#looking !== null || this.#held.size > 0) {
      await this.#looking;
      await Promise.all(this.#held.values());
    }
  }

  /** Stops claiming and waits for attempts under way; `abort` cuts them off and releases them. */
  async close(abort: AbortSignal): Promise<void> {
    this.#state = 'closing';
    clearTimeout(this.#timer);
    const cut = (): void => this.#cut.abort(new DOMException('shutdown', 'AbortError'));
    abort.addEventListener('abort', cut);
    if (abort.aborted) cut();
    await this.#looking;
    await this.#return(this.#prefetched.clear());
    await Promise.all(this.#held.values());
    abort.removeEventListener('abort', cut);
    await this.#runner.notifier.close();
  }

  async #check(): Promise<void> {
    const { sender, deliveries } = this.#deps;
    const stale = this.#prefetched.removeStale();
    if (stale.length > 0) await this.#return(stale);
    const order = this.#order();
    // The end of an attempt under way wakes it.
    if (order === null) return this.#checkIn(this.#placed.size > 0 ? LONGEST_WAIT_MS : ERROR_RETRY_MS);
    await this.#takeClaims(await deliveries.claim(this.#receiver.name, { process: sender.id, order }));
  }

  #order(): ClaimOrder | null {
    const most = this.#wanted();
    if (most === 0) return null;
    const { rateLimit } = this.#receiver;
    return {
      most,
      intervalMs: rateLimit === null ? null : Math.ceil(1_000 / rateLimit),
      isTogether: this.#groupSize.canGrow,
      held: [...this.#held.keys(), ...this.#prefetched.ids],
    };
  }

  async #takeClaims(claims: Claims): Promise<void> {
    const clock = { redisMs: claims.nowMs, ownMs: performance.now() };
    const texts = await this.#deps.registry.readSubscriptions(claims.subscriptions);
    const pending: PendingDelivery[] = [];
    for (const claimed of claims.claimed) {
      if (this.#prefetched.has(claimed.id)) continue;
      if (this.#held.has(claimed.id)) {
        // It is due again before this process was notified that its last attempt is noted.
        this.#dueAgain.add(claimed.id);
        continue;
      }
      pending.push(pendingDelivery(claimed, texts, this.#deps));
    }
    const isCutShort = pending.length < claims.claimed.length;
    await this.#takeIn(pending, { clock, isCutShort });
    if (claims.waitMs !== null) this.#checkIn(claims.waitMs);
    else this.#checkIn(LONGEST_WAIT_MS);
  }

  #wanted(): number {
    const places = this.#places();
    if (this.#groupSize.canGrow) return places === 0 ? 0 : this.#groupSize.wanted;
    return places + (this.#deps.sender.isFull ? 0 : this.#prefetched.capacity);
  }

  async #takeIn(
    claimed: readonly PendingDelivery[],
    { clock, isCutShort }: { clock: ClaimTime; isCutShort: boolean },
  ): Promise<void> {
    if (!this.#groupSize.canGrow) {
      for (const delivery of claimed) this.#prefetched.add({ deliveries: [delivery], clock });
      this.#begin();
      if (!this.#prefetched.isOpen) await this.#return(this.#prefetched.clear());
      return;
    }
    // A missing one among them may be the one that another waits for.
    const { first, rest } = isCutShort ? { first: null, rest: claimed } : splitGroup(claimed);
    if (first !== null) this.#prefetched.add({ deliveries: first, clock });
    this.#begin();
    await this.#return([...this.#prefetched.clear(), ...rest.map(({ id }) => id)]);
    if (first !== null && this.#places() > 0) this.#isWokenAgain = true;
  }

  #begin(): void {
    while (this.#state === 'running' && this.#places() > 0) {
      const claimed = this.#prefetched.next();
      if (claimed === null) return;
      const { deliveries, clock } = claimed;
      this.#place(deliveries[0].id);
      const end = this.#take(deliveries, clock).finally(() => {
        for (const { id } of deliveries) this.#held.delete(id);
        for (const { id } of deliveries) {
          this.#giveWay(id);
          // No longer held, it is queued and claimed again.
          if (this.#dueAgain.delete(id)) this.wake();
        }
      });
      for (const { id } of deliveries) this.#held.set(id, end);
    }
  }

  #places(): number {
    const placed = this.#placed.size;
    return Math.max(0, this.#deps.sender.capacity(this.#receiver.concurrency - placed, placed));
  }

  /** Releases deliveries that are not sent now. If the release fails, the next claim queues them: they are not held. */
  async #return(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const { deliveries, sender, log } = this.#deps;
    const { name } = this.#receiver;
    await deliveries
      .release(name, { process: sender.id, ids, afterMs: null })
      .catch((error: unknown) => log.error({ receiver: name, error }, 'delivery.error'));
  }

  #place(id: string): void {
    if (this.#placed.has(id)) return;
    this.#placed.add(id);
    this.#deps.sender.count(1);
  }

  #giveWay(id: string): void {
    if (!this.#placed.delete(id)) return;
    this.#deps.sender.count(-1);
    this.#begin();
    this.wake();
  }

  #noted(): Places {
    return {
      attempted: (attempt) => {
        this.#groupSize.noteAttempt(attempt);
        return this.#return(this.#prefetched.noteAttempt(attempt));
      },
      release: (ids) => this.#return(ids),
      leave: (id) => this.#giveWay(id),
      retain: (ids) => {
        for (const id of ids) if (this.#held.has(id)) this.#place(id);
      },
      noted: ({ isDelivered }) => {
        // A Redis that does not know the script yet notes it after the claim that was requested, which then does not see it.
        if (!isDelivered || this.#placed.size === 0) this.wake();
      },
    };
  }

  #checkIn(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#state !== 'running') return;
    const mostMs = this.#prefetched.ids.length > 0 ? PREFETCHED_CHECK_MS : LONGEST_WAIT_MS;
    this.#timer = setTimeout(() => this.wake(), Math.min(ms, mostMs));
    this.#timer.unref();
  }

  async #take(claimed: MessageDeliveries, clock: ClaimTime): Promise<void> {
    const ids = claimed.map(({ id }) => id);
    try {
      const afterMs = await runDelivery(claimed, clock, this.#runner);
      if (afterMs !== null) await this.#release(ids, afterMs);
    } catch (error) {
      const isCut = this.#cut.signal.aborted;
      if (!isCut) this.#deps.log.error({ delivery: claimed[0].id, error }, 'delivery.error');
      await this.#release(ids, isCut ? null : ERROR_RETRY_MS).catch(() => undefined);
    }
  }

  async #release(ids: readonly string[], afterMs: number | null): Promise<void> {
    const { deliveries, sender } = this.#deps;
    await deliveries.release(this.#receiver.name, { process: sender.id, ids, afterMs });
  }
}
