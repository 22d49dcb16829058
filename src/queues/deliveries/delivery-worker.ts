import { setTimeout as sleep } from 'node:timers/promises';
import type { Receiver } from '../../config/config.ts';
import type { Notifier } from '../../notifiers/notifier.ts';
import { reportError } from '../../signals.ts';
import type { ClaimOrder, Claims, Recorded } from '../../store/deliveries.ts';
import { type MessageEnd, type PendingDelivery, readClaimed, reportRecorded } from './attempts.ts';
import { type ClaimTime, GroupSize, type MessageDeliveries, PrefetchBuffer, splitGroup } from './prefetch.ts';
import { type DeliveryContext, type DeliveryRunner, runDelivery, type SentMessage } from './run-delivery.ts';

/** Wait after an error of our own (Redis away, a bug). */
const ERROR_RETRY_MS = 2_000;

const LONGEST_WAIT_MS = 30_000;

const PREFETCHED_CHECK_MS = 1_000;

/** Deliveries of ended attempts that one script records, since it blocks Redis. */
const MOST_RECORDED = 500;

/** An ended attempt that is to be recorded. `ids` are its deliveries that this process holds, `settle` is called afterwards. */
type UnrecordedEnd = { end: MessageEnd; settle: () => void };

/**
 * Delivers a receiver's events at its pace. Holds each until its end is recorded, so that no running process sends one twice.
 *
 * One call to Redis is under way at a time. It records all attempts that have ended by then, and claims the next deliveries.
 * Another script may claim in place of this one (`order` and `offer`).
 */
export class DeliveryWorker {
  readonly #receiver: Receiver;
  readonly #deps: DeliveryContext;
  readonly #runner: DeliveryRunner;
  /** Deliveries that are being sent, or were sent and are not recorded yet. */
  readonly #held = new Set<string>();
  /** Those of them that have a place among the deliveries sent at once, until their attempt ends. */
  readonly #placed = new Set<string>();
  readonly #dueAgain = new Set<string>();
  readonly #sending = new Set<Promise<void>>();
  readonly #prefetched: PrefetchBuffer;
  readonly #groupSize: GroupSize;
  readonly #cut = new AbortController();
  #ends: UnrecordedEnd[] = [];
  #timer: NodeJS.Timeout | undefined;
  #call: Promise<void> | null = null;
  #isWoken = false;
  /** Claims that this process has given up, but still has in Redis: its next order returns them. */
  #givenUp: string[] = [];
  /** Life of the process (see Heartbeat) in which the last claim was ordered. */
  #orderLife = 0;
  /** Ends a claim that another script makes. */
  #ordered: ((claims: Claims | null) => void) | null = null;
  #state: 'new' | 'running' | 'closing' = 'new';

  constructor(receiver: Receiver, notifier: Notifier, deps: DeliveryContext) {
    this.#receiver = receiver;
    this.#deps = deps;
    this.#runner = {
      receiver,
      notifier,
      deps,
      release: (ids) => this.#release(ids, null),
      record: (end) => this.#record(end),
      cut: this.#cut.signal,
    };
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
    this.#isWoken = true;
    this.#advance();
  }

  order(): ClaimOrder | null {
    // An end that is not recorded may disable the receiver: nothing is claimed before it.
    if (this.#state !== 'running' || this.#call !== null || this.#ends.length > 0 || this.#ordered !== null)
      return null;
    const order = this.#order();
    if (order === null) return null;
    clearTimeout(this.#timer);
    const { promise, resolve } = Promise.withResolvers<Claims | null>();
    this.#ordered = resolve;
    this.#track(promise.then((claims) => this.#takeOffered(claims)));
    return order;
  }

  offer(claims: Claims | null): void {
    this.#ordered?.(claims);
  }

  async #takeOffered(claims: Claims | null): Promise<void> {
    try {
      if (claims !== null) await this.#takeClaims(claims);
      else this.#checkIn(ERROR_RETRY_MS);
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#ordered = null;
      this.#advance();
    }
  }

  async idle(): Promise<void> {
    while (this.#call !== null || this.#sending.size > 0) await Promise.all([this.#call, ...this.#sending]);
  }

  /** Stops claiming and waits for attempts under way; `abort` cuts them off and releases them. */
  async close(abort: AbortSignal): Promise<void> {
    this.#state = 'closing';
    clearTimeout(this.#timer);
    const cut = (): void => this.#cut.abort(new DOMException('shutdown', 'AbortError'));
    abort.addEventListener('abort', cut);
    if (abort.aborted) cut();
    await this.#call;
    await this.#releaseUnsent();
    await this.idle();
    await this.#releaseUnsent();
    abort.removeEventListener('abort', cut);
    await this.#runner.notifier.close();
  }

  async #releaseUnsent(): Promise<void> {
    const ids = [...this.#givenUp.splice(0), ...this.#prefetched.clear()];
    if (ids.length > 0) await this.#release(ids, null).catch((error: unknown) => this.#failed(error));
  }

  /** Makes the next call where there is something to record or to claim. What comes during a call is part of the next one. */
  #advance(): void {
    if (this.#call !== null || (this.#ends.length === 0 && !this.#mayClaim(this.#isWoken))) return;
    this.#call = this.#run()
      .catch((error: unknown) => this.#failed(error))
      .finally(() => {
        this.#call = null;
        this.#advance();
      });
  }

  #mayClaim(isWanted: boolean): boolean {
    return isWanted && this.#state === 'running' && this.#ordered === null;
  }

  async #run(): Promise<void> {
    const { sender, deliveries } = this.#deps;
    const { name } = this.#receiver;
    const ends = this.#takeEnds();
    const mayClaim = this.#mayClaim(true);
    const order = mayClaim ? this.#order(ends) : null;
    if (mayClaim) this.#isWoken = false;
    // The claim of another script may precede these ends, which queue deliveries and free places: one more follows it.
    else if (ends.length > 0 && this.#ordered !== null) this.#isWoken = true;
    if (order !== null) clearTimeout(this.#timer);
    if (ends.length > 0) {
      const claims = await this.#recordAll(ends, order);
      if (claims !== null) await this.#takeClaims(claims);
    } else if (order !== null) {
      await this.#takeClaims(await deliveries.claim(name, { process: sender.id, order }));
    } else {
      // The end of an attempt under way claims the next.
      this.#checkIn(this.#placed.size > 0 ? LONGEST_WAIT_MS : ERROR_RETRY_MS);
    }
  }

  #takeEnds(): UnrecordedEnd[] {
    let count = 0;
    const end = this.#ends.findIndex(({ end }) => {
      count += end.deliveries.length;
      return count > MOST_RECORDED;
    });
    return this.#ends.splice(0, end === -1 ? this.#ends.length : Math.max(1, end));
  }

  /** Returns the order for the next claim; null where none is needed. `ends` are recorded in the same step. */
  #order(ends: readonly UnrecordedEnd[] = []): ClaimOrder | null {
    this.#giveUp(this.#prefetched.removeStale());
    const most = this.#wanted();
    if (most === 0 && this.#givenUp.length === 0) return null;
    this.#givenUp = [];
    this.#orderLife = this.#deps.sender.life;
    const { rateLimit } = this.#receiver;
    const ended = new Set(ends.flatMap(({ end }) => end.ended.ids));
    return {
      most,
      intervalMs: rateLimit === null ? null : Math.ceil(1_000 / rateLimit),
      isTogether: this.#groupSize.canGrow,
      held: [...[...this.#held].filter((id) => !ended.has(id)), ...this.#prefetched.ids],
    };
  }

  #wanted(): number {
    const places = this.#places();
    if (this.#groupSize.canGrow) return places === 0 ? 0 : this.#groupSize.wanted;
    return places + (this.#deps.sender.isFull ? 0 : this.#prefetched.capacity);
  }

  async #recordAll(ends: readonly UnrecordedEnd[], order: ClaimOrder | null): Promise<Claims | null> {
    const { sender, deliveries } = this.#deps;
    const all = ends.map(({ end }) => end.ended);
    try {
      const { recorded, claims } = await deliveries.record(this.#receiver.name, all, {
        process: sender.id,
        order,
      });
      for (const [index, one] of ends.entries()) this.#recorded(one, recorded[index]);
      return claims;
    } catch (error) {
      this.#failed(error);
      for (const one of ends) this.#track(this.#recordAlone(one));
      return null;
    }
  }

  /** Records an attempt that could not be recorded together with others. It retries until that is done. */
  async #recordAlone(unrecorded: UnrecordedEnd): Promise<void> {
    const { sender, deliveries } = this.#deps;
    const { ended } = unrecorded.end;
    for (;;) {
      // A delivery that cannot be recorded has a place meanwhile: a crash would send it again, so there must be few of them.
      for (const id of ended.ids) if (this.#held.has(id)) this.#place(id);
      try {
        const claimer = { process: sender.id, order: null };
        const { recorded } = await deliveries.record(this.#receiver.name, [ended], claimer);
        this.#recorded(unrecorded, recorded[0]);
        return;
      } catch (error) {
        this.#failed(error);
        if (this.#cut.signal.aborted) return unrecorded.settle();
        await sleep(ERROR_RETRY_MS, undefined, { signal: this.#cut.signal }).catch(() => undefined);
      }
    }
  }

  #recorded({ end, settle }: UnrecordedEnd, recorded: Recorded | undefined): void {
    settle();
    if (recorded !== undefined) reportRecorded(this.#receiver.name, end, recorded, this.#deps);
  }

  async #takeClaims(claims: Claims): Promise<void> {
    const clock = { redisMs: claims.nowMs, ownMs: performance.now(), life: this.#orderLife };
    const claimed = claims.claimed.filter(({ id }) => {
      // It is due again before this process was notified that its last attempt is recorded.
      if (this.#held.has(id)) this.#dueAgain.add(id);
      return !this.#held.has(id) && !this.#prefetched.has(id);
    });
    const pending = await readClaimed({ ...claims, claimed }, this.#deps);
    this.#takeIn(pending, { clock, isCutShort: claimed.length < claims.claimed.length });
    this.#checkIn(claims.waitMs ?? LONGEST_WAIT_MS);
  }

  #takeIn(
    claimed: readonly PendingDelivery[],
    { clock, isCutShort }: { clock: ClaimTime; isCutShort: boolean },
  ): void {
    if (!this.#groupSize.canGrow) {
      for (const delivery of claimed) this.#prefetched.add({ deliveries: [delivery], clock });
      this.#begin();
      if (!this.#prefetched.isOpen) this.#giveUp(this.#prefetched.clear());
      return;
    }
    // A missing one among them may be the one that another waits for.
    const { first, rest } = isCutShort ? { first: null, rest: claimed } : splitGroup(claimed);
    if (first !== null) this.#prefetched.add({ deliveries: first, clock });
    this.#begin();
    this.#giveUp([...this.#prefetched.clear(), ...rest.map(({ id }) => id)]);
    if (first !== null && this.#places() > 0) this.#isWoken = true;
  }

  /** Gives up claims: the next call queues them, for they are not held. */
  #giveUp(ids: readonly string[]): void {
    if (ids.length === 0) return;
    this.#givenUp.push(...ids);
    this.#isWoken = true;
  }

  #begin(): void {
    while (this.#state === 'running' && this.#places() > 0) {
      const claimed = this.#prefetched.next();
      if (claimed === null) return;
      for (const { id } of claimed.deliveries) this.#held.add(id);
      this.#place(claimed.deliveries[0].id);
      this.#track(this.#send(claimed.deliveries, claimed.clock));
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#sending.delete(tracked));
    this.#sending.add(tracked);
  }

  #places(): number {
    const placed = this.#placed.size;
    return Math.max(0, this.#deps.sender.capacity(this.#receiver.concurrency - placed, placed));
  }

  async #send(claimed: MessageDeliveries, clock: ClaimTime): Promise<void> {
    const ids = claimed.map(({ id }) => id);
    let sent: SentMessage | number | null = null;
    try {
      sent = await runDelivery(claimed, clock, this.#runner);
      if (typeof sent === 'number') await this.#release(ids, sent);
    } catch (error) {
      const isCut = this.#cut.signal.aborted;
      if (!isCut) reportError(this.#deps, 'delivery.error', { delivery: claimed[0].id, error });
      await this.#release(ids, isCut ? null : ERROR_RETRY_MS).catch(() => undefined);
    }
    if (sent === null || typeof sent === 'number') this.#settle(ids);
    else await this.#ended(claimed[0].id, ids, sent);
  }

  /** Records an attempt, and admits the next one. A receiver that fails gets no more than it is then allowed. */
  async #ended(leader: string, ids: readonly string[], sent: SentMessage): Promise<void> {
    const { outcome, durationMs } = sent.ended.attempt;
    const isDelivered = outcome === 'delivered';
    this.#groupSize.noteAttempt({ isDelivered, isPartial: sent.isPartial });
    this.#giveUp(this.#prefetched.noteAttempt({ isDelivered, durationMs }));
    const recorded = this.#record(sent, () => this.#settle(ids));
    this.#leave(leader);
    await recorded;
  }

  /** Resolves when an end is recorded, with all that end in this turn of the event loop or during the present call. */
  #record(end: MessageEnd, settled: () => void = () => undefined): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const settle = (): void => {
      settled();
      resolve();
    };
    this.#ends.push({ end, settle });
    if (this.#call === null && this.#ends.length === 1) setImmediate(() => this.#advance());
    return promise;
  }

  #settle(ids: readonly string[]): void {
    for (const id of ids) this.#held.delete(id);
    for (const id of ids) {
      const isDueAgain = this.#dueAgain.delete(id);
      // No longer held, one that is due again is queued and claimed.
      if (this.#leave(id) || isDueAgain) this.wake();
    }
  }

  #place(id: string): void {
    if (this.#placed.has(id)) return;
    this.#placed.add(id);
    this.#deps.sender.count(1);
  }

  #leave(id: string): boolean {
    if (!this.#placed.delete(id)) return false;
    this.#deps.sender.count(-1);
    this.#begin();
    return true;
  }

  #failed(error: unknown): void {
    // A delivery claimed meanwhile is not held: the next claim queues it.
    if (this.#state === 'running')
      reportError(this.#deps, 'delivery.error', { receiver: this.#receiver.name, error });
    this.#checkIn(ERROR_RETRY_MS);
  }

  #checkIn(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#state !== 'running') return;
    const mostMs = this.#prefetched.isEmpty ? LONGEST_WAIT_MS : PREFETCHED_CHECK_MS;
    this.#timer = setTimeout(() => this.wake(), Math.min(ms, mostMs));
    this.#timer.unref();
  }

  async #release(ids: readonly string[], afterMs: number | null): Promise<void> {
    const { deliveries, sender } = this.#deps;
    await deliveries.release(this.#receiver.name, { process: sender.id, ids, afterMs });
  }
}
