import { z } from 'zod';
import type { Fault } from '../../sandbox/faults/fault.ts';
import type { Program } from './program.ts';

export const SANDBOX_KEY = 'sandbox-key';

const SUBJECTS = z.object({
  wallets: z.array(z.string()),
  intents: z.array(z.string()),
  quotes: z.array(z.string()),
  gaslessJobs: z.array(z.string()),
  vaults: z.array(z.object({ address: z.string(), chainId: z.number() })),
});
const TRANSITIONS = z.array(
  z.object({ subject: z.string(), from: z.string().nullable(), to: z.string(), at: z.number() }),
);
const ANSWERS = z.array(
  z.object({
    at: z.number(),
    path: z.string(),
    query: z.record(z.string(), z.string()),
    subjects: z.array(z.object({ id: z.string(), status: z.string() })),
  }),
);
const SHOWINGS = z.array(
  z.object({
    requestedAt: z.number(),
    at: z.number(),
    doneAt: z.number().nullable(),
    isPage: z.boolean(),
    records: z.array(
      z.object({
        id: z.string(),
        status: z.string(),
        updatedAt: z.number().nullable(),
        content: z.string(),
        steps: z.object({ failed: z.number(), refunded: z.number() }),
      }),
    ),
  }),
);
const REQUESTS = z.array(
  z.object({
    at: z.number(),
    path: z.string(),
    query: z.record(z.string(), z.string()),
    agent: z.string().nullable(),
    status: z.number().nullable(),
  }),
);
const PACE = z.object({ transfersPerSecond: z.number(), livingTransfers: z.number() });

/** The `sandbox` command in a process of its own, and its control port. */
export class SandboxProcess {
  readonly program: Program;
  readonly url: string;
  readonly controlUrl: string;
  readonly quotesUrl: string;

  private constructor(deps: { program: Program; url: string; controlUrl: string; quotesUrl: string }) {
    this.program = deps.program;
    this.url = deps.url;
    this.controlUrl = deps.controlUrl;
    this.quotesUrl = deps.quotesUrl;
  }

  /** Wraps a program that was started as `sandbox` with any free ports. */
  static async of(program: Program): Promise<SandboxProcess> {
    const [, url = ''] = await program.line(/^upstream: +(http:\S+)/);
    const [, controlUrl = ''] = await program.line(/^control: +(http:\S+)/);
    const [, quotesUrl = ''] = await program.line(/^quotes: +(http:\S+)/);
    return new SandboxProcess({ program, url, controlUrl, quotesUrl });
  }

  async #get<T>(path: string, schema: z.ZodType<T>): Promise<T> {
    const response = await fetch(`${this.controlUrl}${path}`);
    return schema.parse(await response.json());
  }

  async subjects(): Promise<z.infer<typeof SUBJECTS>> {
    return this.#get('/subjects', SUBJECTS);
  }

  async transitions(): Promise<z.infer<typeof TRANSITIONS>> {
    return this.#get('/transitions', TRANSITIONS);
  }

  /** The answers given since a time (Unix ms), in order. */
  async answers(sinceMs = 0): Promise<z.infer<typeof ANSWERS>> {
    return this.#get(`/answers?since=${sinceMs}`, ANSWERS);
  }

  /** The subjects' states in readable answers, in order. */
  async showings(): Promise<z.infer<typeof SHOWINGS>> {
    return this.#get('/showings', SHOWINGS);
  }

  /** Every request since a time (Unix ms), in order, with any answer. */
  async requests(sinceMs = 0): Promise<z.infer<typeof REQUESTS>> {
    return this.#get(`/requests?since=${sinceMs}`, REQUESTS);
  }

  async living(): Promise<number> {
    return (await this.#get('/pace', PACE)).livingTransfers;
  }

  /** Sets the births of transfers per second; 0 lets everything drain. */
  async setPace(transfersPerSecond: number): Promise<void> {
    const response = await fetch(`${this.controlUrl}/pace`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ transfersPerSecond }),
    });
    PACE.parse(await response.json());
  }

  /** Sets the number of solvers. Without one nobody quotes, and nobody fills a transfer that is funded. */
  async setSolvers(solvers: number): Promise<void> {
    await this.#post('/market', { solvers });
  }

  /** Lets the faucet give an address a coin of an EVM chain, and 1,000 of one of its tokens. */
  async give(address: string, { chainId, token }: { chainId: number; token: string }): Promise<void> {
    await this.#post('/faucet', { chainId, address });
    await this.#post('/faucet', { chainId, address, token });
  }

  async #post(path: string, body: object): Promise<void> {
    const response = await fetch(`${this.controlUrl}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(await response.text());
  }

  /** Sets these faults, and no others, from now on. */
  async setFaults(faults: readonly Fault[]): Promise<void> {
    await fetch(`${this.controlUrl}/faults`, { method: 'DELETE' });
    for (const fault of faults) {
      const response = await fetch(`${this.controlUrl}/faults`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(fault),
      });
      if (response.status !== 201) throw new Error(await response.text());
    }
  }
}
