import { BoundedMap, bytesOfTexts, CACHES } from '../domain/caches.ts';
import type { Block, Found } from '../domain/proof/proof.ts';

/** The part of an endpoint's answer about a transaction that it has. */
export type TxFacts = Pick<
  Found,
  'block' | 'isFinal' | 'succeeded' | 'moves' | 'fulfilled' | 'burns' | 'isPartial'
>;

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

/** Creates the cache of the blocks that an endpoint has shown. */
export function shownBlocks(): BoundedMap<string, Block> {
  return new BoundedMap({
    ...CACHES.blocks,
    bytesOf: (key, { number, hash }) => bytesOfTexts(key, number, hash),
  });
}

/** A value that is requested again after a while. Callers meanwhile get the same value, or wait for the same answer. */
export class Refreshed<T> {
  readonly #read: () => Promise<T>;
  readonly #forMs: number;
  #pending: Promise<T> | null = null;
  #known: { value: T; requestedAtMs: number } | null = null;

  constructor({ read, forMs }: { read: () => Promise<T>; forMs: number }) {
    this.#read = read;
    this.#forMs = forMs;
  }

  async get(): Promise<T> {
    const known = this.#known;
    if (known !== null && performance.now() - known.requestedAtMs < this.#forMs) return known.value;
    this.#pending ??= this.#refresh();
    return this.#pending;
  }

  async #refresh(): Promise<T> {
    const requestedAtMs = performance.now();
    try {
      const value = await this.#read();
      this.#known = { value, requestedAtMs };
      return value;
    } finally {
      this.#pending = null;
    }
  }
}
