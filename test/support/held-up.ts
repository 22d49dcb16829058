import { setTimeout as wait } from 'node:timers/promises';
import { connect, disconnect } from '../../src/store/connection.ts';

const EVERY_MS = 20;

/** Measures how long the machine delays this process and a Redis; `mostMs` is the longest so far. */
export class HeldUp {
  readonly #url: string;
  readonly #closed = new AbortController();
  #watching: Promise<void> = Promise.resolve();
  mostMs = 0;

  constructor(redisUrl: string) {
    this.#url = redisUrl;
  }

  async start(): Promise<void> {
    this.#watching = this.#watch();
  }

  async #watch(): Promise<void> {
    const redis = connect({ kind: 'server', url: this.#url });
    while (!this.#closed.signal.aborted) {
      const beganMs = performance.now();
      await redis.ping();
      await wait(EVERY_MS);
      this.mostMs = Math.max(this.mostMs, performance.now() - beganMs - EVERY_MS);
    }
    await disconnect(redis);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#watching;
  }
}
