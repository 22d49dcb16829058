import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { Stage, subjectOf } from './deliveries/stage.ts';
import { printTargets, type Target } from './detection/targets.ts';

const OPTIONS = {
  part: { type: 'string', default: 'burst,latency' },
  rounds: { type: 'string', default: '3' },
  events: { type: 'string', default: '20000' },
  rates: { type: 'string', default: '200,1000' },
  seconds: { type: 'string', default: '15' },
  wallets: { type: 'string', default: '40' },
  profile: { type: 'string' },
} as const;
const COUNT = z.coerce.number().int().min(1);
const COUNTS = z.string().transform((text) => text.split(',').map((part) => COUNT.parse(part)));

/** The default number of attempts at once of a receiver, and the largest one that makes a bare worker faster. */
const BARE = { usual: 5, many: 50 };

/** Twice the rate at which wallets may be requested at all: their own pace binds. */
const REQUESTS_PER_WALLET = 2;
const WARM_SECONDS = 4;

const LEAST_SPEED = 0.4;
/** Promised time from an answer to the receiver, by events a second. */
const MOST_MS: Readonly<Record<number, { share: number; ms: number }>> = {
  200: { share: 0.95, ms: 25 },
  1000: { share: 0.99, ms: 100 },
};

const STEPS = ['answered to committed', 'committed to opened', 'opened to sent', 'answered to sent'] as const;
const SHARES = [0.5, 0.95, 0.99];

type Size = { events: number; seconds: number; wallets: number; profile: string | null };

type Burst = { perSecond: number; cpuMs: number };

/** Bursts of the bare worker, with the daemon's number at once, and with the largest useful one; and ours. */
type Bursts = Record<'bare' | 'ours' | 'many', Burst[]>;

/** Results of a round at some rate: ms of each step, and lost, repeated or invented events. */
type Latencies = {
  steps: Map<(typeof STEPS)[number], number[]>;
  lost: number;
  twice: number;
  invented: number;
};

/**
 * Measures the delivery rate of the shipped daemon: a burst that waits, beside a bare worker of BullMQ and undici in the same
 * run, and the time from an answer of the upstream to the receiver's request, step by step. Every event is accounted for.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const parts = new Set(values.part.split(','));
  const size: Size = {
    events: COUNT.parse(values.events),
    seconds: COUNT.parse(values.seconds),
    wallets: COUNT.parse(values.wallets),
    profile: values.profile ?? null,
  };
  const rates = parts.has('latency') ? COUNTS.parse(values.rates) : [];
  const bursts: Bursts = { bare: [], ours: [], many: [] };
  const latencies = new Map<number, Latencies[]>(rates.map((rate) => [rate, []]));
  for (let round = 1; round <= COUNT.parse(values.rounds); round += 1) {
    if (parts.has('burst')) {
      bursts.bare.push(await bareBurst(size, BARE.usual));
      bursts.ours.push(await burst(size));
      bursts.many.push(await bareBurst(size, BARE.many));
      const found = Object.entries(bursts).map(([name, all]) => `${name} ${burstText(all.slice(-1))}`);
      console.log(`round ${round}, a burst: ${found.join('; ')}`);
    }
    for (const rate of rates) {
      const found = await latency(size, rate);
      latencies.get(rate)?.push(found);
      printSteps(`round ${round}, ${rate} events a second`, found);
    }
  }
  console.log('');
  const targets = parts.has('burst') ? burstTargets(bursts) : [];
  for (const [rate, rounds] of latencies) targets.push(...latencyTargets(rate, rounds));
  return printTargets(targets) ? 0 : 1;
}

async function onStage<T>(use: (stage: Stage) => Promise<T>): Promise<T> {
  const stage = await Stage.create();
  try {
    return await use(stage);
  } finally {
    await stage.close();
  }
}

/** Runs a daemon that finds all events waiting when it starts. */
async function burst({ events, profile }: Size): Promise<Burst> {
  return onStage(async (stage) => {
    const daemon = { wallets: 1, requestsPerSecond: 1, profile: null };
    // So that the receiver has its place in the log.
    await stage.start(daemon);
    await stage.stop();
    await stage.fill(events);
    await stage.start({ ...daemon, profile });
    const beforeMs = await stage.cpuMs();
    await stage.delivered(events);
    const cpuMs = (await stage.cpuMs()) - beforeMs;
    const perSecond = await speedOf(stage, events);
    await stage.stop();
    return { perSecond, cpuMs: cpuMs / events };
  });
}

async function bareBurst({ events }: Size, concurrency: number): Promise<Burst> {
  return onStage(async (stage) => {
    const cpuMs = (await stage.bare({ events, concurrency })) / events;
    return { perSecond: await speedOf(stage, events), cpuMs };
  });
}

function burstText(bursts: readonly Burst[]): string {
  const [perSecond, cpuMs] = [
    median(bursts.map((one) => one.perSecond)),
    median(bursts.map((one) => one.cpuMs)),
  ];
  return `${perSecond.toFixed(0)}/s at ${cpuMs.toFixed(2)} ms of CPU`;
}

async function speedOf(stage: Stage, events: number): Promise<number> {
  const came = await stage.came();
  const ids = new Set(came.map(([id]) => id));
  if (came.length !== events || ids.size !== events) {
    throw new Error(`found ${came.length} deliveries of ${ids.size} events, expected ${events} of as many`);
  }
  const [firstMs, lastMs] = [came[0]?.[1] ?? 0, came.at(-1)?.[1] ?? 0];
  return ((events - 1) * 1_000) / (lastMs - firstMs);
}

async function latency({ seconds, wallets, profile }: Size, perSecond: number): Promise<Latencies> {
  return onStage(async (stage) => {
    await stage.start({ wallets, requestsPerSecond: REQUESTS_PER_WALLET * wallets, profile });
    await stage.polled(2, wallets);
    await stage.pace(perSecond);
    await wait(WARM_SECONDS * 1_000);
    const from = await stage.pace(perSecond);
    await wait(seconds * 1_000);
    const to = await stage.pace(0);
    await stage.delivered(to);
    // A repeated event would come now.
    await wait(2_000);
    const found = await account(stage, { from, to });
    await stage.stop();
    return found;
  });
}

async function account(stage: Stage, { from, to }: { from: number; to: number }): Promise<Latencies> {
  const [shown, came, committed, opened] = await Promise.all([
    stage.shown(),
    stage.came(),
    stage.committed(),
    stage.opened(),
  ]);
  const ids = Map.groupBy(committed, ({ subject }) => subject);
  const sent = Map.groupBy(came, ([id]) => id);
  const known = new Set(committed.map(({ id }) => id));
  const steps: Latencies['steps'] = new Map(STEPS.map((step) => [step, []]));
  let [lost, twice] = [0, 0];
  for (let number = 0; number < to; number += 1) {
    const [event, ...more] = ids.get(subjectOf(number)) ?? [];
    const [first, ...again] = event === undefined ? [] : (sent.get(event.id) ?? []);
    if (event === undefined || first === undefined) lost += 1;
    twice += more.length + again.length;
    if (event === undefined || first === undefined || number < from) continue;
    const [answeredMs, openedMs] = [shown.get(number) ?? Number.NaN, opened.get(event.id) ?? Number.NaN];
    steps.get('answered to committed')?.push(event.atMs - answeredMs);
    steps.get('committed to opened')?.push(openedMs - event.atMs);
    steps.get('opened to sent')?.push(first[1] - openedMs);
    steps.get('answered to sent')?.push(first[1] - answeredMs);
  }
  const invented =
    came.filter(([id]) => !known.has(id)).length +
    committed.filter(({ subject }) => !isMade(subject, to)).length;
  return { steps, lost, twice, invented };
}

function isMade(subject: string, to: number): boolean {
  const number = Number.parseInt(subject.slice('intent:'.length), 16);
  return number < to && subject === subjectOf(number);
}

function printSteps(name: string, { steps, lost, twice, invented }: Latencies): void {
  console.log(`${name}: lost ${lost}, twice ${twice}, invented ${invented}`);
  for (const [step, ms] of steps) {
    const cells = SHARES.map((share) => `p${share * 100} ${quantile(ms, share).toFixed(1).padStart(7)} ms`);
    console.log(`  ${step.padEnd(24)}${String(ms.length).padStart(7)} events  ${cells.join('  ')}`);
  }
}

function burstTargets({ bare, ours, many }: Bursts): Target[] {
  console.log(`a burst, deliveries a second: ${burstText(ours)}`);
  console.log(`bare, ${BARE.usual} at once: ${burstText(bare)}; ${BARE.many} at once: ${burstText(many)}`);
  const speed = (bursts: readonly Burst[]): number => median(bursts.map(({ perSecond }) => perSecond));
  return [[bare, BARE.usual] as const, [many, BARE.many] as const].map(([floor, atOnce]) => ({
    what: `burst: speed over the bare floor, ${atOnce} at once`,
    found: speed(ours) / speed(floor),
    least: LEAST_SPEED,
  }));
}

function latencyTargets(rate: number, rounds: readonly Latencies[]): Target[] {
  const sum = (pick: (found: Latencies) => number): number =>
    rounds.reduce((total, found) => total + pick(found), 0);
  const targets: Target[] = [
    { what: `${rate} events a second: lost`, found: sum(({ lost }) => lost), most: 0 },
    { what: `${rate} events a second: reported twice`, found: sum(({ twice }) => twice), most: 0 },
    { what: `${rate} events a second: invented`, found: sum(({ invented }) => invented), most: 0 },
  ];
  const most = MOST_MS[rate];
  if (most === undefined) return targets;
  const found = median(rounds.map(({ steps }) => quantile(steps.get('answered to sent') ?? [], most.share)));
  return [
    {
      what: `${rate} events a second: ms from answer to receiver, p${most.share * 100}`,
      found,
      most: most.ms,
    },
    ...targets,
  ];
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}
