import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import type { RedisClient } from '../src/store/commands.ts';
import { connect, disconnect } from '../src/store/connection.ts';
import { Keys } from '../src/store/keys.ts';
import { configYaml, testPrefix } from '../test/support/daemon.ts';
import { eventually } from '../test/support/eventually.ts';
import { appendOperatorEvent, operatorEvent } from '../test/support/operator-event.ts';
import { Program } from '../test/support/program.ts';
import { RedisProcess } from '../test/support/redis-process.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../test/support/scripted-upstream.ts';
import { Endpoint } from './deliveries/endpoint.ts';
import { printTargets, quantile } from './detection/targets.ts';
import { DeadNameServer } from './isolation/dead-name.ts';

const MAIN = join(import.meta.dirname, '../src/main.ts');

/** Largest ratio of the p95 beside the others to the one alone. */
const MAX_RATIO = 1.5;

/** Events for the faulty receivers wait under one type; those that are measured have another. */
const WAITING_TYPE = 'upstream.unreachable';
const MEASURED_TYPE = 'upstream.reachable';

const URLS = z.record(z.string(), z.url());

const OPTIONS = {
  rounds: { type: 'string', default: '3' },
  waiting: { type: 'string', default: '1000' },
  events: { type: 'string', default: '300' },
  'every-ms': { type: 'string', default: '20' },
} as const;
const COUNT = z.coerce.number().int().min(1);

type Size = { rounds: number; waiting: number; events: number; everyMs: number };

/** The parts that run during the whole benchmark. `names` is null where a daemon cannot have a name server of its own. */
type Surroundings = {
  redisUrl: string;
  redis: RedisClient;
  upstreamUrl: string;
  healthy: Endpoint;
  ill: Record<string, string>;
  names: DeadNameServer | null;
};

/**
 * Measures the effect of faulty receivers on a healthy one. In turns, a daemon of its own delivers to one receiver alone, and
 * to the same beside six faulty ones, each with 1,000 events waiting: one whose name server does not answer, one that does
 * not answer a TLS handshake, one that drips headers, one that answers all with 429, one that resets, and one that answers
 * after 30 s. The latency of an event runs from just before it is appended to the log until its request is at the receiver.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const size: Size = {
    rounds: COUNT.parse(values.rounds),
    waiting: COUNT.parse(values.waiting),
    events: COUNT.parse(values.events),
    everyMs: COUNT.parse(values['every-ms']),
  };
  const closers: (() => Promise<unknown>)[] = [];
  try {
    const surroundings = await surround(closers);
    const rounds = await measure(surroundings, size);
    if (surroundings.names === null)
      console.log('without a dead name server: unshare --mount is not permitted here');
    return report(rounds);
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

async function surround(closers: (() => Promise<unknown>)[]): Promise<Surroundings> {
  const server = await RedisProcess.create();
  closers.push(() => server.close());
  const redis = connect({ kind: 'server', url: server.url });
  closers.push(() => disconnect(redis));
  const upstream = new ScriptedUpstream(({ query }) => ({
    records: [intentRecord(query.intentHash ?? '', 'unknown', null)],
  }));
  await upstream.start();
  closers.push(() => upstream.close());
  const healthy = await Endpoint.start('receiver.ts');
  closers.push(() => healthy.end());
  const program = await Program.start(join(import.meta.dirname, 'isolation/ill.ts'), []);
  closers.push(() => program.end('SIGKILL'));
  const [urls] = await program.line(/^\{.*\}$/);
  const names = await DeadNameServer.create();
  if (names !== null) closers.push(() => names.close());
  return {
    redisUrl: server.url,
    redis,
    upstreamUrl: upstream.url,
    healthy,
    ill: { ...URLS.parse(JSON.parse(urls)), ...(names === null ? {} : { nameless: 'http://dead.test/' }) },
    names,
  };
}

type Rounds = { alone: number[][]; beside: number[][] };

async function measure(surroundings: Surroundings, size: Size): Promise<Rounds> {
  const rounds: Rounds = { alone: [], beside: [] };
  for (let number = 1; number <= size.rounds; number += 1) {
    // A drift with time (a busy machine) affects both, and neither always comes first.
    const order = number % 2 === 1 ? (['alone', 'beside'] as const) : (['beside', 'alone'] as const);
    for (const kind of order) {
      const latenciesMs = await round(surroundings, { ...size, isAlone: kind === 'alone' });
      rounds[kind].push(latenciesMs);
      console.log(line(`round ${number}, ${kind}`, latenciesMs));
    }
  }
  return rounds;
}

/** Runs one daemon from its start to its end; returns the latency of every measured event, in ms. */
async function round(
  { redisUrl, redis, upstreamUrl, healthy, ill, names }: Surroundings,
  { isAlone, waiting, events, everyMs }: Size & { isAlone: boolean },
): Promise<number[]> {
  const prefix = testPrefix();
  const keys = new Keys(prefix);
  const others = isAlone ? {} : ill;
  const receivers = Object.fromEntries(
    Object.entries(others).map(([name, url]) => [name, { url, more: { events: [WAITING_TYPE] } }]),
  );
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-bench-'));
  const file = join(folder, 'intentwatch.yaml');
  const yaml = configYaml({
    baseUrl: upstreamUrl,
    redisUrl,
    prefix,
    receivers: { ...receivers, healthy: { url: `${healthy.url}/`, more: { events: [MEASURED_TYPE] } } },
    subscriptions: [{ name: 's', intents: [hashOf(1)], receivers: ['healthy', ...Object.keys(others)] }],
  });
  await writeFile(file, yaml);
  await healthy.request('/clear');
  const command = [process.execPath, MAIN, 'start', '--config', file];
  const daemon = await (names === null ? Program.run(command) : names.run(command));
  try {
    await daemon.line(/"msg":"daemon.started"/);
    if (!isAlone) {
      const backlog = Array.from({ length: waiting }, (_, index) => operatorEvent(WAITING_TYPE, index));
      await Promise.all(backlog.map((event) => appendOperatorEvent(redis, keys, event)));
      await eventually('the others have their events waiting', async () => {
        const pending = await Promise.all(Object.keys(others).map((name) => redis.zcard(keys.pending(name))));
        return pending.every((count) => count === waiting);
      });
    }
    const sentMs = new Map<string, number>();
    for (let index = 0; index < events; index += 1) {
      const event = operatorEvent(MEASURED_TYPE, index);
      sentMs.set(event.id, performance.timeOrigin + performance.now());
      await appendOperatorEvent(redis, keys, event);
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
    await eventually(
      'every measured event has arrived',
      async () => (await healthy.number('/count')) >= sentMs.size,
    );
    const came = (await healthy.came()).toReversed();
    const arrivedMs = new Map(came.map(([id, atMs]) => [id, atMs]));
    return [...sentMs].map(([id, atMs]) => (arrivedMs.get(id) ?? Number.NaN) - atMs);
  } finally {
    // A clean stop would wait for attempts that hang; this daemon's data is not used again.
    await daemon.end('SIGKILL');
    await rm(folder, { recursive: true, maxRetries: 5 });
  }
}

function report({ alone, beside }: Rounds): number {
  console.log(line('all rounds, alone', alone.flat()));
  console.log(line('all rounds, beside', beside.flat()));
  const p95 = (rounds: readonly number[][]): number =>
    quantile(
      rounds.map((latenciesMs) => quantile(latenciesMs, 0.95)),
      0.5,
    );
  const [aloneMs, besideMs] = [p95(alone), p95(beside)];
  console.log(`median of the rounds' p95: alone ${aloneMs.toFixed(2)} ms, beside ${besideMs.toFixed(2)} ms`);
  const found = besideMs / aloneMs;
  return printTargets([{ what: 'p95 beside the ill receivers over that alone', found, most: MAX_RATIO }])
    ? 0
    : 1;
}

function line(name: string, latenciesMs: readonly number[]): string {
  const [median, p95] = [0.5, 0.95].map((share) => quantile(latenciesMs, share).toFixed(2).padStart(8));
  return `${name.padEnd(20)} ${String(latenciesMs.length).padStart(5)} events  median ${median} ms  p95 ${p95} ms`;
}
