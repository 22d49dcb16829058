import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Receiver } from '../../config/config.ts';
import { parseDeliveryId } from '../../domain/events/delivery-id.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import type { AttemptOptions, AttemptResult, Notifier } from '../../notifiers/notifier.ts';
import type { Signals } from '../../signals.ts';
import type { BatchStore } from '../../store/batches.ts';
import type { DeliveryStore, Noting } from '../../store/deliveries.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Registry } from '../../store/registry.ts';
import { Ahead, type Clock } from './ahead.ts';
import { cutAnswer, judge } from './attempts.ts';
import { type Letter, letterOf, readLetters } from './letters.ts';
import type { Sender } from './sender.ts';
import { takeTurn } from './turn.ts';

/** What a delivery worker works with. */
export type DeliveryParts = {
  sender: Sender;
  events: EventLog;
  registry: Registry;
  deliveries: DeliveryStore;
  batches: BatchStore;
  directory: Directory;
  signals: Signals;
  log: Logger;
};

/** After an error of our own (Redis away, a bug) a delivery is tried again, or its end noted again. */
const ERROR_RETRY_MS = 2_000;

/** So long a delivery whose event only a newer version can read is left to one. */
const NEWER_RETRY_MS = 30_000;

/** How long a receiver is not looked at that nobody says anything about. */
const LONGEST_LOOK_MS = 30_000;

/** How soon it is looked whether what was handed out ahead still waits. */
const AHEAD_LOOK_MS = 1_000;

/** What is sent at once: one delivery, or those of a batch, the one that leads first; and the one that was handed out for it. */
type Message = {
  lead: Letter;
  letters: readonly Letter[];
  batch: string | null;
  process: string | null;
  held: string;
};

/**
 * Delivers the events of one receiver. Redis hands it as many deliveries as the receiver's pace allows; it holds each of
 * them until its end is noted, so that none is sent twice by a process that lives.
 */
export class DeliveryWorker {
  readonly #receiver: Receiver;
  readonly #notifier: Notifier;
  readonly #parts: DeliveryParts;
  /** What is being sent, or has been and is not noted yet: id -> its end. */
  readonly #held = new Map<string, Promise<void>>();
  /** Those of them that have a place among what is sent at once: until their end is on its way to Redis. */
  readonly #placed = new Set<string>();
  /** What of it was handed out once more. */
  readonly #dueAgain = new Set<string>();
  /** What has no place yet. */
  readonly #ahead: Ahead;
  readonly #cut = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | null = null;
  #lookAgain = false;
  #state: 'new' | 'running' | 'closing' = 'new';

  constructor(receiver: Receiver, notifier: Notifier, parts: DeliveryParts) {
    this.#receiver = receiver;
    this.#notifier = notifier;
    this.#parts = parts;
    // Under a rate limit each has its time, and what is gathered waits by rules of its own.
    const goesAhead = receiver.type === 'webhook' && receiver.rateLimit === null && receiver.concurrency > 1;
    this.#ahead = new Ahead(goesAhead ? receiver.concurrency : 0);
  }

  start(): void {
    this.#state = 'running';
    this.#parts.sender.listen(this.#receiver.name, this);
    this.wake();
  }

  isRunning(): boolean {
    return this.#state === 'running';
  }

  /** Looks for something to send, now. */
  wake(): void {
    if (this.#state !== 'running') return;
    if (this.#looking !== null) {
      this.#lookAgain = true;
      return;
    }
    clearTimeout(this.#timer);
    this.#looking = this.#look()
      .catch((error: unknown) => {
        // What was handed out meanwhile is not among what is held: the next claim queues it.
        if (this.#state === 'running')
          this.#parts.log.error({ receiver: this.#receiver.name, error }, 'delivery.error');
        this.#lookIn(ERROR_RETRY_MS);
      })
      .finally(() => {
        this.#looking = null;
        if (this.#lookAgain) {
          this.#lookAgain = false;
          this.wake();
        }
      });
  }

  /** Stops taking deliveries and waits for attempts under way; `abort` cuts them off and hands them back. */
  async close(abort: AbortSignal): Promise<void> {
    this.#state = 'closing';
    clearTimeout(this.#timer);
    const cut = (): void => this.#cut.abort(new DOMException('shutdown', 'AbortError'));
    abort.addEventListener('abort', cut);
    if (abort.aborted) cut();
    await this.#looking;
    await this.#return(this.#ahead.clear());
    await Promise.all(this.#held.values());
    abort.removeEventListener('abort', cut);
    await this.#notifier.close();
  }

  async #look(): Promise<void> {
    const { sender, deliveries } = this.#parts;
    const stale = this.#ahead.stale();
    if (stale.length > 0) await this.#return(stale);
    const most = this.#places() + (sender.isFull ? 0 : this.#ahead.room);
    // The end of what is under way wakes it.
    if (most === 0) return this.#lookIn(this.#placed.size > 0 ? LONGEST_LOOK_MS : ERROR_RETRY_MS);
    const { name, rateLimit } = this.#receiver;
    const claims = await deliveries.claim(name, {
      process: sender.id,
      most,
      intervalMs: rateLimit === null ? null : Math.ceil(1_000 / rateLimit),
      held: [...this.#held.keys(), ...this.#ahead.ids],
    });
    const clock = { redisMs: claims.nowMs, ownMs: performance.now() };
    const texts = await this.#parts.registry.readSubscriptions(claims.subscriptions);
    for (const claimed of claims.claimed) {
      if (this.#ahead.has(claimed.id)) continue;
      if (this.#held.has(claimed.id)) {
        // It is due again before we have heard that its last attempt is noted.
        this.#dueAgain.add(claimed.id);
        continue;
      }
      this.#ahead.add({ letter: letterOf(claimed, texts, this.#parts), clock });
    }
    this.#begin();
    if (!this.#ahead.isOpen) await this.#return(this.#ahead.clear());
    if (claims.waitMs !== null) this.#lookIn(claims.waitMs);
    else this.#lookIn(LONGEST_LOOK_MS);
  }

  /** Begins what was handed out, as far as there are places. */
  #begin(): void {
    while (this.#state === 'running' && this.#places() > 0) {
      const handed = this.#ahead.next();
      if (handed === null) return;
      const { letter, clock } = handed;
      this.#place(letter.id);
      const end = this.#take(letter, clock).finally(() => {
        this.#held.delete(letter.id);
        this.#giveWay(letter.id);
        // No longer among what is held, it is queued and handed out anew.
        if (this.#dueAgain.delete(letter.id)) this.wake();
      });
      this.#held.set(letter.id, end);
    }
  }

  /** How many attempts may begin now. */
  #places(): number {
    const placed = this.#placed.size;
    return Math.max(0, this.#parts.sender.room(this.#receiver.concurrency - placed, placed));
  }

  /** Hands back what is not sent now. What is not heard of is queued by the next claim: it is not among what is held. */
  async #return(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const { deliveries, sender, log } = this.#parts;
    const { name } = this.#receiver;
    await deliveries
      .handBack(name, { process: sender.id, ids, afterMs: null })
      .catch((error: unknown) => log.error({ receiver: name, error }, 'delivery.error'));
  }

  #place(id: string): void {
    if (this.#placed.has(id)) return;
    this.#placed.add(id);
    this.#parts.sender.count(1);
  }

  /** Leaves the place of a delivery to the next one; what is missing then is asked for at once. */
  #giveWay(id: string): void {
    if (!this.#placed.delete(id)) return;
    this.#parts.sender.count(-1);
    this.#begin();
    this.wake();
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#state !== 'running') return;
    const mostMs = this.#ahead.ids.length > 0 ? AHEAD_LOOK_MS : LONGEST_LOOK_MS;
    this.#timer = setTimeout(() => this.wake(), Math.min(ms, mostMs));
    this.#timer.unref();
  }

  /** Sees a delivery to its end: sent and noted, or handed back. */
  async #take(letter: Letter, clock: Clock): Promise<void> {
    try {
      const afterMs = await this.#deliver(letter, clock);
      if (afterMs !== null) await this.#handBack(letter.id, afterMs);
    } catch (error) {
      const isCut = this.#cut.signal.aborted;
      if (!isCut) this.#parts.log.error({ delivery: letter.id, error }, 'delivery.error');
      await this.#handBack(letter.id, isCut ? null : ERROR_RETRY_MS).catch(() => undefined);
    }
  }

  async #handBack(id: string, afterMs: number | null): Promise<void> {
    const { deliveries, sender } = this.#parts;
    await deliveries.handBack(this.#receiver.name, { process: sender.id, ids: [id], afterMs });
  }

  /** Makes one attempt, if it is the delivery's turn. Returns ms until it comes up again; null when its end is noted. */
  async #deliver(letter: Letter, clock: Clock): Promise<number | null> {
    const { name } = this.#receiver;
    const turn = await takeTurn({ receiver: this.#receiver, letter, nowMs: nowBy(clock) }, this.#parts);
    if (turn.do === 'wait') return turn.afterMs;
    const others = turn.members.filter((id) => id !== letter.id);
    const letters = others.length === 0 ? [letter] : await readLetters(name, turn.members, this.#parts);
    if (letters.some(({ waits }) => waits)) return NEWER_RETRY_MS;
    for (const one of letters) {
      if (one.missing !== null) await this.#end(one, one.missing, clock);
    }
    const sent = letters.filter(({ event }) => event !== null);
    const [first] = sent;
    if (first === undefined) return null;
    const lead = letters.length === 1 ? letter : (sent.find(({ id }) => id === letter.id) ?? first);
    // Another process may have taken it over while this one stood still.
    if (!this.#parts.sender.isSure()) return 0;
    // Where the event of the one that leads has gone, another of the batch stands for it, which nobody was handed.
    const process = lead.id === letter.id ? this.#parts.sender.id : null;
    const batch = turn.members.length > 1 ? turn.batch : null;
    await this.#attempt({ lead, letters: sent, batch, process, held: letter.id }, clock);
    return null;
  }

  /** Sends one message, about one event or as the batch of several, and notes how it went. */
  async #attempt(message: Message, clock: Clock): Promise<void> {
    const { lead, letters } = message;
    const atMs = Date.now();
    const replay = lead.fact.replay !== null;
    const remaining = remainingOf(letters);
    const result = await this.#send(message, { signal: this.#cut.signal, nowMs: atMs, replay, remaining });
    const { outcome, durationMs } = result;
    // Before another one may begin: a receiver that fails gets no more than it is then allowed.
    const returned = this.#return(this.#ahead.saw({ isDelivered: outcome === 'delivered', durationMs }));
    const verdict = judge({
      result,
      facts: letters.map(({ fact }) => fact),
      retries: this.#receiver.retries,
      claimedMs: clock.redisMs,
      nowMs: nowBy(clock),
    });
    const { retryAfterMs: _, answer, ...rest } = result;
    const attempt = { ...rest, answer: cutAnswer(answer), atMs, nextAtMs: verdict.nextAtMs };
    const { disableAfterMs } = this.#receiver;
    const noted = this.#note(letters, lead, {
      ...verdict,
      attempt,
      answer: result.outcome === 'delivered' ? '' : answer,
      disableAfterMs,
      process: message.process,
      nowMs: nowBy(clock),
    });
    // What is asked for now reaches Redis behind the note, and so usually finds the receiver as the attempt left it.
    this.#giveWay(message.held);
    await Promise.all([returned, noted]);
    // A Redis that does not know the script yet notes it behind what was asked for, which then has seen nothing of it.
    if (outcome !== 'delivered' || this.#placed.size === 0) this.wake();
  }

  async #send({ lead, letters, batch }: Message, options: AttemptOptions): Promise<AttemptResult> {
    if (batch === null) {
      if (lead.event === null) throw new Error('there is no event to send');
      return this.#notifier.deliver(lead.event, options);
    }
    const events = letters.flatMap(({ event }) => event ?? []);
    if (this.#notifier.deliverDigest === undefined) {
      throw new Error(
        `receiver ${this.#receiver.name} takes one event at a time, but several are to be sent`,
      );
    }
    return this.#notifier.deliverDigest({ id: batch, events }, options);
  }

  /** Ends a delivery that has nothing to send. */
  async #end(letter: Letter, reason: string, clock: Clock): Promise<void> {
    await this.#note([letter], letter, {
      attempt: { ...NOT_SENT, reason, atMs: Date.now() },
      outcome: 'dead',
      nextAtMs: null,
      counts: true,
      answer: '',
      restMs: null,
      disableAfterMs: null,
      process: null,
      nowMs: nowBy(clock),
    });
  }

  /** Notes an attempt with all its deliveries in one step. What has been sent is noted, however long that takes. */
  async #note(letters: readonly Letter[], lead: Letter, noting: Omit<Noting, 'ids'>): Promise<void> {
    const { name: receiver } = this.#receiver;
    const { deliveries, log } = this.#parts;
    const others = letters.filter(({ id }) => id !== lead.id).map(({ id }) => id);
    for (;;) {
      try {
        const noted = await deliveries.record(receiver, { ...noting, ids: [lead.id, ...others] });
        this.#tell(letters, lead, noting, noted);
        return;
      } catch (error) {
        log.error({ receiver, delivery: lead.id, error }, 'delivery.error');
        if (this.#cut.signal.aborted) return;
        // What cannot be noted keeps its place: a crash would send it again, and so there must not be many of it.
        for (const { id } of letters) if (this.#held.has(id)) this.#place(id);
        await sleep(ERROR_RETRY_MS, undefined, { signal: this.#cut.signal }).catch(() => undefined);
      }
    }
  }

  #tell(
    letters: readonly Letter[],
    lead: Letter,
    { attempt }: Pick<Noting, 'attempt'>,
    { outcome, moved }: Awaited<ReturnType<DeliveryStore['record']>>,
  ): void {
    const { name: receiver } = this.#receiver;
    const { signals, log } = this.#parts;
    const { outcome: result, durationMs, httpStatus, smtpCode, reason } = attempt;
    const number = lead.fact.tries + 1;
    const about = aboutOf(receiver, lead);
    const durationSeconds = durationMs / 1_000;
    signals.emit('delivery.attempted', {
      ...about,
      attempt: number,
      outcome: result,
      durationSeconds,
      reason,
    });
    const level = outcome === 'dead' ? 'error' : result === 'delivered' ? 'info' : 'warn';
    const line = { ...about, attempt: number, result, httpStatus, smtpCode, durationMs, reason };
    const { replay, turn } = lead.fact;
    const more = {
      ...(turn === null ? {} : { openedAt: new Date(Math.floor(turn / 1_000)).toISOString() }),
      ...(replay === null ? {} : { replay }),
      ...(letters.length === 1 ? {} : { events: letters.length }),
    };
    log[level]({ ...line, ...more, outcome }, 'delivery.attempted');
    if (moved !== null) {
      signals.emit('receiver.moved', { receiver, move: moved, reason });
      const how = moved === 'recovered' ? 'info' : 'error';
      log[how]({ receiver, move: moved, reason }, 'receiver.moved');
    }
    if (outcome === 'pending') return;
    for (const letter of letters) signals.emit('delivery.ended', { ...aboutOf(receiver, letter), outcome });
  }
}

const NOT_SENT = {
  outcome: 'failed',
  httpStatus: null,
  smtpCode: null,
  durationMs: 0,
  answer: '',
  nextAtMs: null,
} as const;

function nowBy({ redisMs, ownMs }: Clock): number {
  return Math.round(redisMs + performance.now() - ownMs);
}

/** Whom the last attempt left out, where that is the same for all that is sent. */
function remainingOf(letters: readonly Letter[]): readonly string[] | undefined {
  const [first, ...others] = letters.map(({ fact }) => fact.attempts.at(-1)?.remaining);
  return others.every((other) => other?.join() === first?.join()) ? first : undefined;
}

function aboutOf(
  receiver: string,
  { id, event }: Letter,
): { receiver: string; subject: string | null; eventId: string; eventType: string } {
  const subject = event?.data.subject.id ?? null;
  return { receiver, subject, eventId: parseDeliveryId(id).eventId, eventType: event?.type ?? 'unknown' };
}
