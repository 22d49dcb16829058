import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { connect, disconnect } from '../src/store/connection.ts';
import { findEmbedded } from '../src/store/embedded.ts';
import { Program } from '../test/support/program.ts';
import { shipped } from './deliveries/shipped.ts';
import { median, printTargets, type Target } from './detection/targets.ts';
import { type Footprint, footprintOf, memoryOf } from './memory/footprint.ts';

const { main: MAIN, env: ENV } = shipped();
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;

const SIZES = [10_000, 100_000];
const REQUESTS_PER_SECOND = 500;
const TRAFFIC_MINUTES = 10;
const SETTLE_MS = 15_000;

/** Share of answers with a change while there is traffic. */
const SHARE = 0.2;
const SAMPLE_EVERY_MS = 5_000;

const MB = 1_000_000;
const MOST = { redisPerTransfer: 2_500, processMb: 250, growth: 1.1 };

/**
 * Measures the memory of the shipped daemon, with default settings except the budget: its Redis for a transfer in flight with
 * one delivered event, the process beside many of them, and the stability of the process under traffic.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: { sizes: { type: 'string' }, minutes: { type: 'string' } } });
  const sizes = values.sizes?.split(',').map(Number) ?? SIZES;
  const minutes = Number(values.minutes ?? TRAFFIC_MINUTES);
  const upstream = await Program.start(join(import.meta.dirname, 'memory/upstream.ts'), []);
  const [, port = ''] = await upstream.line(/listening on (\d+)/);
  const targets: Target[] = [];
  try {
    for (const size of sizes) {
      const stage = await Stage.create(`http://127.0.0.1:${port}`);
      try {
        targets.push(...(await measure(stage, { size, minutes: size === sizes[0] ? minutes : 0 })));
      } finally {
        await stage.close();
      }
    }
  } finally {
    await upstream.end('SIGKILL');
  }
  return printTargets(targets) ? 0 : 1;
}

async function measure(
  stage: Stage,
  { size, minutes }: { size: number; minutes: number },
): Promise<Target[]> {
  // The fixed part of a Redis, measured with one transfer, does not count for many.
  await stage.start(1);
  await stage.delivered(1);
  await wait(SETTLE_MS);
  const empty = await stage.footprint();
  const program = await stage.start(size);
  await stage.delivered(size);
  await wait(SETTLE_MS);
  const full = await stage.footprint();
  printKinds(full, size);
  const { now, most } = await memoryOf(program.pid);
  console.log(`${size} subjects: process ${mb(now)} MB now, ${mb(most)} MB at most`);
  const targets = [
    {
      what: `${size} transfers: bytes of Redis for each`,
      found: (full.bytes - empty.bytes) / (size - 1),
      most: MOST.redisPerTransfer,
    },
    { what: `${size} subjects: MB of the process`, found: now / MB, most: MOST.processMb },
  ];
  if (minutes === 0) return targets;
  const samples = await stage.traffic(program.pid, minutes);
  const quarter = Math.max(1, Math.floor(samples.length / 4));
  const [first, last] = [median(samples.slice(0, quarter)), median(samples.slice(-quarter))];
  console.log(`${minutes} min of traffic: ${mb(first)} MB in the first quarter, ${mb(last)} MB in the last`);
  return [
    ...targets,
    { what: `${minutes} min of traffic: last quarter over first`, found: last / first, most: MOST.growth },
    {
      what: `${minutes} min of traffic: MB of the process at most`,
      found: Math.max(...samples) / MB,
      most: MOST.processMb,
    },
  ];
}

class Stage {
  readonly #upstreamUrl: string;
  readonly #folder: string;
  readonly #receiver = createServer((request, response) => {
    request.resume().once('end', () => {
      this.#delivered++;
      response.writeHead(204).end();
    });
  });
  #delivered = 0;
  #program: Program | null = null;

  private constructor(upstreamUrl: string, folder: string) {
    this.#upstreamUrl = upstreamUrl;
    this.#folder = folder;
  }

  static async create(upstreamUrl: string): Promise<Stage> {
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-bench-'));
    const stage = new Stage(upstreamUrl, folder);
    await new Promise<void>((resolve) => stage.#receiver.listen(0, '127.0.0.1', resolve));
    return stage;
  }

  get dataDir(): string {
    return join(this.#folder, 'data');
  }

  /** Starts the daemon on the first `size` transfers, in place of the one before. */
  async start(size: number): Promise<Program> {
    await this.#program?.end('SIGTERM');
    const { port } = this.#receiver.address() as AddressInfo;
    const file = join(this.#folder, 'intentwatch.yaml');
    const config = {
      upstream: { baseUrl: this.#upstreamUrl, apiKey: 'sandbox-key', requestsPerSecond: REQUESTS_PER_SECOND },
      dataDir: this.dataDir,
      server: { host: '127.0.0.1', port: 0 },
      receivers: [
        {
          name: 'backend',
          type: 'webhook',
          url: `http://127.0.0.1:${port}/`,
          secrets: [SECRET],
          allowPrivateNetwork: true,
          allowInsecure: true,
        },
      ],
      subscriptions: [
        { name: 'all', intents: Array.from({ length: size }, (_, at) => hashOf(at)), receivers: ['backend'] },
      ],
    };
    await writeFile(file, stringify(config));
    this.#program = await Program.start(MAIN, ['start', '--config', file, '--log-level', 'error'], ENV);
    return this.#program;
  }

  async delivered(count: number): Promise<void> {
    const endMs = performance.now() + 1_200_000;
    while (this.#delivered < count) {
      if (performance.now() > endMs)
        throw new Error(`found ${this.#delivered} deliveries, expected ${count}`);
      await wait(100);
    }
  }

  async footprint(): Promise<Footprint> {
    const redis = connect(await findEmbedded(this.dataDir));
    try {
      return await footprintOf(redis);
    } finally {
      await disconnect(redis);
    }
  }

  /** Changes transfers for some minutes; returns the memory in use meanwhile, in bytes. */
  async traffic(pid: number, minutes: number): Promise<number[]> {
    await fetch(`${this.#upstreamUrl}/changes?share=${SHARE}`);
    const [samples, before]: [number[], number] = [[], this.#delivered];
    const endMs = performance.now() + minutes * 60_000;
    while (performance.now() < endMs) {
      await wait(SAMPLE_EVERY_MS);
      samples.push((await memoryOf(pid)).now);
    }
    await fetch(`${this.#upstreamUrl}/changes?share=0`);
    console.log(`${minutes} min of traffic: ${this.#delivered - before} deliveries`);
    return samples;
  }

  async close(): Promise<void> {
    await this.#program?.end('SIGTERM');
    this.#receiver.closeAllConnections();
    this.#receiver.close();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function hashOf(number: number): string {
  return `0x${number.toString(16).padStart(64, '0')}`;
}

/** Prints the bytes of each kind of key for one transfer, the largest first. */
function printKinds({ kinds }: Footprint, size: number): void {
  const rows = [...kinds].toSorted(([, a], [, b]) => b.bytes - a.bytes).slice(0, 16);
  for (const [kind, { keys, bytes }] of rows) {
    if (bytes < size) continue;
    console.log(
      `${kind.padEnd(40)}${String(keys).padStart(10)} keys${(bytes / size).toFixed(0).padStart(8)} bytes a transfer`,
    );
  }
}

function mb(bytes: number): string {
  return (bytes / MB).toFixed(0);
}
