import { z } from 'zod';
import { chance, integer, pick, type Random } from '../../sandbox/world/random.ts';
import { CHECKED_CHAINS } from './lying-orders.ts';

const PASSING: readonly object[] = [
  { type: 'bare-error', status: 503 },
  { type: 'bare-error', status: 502, rate: 0.5 },
  { type: 'null-answers', rate: 0.5 },
  { type: 'null-answers' },
  { type: 'lagging-head', seconds: 2 },
  { type: 'lagging-head', seconds: 60 },
  { type: 'error', code: 'rate-limit-exceeded', retryAfterSeconds: 1 },
  { type: 'error', code: 'rate-limit-exceeded', rate: 0.3 },
  { type: 'html', rate: 0.5 },
  { type: 'truncated-body', rate: 0.5 },
  { type: 'wrong-content-type' },
  { type: 'slow-body', ms: 100, rate: 0.5 },
  { type: 'latency', ms: 50, spreadMs: 200 },
  { type: 'rpc-error', code: -32000, rate: 0.5 },
  { type: 'rpc-error', code: -32005 },
  { type: 'other-chain' },
  { type: 'unknown-tags' },
];

/** The endpoints of every chain. */
export const ENDPOINTS = ['own', 'other'] as const;

/** Faults of endpoints that contradict each other, or themselves, about some payments, from the beginning to the end. */
export const LASTING: readonly object[] = [
  { type: 'amount-disagreement', path: '/chains/10/other', rate: 0.08 },
  { type: 'amount-disagreement', path: '/chains/1399811149/own', rate: 0.08 },
  { type: 'block-disagreement', path: '/chains/8453/own', rate: 0.08 },
  { type: 'receipt-disagreement', path: '/chains/1/own', rate: 0.2 },
];

const AT_ONCE = 4;
const FROM_MS = 300;
const MORE_MS = 1_200;
const DEEPEST = 2_000;

/** Makes endpoints of a sandbox fail by turns, and reorganises its chains, until it is ended. */
export class PassingFaults {
  readonly #controlUrl: string;
  readonly #random: Random;
  readonly #ids: number[] = [];
  #ended = false;
  #running: Promise<void> | null = null;
  begun = 0;

  constructor({ controlUrl, random }: { controlUrl: string; random: Random }) {
    this.#controlUrl = controlUrl;
    this.#random = random;
  }

  start(): void {
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#ended) {
      const path = `/chains/${pick(this.#random, CHECKED_CHAINS)}/${pick(this.#random, ENDPOINTS)}`;
      this.#ids.push(await startFault(this.#controlUrl, { ...pick(this.#random, PASSING), path }));
      this.begun += 1;
      if (this.#ids.length > AT_ONCE) await this.#endOldest();
      if (chance(this.#random, 0.5)) await this.#reorganise();
      await new Promise((resolve) => setTimeout(resolve, FROM_MS + integer(this.#random, MORE_MS)));
    }
    while (this.#ids.length > 0) await this.#endOldest();
  }

  async #reorganise(): Promise<void> {
    const [chainId, reorganise] = [pick(this.#random, CHECKED_CHAINS), 1 + integer(this.#random, DEEPEST)];
    await postTo(`${this.#controlUrl}/chains`, { chainId, reorganise });
  }

  async #endOldest(): Promise<void> {
    const id = this.#ids.shift();
    await fetch(`${this.#controlUrl}/faults/${id}`, { method: 'DELETE' });
  }

  async end(): Promise<void> {
    this.#ended = true;
    await this.#running;
  }
}

/** Starts a fault of a sandbox; returns its id. */
export async function startFault(controlUrl: string, fault: object): Promise<number> {
  const started: unknown = await postTo(`${controlUrl}/faults`, fault);
  if (typeof started !== 'object' || started === null || !('id' in started)) throw new Error('found no id');
  return Number(started.id);
}

const LISTED = z.object({
  faults: z.array(z.object({ type: z.string(), path: z.string(), strikes: z.int() })),
});

/** Lists, as text, the faults of a sandbox that affected nothing yet: a run shows nothing about these. */
export async function idleFaults(controlUrl: string): Promise<string[]> {
  const { faults } = LISTED.parse(await (await fetch(`${controlUrl}/faults`)).json());
  return faults.filter(({ strikes }) => strikes === 0).map(({ type, path }) => `${type} of ${path} is idle`);
}

async function postTo(url: string, body: object): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return response.json();
}
