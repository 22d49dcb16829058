import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { Program } from '../test/support/program.ts';
import { RedisProcess } from '../test/support/redis-process.ts';
import { countCommands } from './polls/commands.ts';
import { cpuMsOf } from './polls/cpu.ts';

const MAIN = join(import.meta.dirname, '../src/main.ts');
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;

/** A budget that no run here reaches. */
const UNLIMITED = 10_000;

const SIZES = [1_000, 10_000, 100_000];
const ROUNDS = 3;
const SETTLE_MS = 8_000;
const MEASURE_MS = 6_000;
const COUNT_MS = 6_000;

/** Targets of the figures; `leastSpeed` is a lower bound. */
const MOST = { client: 25, insideOverBare: 2.5, trips: 6, growth: 1.15, firstSeconds: 5, leastSpeed: 0.3 };

/** Cost of one poll, or one job: commands of clients and inside scripts, CPU of the process in ms; and the number a second. */
type Cost = { client: number; inside: number; cpuMs: number; perSecond: number };

/**
 * Measures the cost of a poll in Redis commands and CPU beside growing numbers of overdue subjects. Measures the polls a
 * second of the shipped daemon with a budget that does not bind, beside a bare loop of BullMQ and undici in the same run.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: { sizes: { type: 'string' }, rounds: { type: 'string' } } });
  const sizes = values.sizes?.split(',').map(Number) ?? SIZES;
  const rounds = Number(values.rounds ?? ROUNDS);
  const upstream = await Program.start(join(import.meta.dirname, 'polls/upstream.ts'), []);
  const [, port = ''] = await upstream.line(/listening on (\d+)/);
  const url = `http://127.0.0.1:${port}`;
  try {
    const bare: Cost[] = [];
    const ours = new Map<number, Cost[]>(sizes.map((size) => [size, []]));
    const first = new Map<number, number[]>(sizes.map((size) => [size, []]));
    for (let round = 0; round < rounds; round++) {
      bare.push(await measureBare(url));
      for (const size of sizes) {
        const { cost, firstSeconds } = await measureDaemon(url, size);
        ours.get(size)?.push(cost);
        first.get(size)?.push(firstSeconds);
        print(`round ${round + 1}, ${size} subjects, first poll after ${firstSeconds.toFixed(1)} s`, cost);
      }
      print(`round ${round + 1}, bare BullMQ and undici`, bare.at(-1) ?? NOTHING);
    }
    return report({ bare, ours, first, sizes });
  } finally {
    await upstream.end('SIGKILL');
  }
}

const NOTHING: Cost = { client: 0, inside: 0, cpuMs: 0, perSecond: 0 };

async function measure(program: Program, redisUrl: string, url: string): Promise<Cost> {
  await wait(SETTLE_MS);
  const [requests, cpu, fromMs] = [await requestsOf(url), await cpuMsOf(program.pid), performance.now()];
  await wait(MEASURE_MS);
  const polls = (await requestsOf(url)) - requests;
  const cpuMs = (await cpuMsOf(program.pid)) - cpu;
  const seconds = (performance.now() - fromMs) / 1_000;
  const before = await requestsOf(url);
  const counted = await countCommands(redisUrl, COUNT_MS);
  const during = (await requestsOf(url)) - before;
  return {
    client: counted.client / during,
    inside: counted.inside / during,
    cpuMs: cpuMs / polls,
    perSecond: polls / seconds,
  };
}

async function measureBare(url: string): Promise<Cost> {
  const redis = await RedisProcess.create();
  const args = [`--redis=${redis.url}`, `--upstream=${url}`, '--concurrency=100'];
  const program = await Program.start(join(import.meta.dirname, 'polls/bare-loop.ts'), args);
  try {
    await program.line(/started/);
    return await measure(program, redis.url, url);
  } finally {
    await program.end('SIGKILL');
    await redis.close();
  }
}

/** Starts the daemon twice: first to read the subjects, then, with all of them overdue, to be measured. */
async function measureDaemon(url: string, size: number): Promise<{ cost: Cost; firstSeconds: number }> {
  const redis = await RedisProcess.create();
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-bench-'));
  const file = join(folder, 'intentwatch.yaml');
  const config = (requestsPerSecond: number): string =>
    stringify({
      upstream: { baseUrl: url, apiKey: 'sandbox-key', requestsPerSecond },
      redis: { url: redis.url },
      server: { host: '127.0.0.1', port: 0 },
      receivers: [
        {
          name: 'backend',
          type: 'webhook',
          url: 'https://127.0.0.1:1/',
          secrets: [SECRET],
          events: ['upstream.*'],
          allowPrivateNetwork: true,
        },
      ],
      subscriptions: [
        { name: 'all', intents: Array.from({ length: size }, (_, at) => hashOf(at)), receivers: ['backend'] },
      ],
    });
  let program: Program | null = null;
  try {
    // Everything is polled once, so that the measured poll is that of a known subject.
    await writeFile(file, config(UNLIMITED));
    program = await Program.start(MAIN, ['start', '--config', file, '--log-level', 'error']);
    const before = await requestsOf(url);
    const endMs = performance.now() + 600_000;
    while ((await requestsOf(url)) - before < size) {
      if (performance.now() > endMs) throw new Error(`${size} subjects were not polled within 10 minutes`);
      await wait(200);
    }
    await program.end('SIGTERM');
    await wait(31_000);
    const requests = await requestsOf(url);
    const startMs = performance.now();
    program = await Program.start(MAIN, ['start', '--config', file, '--log-level', 'error']);
    while ((await requestsOf(url)) === requests) await wait(10);
    const firstSeconds = (performance.now() - startMs) / 1_000;
    return { cost: await measure(program, redis.url, url), firstSeconds };
  } finally {
    await program?.end('SIGKILL');
    await redis.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function hashOf(number: number): string {
  return `0x${number.toString(16).padStart(64, '0')}`;
}

async function requestsOf(url: string): Promise<number> {
  return Number(await (await fetch(`${url}/asked`)).text());
}

function print(name: string, { client, inside, cpuMs, perSecond }: Cost): void {
  const cells = [client, inside, cpuMs].map((value) => value.toFixed(2).padStart(10));
  console.log(`${name.padEnd(60)}${cells.join('')}${perSecond.toFixed(0).padStart(10)}`);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function medianCost(costs: readonly Cost[]): Cost {
  const of = (pick: (cost: Cost) => number): number => median(costs.map(pick));
  return {
    client: of(({ client }) => client),
    inside: of(({ inside }) => inside),
    cpuMs: of(({ cpuMs }) => cpuMs),
    perSecond: of(({ perSecond }) => perSecond),
  };
}

function report(found: {
  bare: readonly Cost[];
  ours: ReadonlyMap<number, readonly Cost[]>;
  first: ReadonlyMap<number, readonly number[]>;
  sizes: readonly number[];
}): number {
  const bare = medianCost(found.bare);
  console.log(`\n${''.padEnd(60)}    client    inside    CPU ms     per s`);
  print('bare BullMQ and undici, a job', bare);
  const costs = new Map(found.sizes.map((size) => [size, medianCost(found.ours.get(size) ?? [])]));
  for (const [size, cost] of costs) print(`Intentwatch, a poll, ${size} subjects`, cost);
  const [least = 0] = found.sizes;
  const most = found.sizes.at(-1) ?? 0;
  const [few, many] = [costs.get(least) ?? NOTHING, costs.get(most) ?? NOTHING];
  const worst = (pick: (cost: Cost) => number): number => Math.max(...[...costs.values()].map(pick));
  const checks = [
    { what: 'client commands a poll', value: worst(({ client }) => client), most: MOST.client },
    {
      what: 'round trips a poll, at most its client commands',
      value: worst(({ client }) => client),
      most: MOST.trips,
    },
    {
      what: 'commands inside scripts over those of a bare job',
      value: worst(({ inside }) => inside) / bare.inside,
      most: MOST.insideOverBare,
    },
    {
      what: `commands at ${most} over those at ${least}`,
      value: (many.client + many.inside) / (few.client + few.inside),
      most: MOST.growth,
    },
    { what: `CPU at ${most} over that at ${least}`, value: many.cpuMs / few.cpuMs, most: MOST.growth },
    {
      what: `seconds to the first poll of ${most} that are overdue`,
      value: median(found.first.get(most) ?? []),
      most: MOST.firstSeconds,
    },
    {
      what: 'most polls a second over jobs a second',
      value: worst(({ perSecond }) => perSecond) / bare.perSecond,
      least: MOST.leastSpeed,
    },
  ];
  console.log('');
  let met = true;
  for (const { what, value, most: top = Number.POSITIVE_INFINITY, least: bottom = 0 } of checks) {
    const ok = value <= top && value >= bottom;
    met &&= ok;
    const bound = bottom > 0 ? `at least ${bottom}` : `at most ${top}`;
    console.log(`${ok ? 'met   ' : 'MISSED'}  ${what}: ${value.toFixed(2)}, ${bound}`);
  }
  return met ? 0 : 1;
}
