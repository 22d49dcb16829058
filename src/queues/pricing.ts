import type { Logger } from 'pino';
import { firstPrice, steer } from '../domain/cadence/price.ts';
import type { SubjectId } from '../domain/subject.ts';
import type { Asked, PriceStore } from '../store/prices.ts';
import { SURFACES, type Surface, surfaceOf } from '../store/surface.ts';

/** What pricing works with. `budgets` are in requests per second. */
export type PricingParts = { prices: PriceStore; budgets: Record<Surface, number>; log: Logger };

const EVERY_MS = 1_000;

/**
 * The price of a request on each surface, shared by all processes: every second one of them steers it by what all
 * subjects want and what all processes asked for, and each of them reads it.
 */
export class Pricing {
  readonly #parts: PricingParts;
  readonly #prices = new Map<Surface, number>();
  readonly #asked = new Map<Surface, Asked>();
  #timer: NodeJS.Timeout | null = null;
  #round: Promise<void> = Promise.resolve();
  #closing = false;

  constructor(parts: PricingParts) {
    this.#parts = parts;
  }

  /** Reads the prices, then steers and reads them every second. */
  async start(): Promise<void> {
    await this.#steerAll();
    this.#plan();
  }

  /** The price of a request for a subject, in weighted seconds of delay. */
  price(subject: SubjectId): number {
    return this.priceOf(surfaceOf(subject));
  }

  priceOf(surface: Surface): number {
    return this.#prices.get(surface) ?? firstPrice(0).price;
  }

  /** Counts a request that takes its turn; `planned`: it was part of the demand. */
  asked(surface: Surface, { planned }: { planned: boolean }): void {
    const counted = this.#counted(surface);
    counted.served++;
    if (!planned) counted.unplanned++;
  }

  /** Notes that the upstream asked for a pause. */
  pushedBack(surface: Surface): void {
    this.#counted(surface).pushedBack++;
  }

  #counted(surface: Surface): Asked {
    let counted = this.#asked.get(surface);
    if (counted === undefined) {
      counted = { served: 0, unplanned: 0, pushedBack: 0 };
      this.#asked.set(surface, counted);
    }
    return counted;
  }

  #plan(): void {
    if (this.#closing) return;
    this.#timer = setTimeout(() => {
      this.#round = this.#steerAll().finally(() => this.#plan());
    }, EVERY_MS);
  }

  async #steerAll(): Promise<void> {
    try {
      await Promise.all(SURFACES.map((surface) => this.#steer(surface)));
    } catch (error) {
      if (!this.#closing) this.#parts.log.error({ error }, 'pricing.error');
    }
  }

  async #steer(surface: Surface): Promise<void> {
    const { prices, budgets } = this.#parts;
    const asked = this.#asked.get(surface);
    this.#asked.delete(surface);
    if (asked !== undefined) await prices.count(surface, asked);
    const isMine = await prices.takeTurn(surface);
    const before = await prices.read(surface);
    if (!isMine) {
      if (before !== null) this.#prices.set(surface, before.state.price);
      return;
    }
    const { nowMs, demand, planned, asked: now } = await prices.demanded(surface);
    const waiting = (await prices.overdue(nowMs)).find(({ subject }) => surfaceOf(subject) === surface);
    const then = before?.asked ?? now;
    const state = steer(before?.state ?? firstPrice(nowMs), {
      nowMs,
      budgetPerSecond: budgets[surface],
      demand,
      planned,
      served: Math.max(0, now.served - then.served),
      unplanned: Math.max(0, now.unplanned - then.unplanned),
      behindSeconds: waiting === undefined ? 0 : (nowMs - waiting.dueMs) / 1_000,
      pushedBack: now.pushedBack > then.pushedBack,
    });
    await prices.write(surface, { state, asked: now });
    this.#prices.set(surface, state.price);
  }

  async close(): Promise<void> {
    this.#closing = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#round;
  }
}
