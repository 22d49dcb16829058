import { z } from 'zod';
import { CACHES } from '../../src/domain/caches.ts';
import type { Program } from '../support/program.ts';

/** The flag with which a program can be made to collect its garbage. It changes nothing else. */
export const INSPECTED = '--inspect=127.0.0.1:0';

/** Size of the heap right after a collection, and number of requests that the API had answered by then. */
export type HeapSample = { atMs: number; usedBytes: number; requests: number };

/**
 * Greatest growth of the heap for each request of the client, in the last half of a run. The smallest leak to be found is 1 kB
 * for each request. A floor for the whole half excludes differences between samples.
 */
const MOST_BYTES_PER_REQUEST = 256;
const NOISE_BYTES = 3 * 1024 * 1024;

/**
 * Caches may still fill for this time after the start: the one of the event log holds as many bytes of text as it may read, and
 * its events as objects. A half that begins earlier shows only larger leaks.
 */
const FILLING_MS = 300_000;
const CACHES_BYTES = 2 * CACHES.logEntries.bytes;

const REPLY = z.object({ id: z.int() });

/** Reads the heap of a program that was started with INSPECTED, after a full collection. */
export class HeapGauge {
  readonly #socket: WebSocket;
  readonly #metricsUrl: string;
  readonly #waiting = new Map<number, () => void>();
  #calls = 0;

  private constructor(socket: WebSocket, metricsUrl: string) {
    this.#socket = socket;
    this.#metricsUrl = metricsUrl;
    socket.addEventListener('message', ({ data }) => {
      const reply = REPLY.safeParse(JSON.parse(String(data)));
      if (reply.success) this.#waiting.get(reply.data.id)?.();
    });
  }

  static async of(program: Program, url: string): Promise<HeapGauge> {
    const [, address = ''] = await program.line(/^Debugger listening on (ws:\S+)/);
    const socket = new WebSocket(address);
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve, { once: true });
      socket.addEventListener('error', reject, { once: true });
    });
    return new HeapGauge(socket, `${url}/metrics`);
  }

  async read(requests: number): Promise<HeapSample> {
    await this.#collect();
    const text = await (await fetch(this.#metricsUrl)).text();
    const [, used = ''] = /^nodejs_heap_size_used_bytes (\S+)$/m.exec(text) ?? [];
    return { atMs: Date.now(), usedBytes: Number(used), requests };
  }

  async #collect(): Promise<void> {
    this.#calls += 1;
    const id = this.#calls;
    const done = new Promise<void>((resolve) => this.#waiting.set(id, resolve));
    this.#socket.send(JSON.stringify({ id, method: 'HeapProfiler.collectGarbage' }));
    await done;
    this.#waiting.delete(id);
  }

  close(): void {
    this.#socket.close();
  }
}

/** Compares the trend of the last half of the samples with its bound, and summarises it in a line. */
export function heapProblems(samples: readonly HeapSample[]): { summary: string; problems: string[] } {
  const half = samples.slice(Math.floor(samples.length / 2));
  const [first, last] = [half.at(0), half.at(-1)];
  if (first === undefined || last === undefined || half.length < 3) {
    return { summary: 'too few samples of the heap for a trend', problems: [] };
  }
  const grownBytes = Math.round(slopeOf(half) * (last.atMs - first.atMs));
  const requests = last.requests - first.requests;
  const isFilling = first.atMs - (samples[0]?.atMs ?? 0) < FILLING_MS;
  const mostBytes = Math.max(NOISE_BYTES, requests * MOST_BYTES_PER_REQUEST) + (isFilling ? CACHES_BYTES : 0);
  const summary = `heap after a collection ${last.usedBytes} bytes; trend of the last half ${grownBytes} bytes over ${requests} requests, at most ${mostBytes}`;
  return { summary, problems: grownBytes <= mostBytes ? [] : [`the heap grows: ${summary}`] };
}

/** The median of the slopes between all pairs of samples, bytes per ms: a single large sample does not move it. */
function slopeOf(samples: readonly HeapSample[]): number {
  const slopes = samples
    .flatMap((one, index) =>
      samples.slice(index + 1).map((other) => (other.usedBytes - one.usedBytes) / (other.atMs - one.atMs)),
    )
    .toSorted((a, b) => a - b);
  return slopes[Math.floor(slopes.length / 2)] ?? 0;
}
