import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server as HttpServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import type { RedisClient } from '../src/store/commands.ts';
import { connect, disconnect } from '../src/store/connection.ts';
import { EventLog } from '../src/store/event-log.ts';
import { Keys } from '../src/store/keys.ts';
import { configYaml, testPrefix } from '../test/support/daemon.ts';
import { eventually } from '../test/support/eventually.ts';
import { operatorEvent } from '../test/support/operator-event.ts';
import { Program } from '../test/support/program.ts';
import { RedisProcess } from '../test/support/redis-process.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../test/support/scripted-upstream.ts';

const MAIN = join(import.meta.dirname, '../src/main.ts');
const HANG_MS = 30_000;

/** The median beside the others may be so much of the one alone, and a little more. */
const MAX_RATIO = 1.5;
const MAX_EXTRA_MS = 5;

/** Events for the receivers that are ill wait under one type, those that are measured have another. */
const WAITING_TYPE = 'upstream.unreachable';
const MEASURED_TYPE = 'upstream.reachable';

const OPTIONS = {
  rounds: { type: 'string', default: '3' },
  waiting: { type: 'string', default: '1000' },
  events: { type: 'string', default: '300' },
  'every-ms': { type: 'string', default: '20' },
} as const;
const COUNT = z.coerce.number().int().min(1);

type Size = { rounds: number; waiting: number; events: number; everyMs: number };

/** What stands during the whole benchmark. */
type Surroundings = {
  redisUrl: string;
  redis: RedisClient;
  upstreamUrl: string;
  healthy: Receiver;
  ill: Record<string, { url: string }>;
};

type Receiver = { url: string; arrivedMs: Map<string, number> };

/**
 * Does a receiver notice that others are ill? In turns, a daemon of its own delivers to one receiver alone, and to the
 * same beside one that answers after 30 s and one that resets every connection, each with 1,000 events waiting. The
 * latency of an event runs from just before it is appended to the log until its request is at the receiver.
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
    return report(await measure(await surround(closers), size));
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

  const arrivedMs = new Map<string, number>();
  const healthy = createServer((request, response) => {
    const id = String(request.headers['webhook-id']);
    if (!arrivedMs.has(id)) arrivedMs.set(id, performance.now());
    request.resume().on('end', () => response.writeHead(204).end());
  });
  const hanging = createServer((request, response) => {
    request.resume();
    setTimeout(() => response.writeHead(204).end(), HANG_MS).unref();
  });
  const resetting = createTcpServer((socket) => socket.resetAndDestroy());
  const [url, hangs, resets] = await Promise.all([healthy, hanging, resetting].map(listening));
  closers.push(() => Promise.all([closed(healthy), closed(hanging), closed(resetting)]));
  return {
    redisUrl: server.url,
    redis,
    upstreamUrl: upstream.url,
    healthy: { url: url ?? '', arrivedMs },
    ill: { hanging: { url: hangs ?? '' }, resetting: { url: resets ?? '' } },
  };
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

async function closed(server: Server | HttpServer): Promise<void> {
  if ('closeAllConnections' in server) server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

type Rounds = { alone: number[][]; beside: number[][] };

async function measure(surroundings: Surroundings, size: Size): Promise<Rounds> {
  const rounds: Rounds = { alone: [], beside: [] };
  for (let number = 1; number <= size.rounds; number += 1) {
    // What drifts with time (a busy machine) falls on both, and neither always comes first.
    const order = number % 2 === 1 ? (['alone', 'beside'] as const) : (['beside', 'alone'] as const);
    for (const kind of order) {
      const latenciesMs = await round(surroundings, { ...size, isAlone: kind === 'alone' });
      rounds[kind].push(latenciesMs);
      console.log(line(`round ${number}, ${kind}`, latenciesMs));
    }
  }
  return rounds;
}

/** One daemon, from its start to its end; gives the latency of every measured event, in ms. */
async function round(
  { redisUrl, redis, upstreamUrl, healthy, ill }: Surroundings,
  { isAlone, waiting, events, everyMs }: Size & { isAlone: boolean },
): Promise<number[]> {
  const prefix = testPrefix();
  const keys = new Keys(prefix);
  const log = new EventLog(redis, keys);
  const others = isAlone ? {} : ill;
  const receivers = Object.fromEntries(
    Object.entries(others).map(([name, { url }]) => [name, { url, more: { events: [WAITING_TYPE] } }]),
  );
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-bench-'));
  const file = join(folder, 'intentwatch.yaml');
  const yaml = configYaml({
    baseUrl: upstreamUrl,
    redisUrl,
    prefix,
    receivers: { ...receivers, healthy: { url: healthy.url, more: { events: [MEASURED_TYPE] } } },
    subscriptions: [{ name: 's', intents: [hashOf(1)], receivers: ['healthy', ...Object.keys(others)] }],
  });
  await writeFile(file, yaml);
  const daemon = await Program.start(MAIN, ['start', '--config', file]);
  try {
    await daemon.line(/"msg":"daemon.started"/);
    if (!isAlone) {
      const backlog = Array.from({ length: waiting }, (_, index) => operatorEvent(WAITING_TYPE, index));
      await Promise.all(backlog.map((event) => log.append(event)));
      await eventually('the others have their events waiting', async () => {
        const pending = await Promise.all(Object.keys(others).map((name) => redis.zcard(keys.pending(name))));
        return pending.every((count) => count === waiting);
      });
    }
    const sentMs = new Map<string, number>();
    for (let index = 0; index < events; index += 1) {
      const event = operatorEvent(MEASURED_TYPE, index);
      sentMs.set(event.id, performance.now());
      await log.append(event);
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
    await eventually('every measured event has arrived', () =>
      [...sentMs.keys()].every((id) => healthy.arrivedMs.has(id)),
    );
    return [...sentMs].map(([id, atMs]) => (healthy.arrivedMs.get(id) ?? Number.NaN) - atMs);
  } finally {
    healthy.arrivedMs.clear();
    // Attempts that hang would be waited for; nothing is kept of this daemon.
    await daemon.end('SIGKILL');
    await rm(folder, { recursive: true });
  }
}

function report({ alone, beside }: Rounds): number {
  const [aloneMs, besideMs] = [alone.flat(), beside.flat()];
  const limitMs = MAX_RATIO * quantile(aloneMs, 0.5) + MAX_EXTRA_MS;
  const isMet = quantile(besideMs, 0.5) <= limitMs;
  console.log(line('all rounds, alone', aloneMs));
  console.log(line('all rounds, beside', besideMs));
  const rule = `${MAX_RATIO} times the median alone plus ${MAX_EXTRA_MS} ms`;
  console.log(`median beside at most ${limitMs.toFixed(2)} ms (${rule}): ${isMet ? 'met' : 'NOT MET'}`);
  return isMet ? 0 : 1;
}

function line(name: string, latenciesMs: readonly number[]): string {
  const [median, p95] = [0.5, 0.95].map((share) => quantile(latenciesMs, share).toFixed(2).padStart(8));
  return `${name.padEnd(20)} ${String(latenciesMs.length).padStart(5)} events  median ${median} ms  p95 ${p95} ms`;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
