import type { Block, Found } from '../domain/proof/proof.ts';

/** What an endpoint shows of a transaction that it has. */
export type Observation = Pick<
  Found,
  'block' | 'isFinal' | 'succeeded' | 'moves' | 'fulfilled' | 'isPartial'
>;

/** How transactions of one kind of chain are read at one endpoint. Everything throws EndpointErrors. */
export interface ChainSource {
  identity(): Promise<string>;
  isSynced(): Promise<boolean>;
  /** The newest block that is final. */
  finalHead(): Promise<Block>;
  /** Null where the endpoint does not have it. `head` was final before this was asked. */
  find(
    txHash: string,
    options: { head: Block; token: string | null; signal?: AbortSignal },
  ): Promise<Observation | null>;
}

/** The last values by their names; of too many, those that were set first are removed. */
export class Kept<T> {
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

/** A value that is requested again after a while. Whoever asks meanwhile gets the same, or waits for the same answer. */
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
