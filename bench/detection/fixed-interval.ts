import { setTimeout as wait } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { z } from 'zod';

/** The `user-agent` that distinguishes its requests from a daemon's. */
export const SCRIPT_AGENT = 'fixed-interval-script';

const PAGE = z.object({ results: z.array(z.object({ id: z.string(), status: z.string() })) });
const PAGE_SIZE = 50;

/** A user's script in place of a daemon: reads first pages in turn, at `requestsPerSecond`. It stores and sends nothing. */
export class FixedIntervalScript {
  readonly #options: {
    baseUrl: string;
    apiKey: string;
    wallets: readonly string[];
    requestsPerSecond: number;
  };
  readonly #agent = new Agent();
  readonly #ending = new AbortController();
  readonly #onPage: (id: string, status: string) => void;
  #running: Promise<void> = Promise.resolve();
  #pending = new Set<Promise<void>>();

  /** `onPage` is called for every record of every answer, after its read. */
  constructor(
    options: { baseUrl: string; apiKey: string; wallets: readonly string[]; requestsPerSecond: number },
    onPage: (id: string, status: string) => void,
  ) {
    this.#options = options;
    this.#onPage = onPage;
  }

  start(): void {
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    const { wallets, requestsPerSecond } = this.#options;
    const { signal } = this.#ending;
    const startMs = performance.now();
    for (let index = 0; !signal.aborted; index++) {
      const dueMs = startMs + (index * 1_000) / requestsPerSecond;
      await wait(Math.max(0, dueMs - performance.now()), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) break;
      const request = this.#poll(wallets[index % wallets.length] ?? '').finally(() =>
        this.#pending.delete(request),
      );
      this.#pending.add(request);
    }
  }

  async #poll(wallet: string): Promise<void> {
    const { baseUrl, apiKey } = this.#options;
    const url = `${baseUrl}/v1/intents/status?wallet=${wallet}&limit=${PAGE_SIZE}`;
    const headers = { 'x-api-key': apiKey, 'user-agent': SCRIPT_AGENT };
    const { body } = await request(url, { headers, dispatcher: this.#agent });
    for (const { id, status } of PAGE.parse(await body.json()).results) this.#onPage(id, status);
  }

  /** Ends after the running requests. Throws when one failed. */
  async close(): Promise<void> {
    this.#ending.abort();
    await this.#running;
    await Promise.all(this.#pending);
    await this.#agent.close();
  }
}
