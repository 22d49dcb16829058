import type { Block, Found } from '../domain/proof/proof.ts';

/** The part of an endpoint's answer about a transaction that it has. */
export type TxFacts = Pick<Found, 'block' | 'isFinal' | 'succeeded' | 'moves' | 'fulfilled' | 'isPartial'>;

/** Reader of one kind of chain at one endpoint. All methods throw EndpointErrors. */
export interface ChainSource {
  identity(): Promise<string>;
  isSynced(): Promise<boolean>;
  finalHead(): Promise<Block>;
  /** Null when the endpoint does not have the transaction. `head` was final before the request. */
  find(
    txHash: string,
    options: { head: Block; token: string | null; signal?: AbortSignal },
  ): Promise<TxFacts | null>;
}

/** A map of limited size; the values set first are removed. */
export class BoundedMap<T> {
  readonly #most: number;
  readonly #values = new Map<string, T>();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): T | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: T): void {
    this.#values.set(key, value);
    const [oldest] = this.#values.keys();
    if (this.#values.size > this.#most && oldest !== undefined) this.#values.delete(oldest);
  }
}

/** A value that is requested again after a while. Callers meanwhile get the same value, or wait for the same answer. */
export class Refreshed<T> {
  readonly #ask: () => Promise<T>;
  readonly #forMs: number;
  #pending: Promise<T> | null = null;
  #known: { value: T; askedAtMs: number } | null = null;

  constructor({ ask, forMs }: { ask: () => Promise<T>; forMs: number }) {
    this.#ask = ask;
    this.#forMs = forMs;
  }

  async get(): Promise<T> {
    const known = this.#known;
    if (known !== null && performance.now() - known.askedAtMs < this.#forMs) return known.value;
    this.#pending ??= this.#refresh();
    return this.#pending;
  }

  async #refresh(): Promise<T> {
    const askedAtMs = performance.now();
    try {
      const value = await this.#ask();
      this.#known = { value, askedAtMs };
      return value;
    } finally {
      this.#pending = null;
    }
  }
}
