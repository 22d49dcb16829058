import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import { eventually } from '../test/support/eventually.ts';
import { Program } from '../test/support/program.ts';
import { RedisProcess } from '../test/support/redis-process.ts';
import { COUNT, inTurns, SIDE_OPTIONS } from './deliveries/sides.ts';
import { commandsOf } from './deliveries/stage.ts';
import { median, printTargets } from './detection/targets.ts';
import { cpuMsOf } from './polls/cpu.ts';

const MAIN = join(import.meta.dirname, '../src/main.ts');
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;

/** A budget that no first polls reach, and the one of the polls that are measured. */
const UNLIMITED = 10_000;
const BUDGET = 80;

const OPTIONS = {
  ...SIDE_OPTIONS,
  sizes: { type: 'string', default: '2000,20000' },
  seconds: { type: 'string', default: '10' },
  'rest-seconds': { type: 'string', default: '31' },
} as const;
const SETTLE_MS = 5_000;
const LONGEST_MS = 600_000;

/** Bounds: commands of a poll, and those beside most subjects over those beside fewest. */
const MOST = { commands: 60, goal: 48, growth: 1.1, firstSeconds: 5 };

type Size = { sizes: readonly number[]; seconds: number; restSeconds: number };

/** Cost of a poll, or a job: commands of Redis, CPU of the process in ms, and s from a start to the first one. */
type Cost = { commands: number; cpuMs: number; firstSeconds: number };

/**
 * Measures the Redis commands and the CPU of a poll beside growing numbers of subjects that are all overdue. Their first polls
 * are not measured. The baseline is a bare loop of BullMQ and undici.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const size: Size = {
    sizes: values.sizes.split(',').map((text) => COUNT.parse(text)),
    seconds: COUNT.parse(values.seconds),
    restSeconds: COUNT.parse(values['rest-seconds']),
  };
  const upstream = await Program.start(join(import.meta.dirname, 'polls/upstream.ts'), []);
  const [, port = ''] = await upstream.line(/listening on (\d+)/);
  const url = `http://127.0.0.1:${port}`;
  try {
    const { daemon, bare } = await inTurns(
      values,
      { daemon: () => measureAll(url, size), bare: () => measureBare(url, size) },
      print,
    );
    return report(size.sizes, daemon, bare);
  } finally {
    await upstream.end('SIGKILL');
  }
}

async function measure(
  { program, redisUrl, url }: { program: Program; redisUrl: string; url: string },
  seconds: number,
): Promise<Omit<Cost, 'firstSeconds'>> {
  const redis = new Redis(redisUrl);
  try {
    const sample = (): Promise<[number, number, number]> =>
      Promise.all([commandsOf(redis), cpuMsOf(program.pid), requestsOf(url)]);
    await wait(SETTLE_MS);
    const [commands, cpuMs, polls] = await sample();
    await wait(1_000 * seconds);
    const after = await sample();
    const made = after[2] - polls;
    return { commands: (after[0] - commands) / made, cpuMs: (after[1] - cpuMs) / made };
  } finally {
    redis.disconnect();
  }
}

async function measureBare(url: string, { seconds }: Size): Promise<Cost[]> {
  const redis = await RedisProcess.create();
  const args = [`--redis=${redis.url}`, `--upstream=${url}`, '--concurrency=100'];
  const program = await Program.start(join(import.meta.dirname, 'polls/bare-loop.ts'), args);
  try {
    await program.line(/started/);
    return [{ ...(await measure({ program, redisUrl: redis.url, url }, seconds)), firstSeconds: 0 }];
  } finally {
    await program.end('SIGKILL');
    await redis.close();
  }
}

async function measureAll(url: string, size: Size): Promise<Cost[]> {
  const costs: Cost[] = [];
  for (const count of size.sizes) costs.push(await measureDaemon(url, count, size));
  return costs;
}

/** Starts the daemon twice: first to read the subjects, then, with all of them overdue, to be measured. */
async function measureDaemon(url: string, count: number, { seconds, restSeconds }: Size): Promise<Cost> {
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
        {
          name: 'all',
          intents: Array.from({ length: count }, (_, at) => hashOf(at)),
          receivers: ['backend'],
        },
      ],
    });
  const start = async (requestsPerSecond: number): Promise<Program> => {
    await writeFile(file, config(requestsPerSecond));
    return Program.start(MAIN, ['start', '--config', file, '--log-level', 'error']);
  };
  let program: Program | null = null;
  try {
    const before = await requestsOf(url);
    program = await start(UNLIMITED);
    await eventually(
      `${count} subjects were polled`,
      async () => (await requestsOf(url)) - before >= count,
      LONGEST_MS,
    );
    await program.end('SIGTERM');
    await wait(1_000 * restSeconds);
    const requests = await requestsOf(url);
    const startMs = performance.now();
    program = await start(BUDGET);
    while ((await requestsOf(url)) === requests) await wait(10);
    const firstSeconds = (performance.now() - startMs) / 1_000;
    return { ...(await measure({ program, redisUrl: redis.url, url }, seconds)), firstSeconds };
  } finally {
    await program?.end('SIGKILL');
    await redis.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function hashOf(number: number): string {
  return `0x${number.toString(16).padStart(64, '0')}`;
}

async function requestsOf(url: string): Promise<number> {
  return Number(await (await fetch(`${url}/requests`)).text());
}

function print(name: string, costs: readonly Cost[]): void {
  const cells = costs.map(({ commands, cpuMs }) => `${commands.toFixed(1)} commands, ${cpuMs.toFixed(2)} ms`);
  console.log(`${name}: ${cells.join('; ')}`);
}

function report(
  sizes: readonly number[],
  daemon: readonly (readonly Cost[])[],
  bare: readonly (readonly Cost[])[],
): number {
  const middle = (all: readonly (readonly Cost[])[], at: number, kind: keyof Cost): number =>
    median(all.map((costs) => costs[at]?.[kind] ?? Number.NaN));
  const last = sizes.length - 1;
  console.log('');
  return printTargets([
    ...sizes.flatMap((size, at) => [
      {
        what: `commands of Redis per poll, ${size} subjects`,
        found: middle(daemon, at, 'commands'),
        most: MOST.commands,
        goal: MOST.goal,
        baseline: middle(bare, 0, 'commands'),
      },
      {
        what: `ms of CPU of the process per poll, ${size} subjects`,
        found: middle(daemon, at, 'cpuMs'),
        baseline: middle(bare, 0, 'cpuMs'),
      },
    ]),
    {
      what: `commands per poll at ${sizes[last]} subjects over those at ${sizes[0]}`,
      found: middle(daemon, last, 'commands') / middle(daemon, 0, 'commands'),
      most: MOST.growth,
    },
    {
      what: `seconds to the first poll of ${sizes[last]} that are overdue`,
      found: middle(daemon, last, 'firstSeconds'),
      most: MOST.firstSeconds,
    },
  ])
    ? 0
    : 1;
}
