import { parseArgs } from 'node:util';
import { monotonicMs, type Span } from './budget/profile.ts';
import { type Account, account, exactness } from './deliveries/account.ts';
import type { Arrival } from './deliveries/endpoint.ts';
import { COUNT, inTurns, SIDE_OPTIONS } from './deliveries/sides.ts';
import { type Cpu, deliveredTo, onBare, Stage } from './deliveries/stage.ts';
import { median, printTargets } from './detection/targets.ts';

const OPTIONS = {
  ...SIDE_OPTIONS,
  events: { type: 'string', default: '20000' },
  wallets: { type: 'string', default: '40' },
  budget: { type: 'string', default: '80' },
  profile: { type: 'string' },
} as const;

const LEAST_SPEED = { least: 0.4, goal: 0.5 };

export type BurstSize = {
  events: number;
  wallets: number;
  requestsPerSecond: number;
  profile: string | null;
};

/** A burst: its events a second, the CPU of each, ms, and its account. */
export type Burst = { perSecond: number; cpu: Cpu; found: Account };

/** A burst of a daemon, with its span of time. */
export type DaemonBurst = Burst & { span: Span };

/**
 * Measures a burst of changes from the first answer that shows some of them to the last delivery: polls, commits and
 * deliveries. The baseline is a bare worker of BullMQ to which as many events are published at once.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const size: BurstSize = {
    events: COUNT.parse(values.events),
    wallets: COUNT.parse(values.wallets),
    requestsPerSecond: COUNT.parse(values.budget),
    profile: values.profile ?? null,
  };
  const { daemon, bare } = await inTurns(
    values,
    { daemon: () => daemonBurst(size), bare: () => bareBurst(size.events, 'at-once') },
    printBurst,
  );
  console.log('');
  return printTargets([
    {
      what: 'burst: events a second, ratio to bare',
      found: speedOf(daemon),
      baseline: speedOf(bare),
      isRatio: true,
      ...LEAST_SPEED,
    },
    ...exactness(
      'burst',
      daemon.map((one) => one.found),
    ),
  ])
    ? 0
    : 1;
}

/** Runs a burst of the daemon on a stage of its own; under a profiler where a folder is given for its profile. */
export async function daemonBurst({
  events,
  wallets,
  requestsPerSecond,
  profile,
}: BurstSize): Promise<DaemonBurst> {
  return Stage.use(async (stage) => {
    await stage.start({ wallets, requestsPerSecond, profile });
    await stage.polled(2, wallets);
    const [before, beganMs] = [await stage.cpu(), monotonicMs()];
    await stage.upstream.number(`/make?count=${events}`);
    await stage.delivered(events);
    const [cpu, endedMs] = [cpuOfEach(before, await stage.cpu(), events), monotonicMs()];
    const [shown, came] = await Promise.all([stage.shown(), stage.came()]);
    const fromMs = [...shown.values()].reduce((least, atMs) => Math.min(least, atMs));
    const found = account({ shown, came, from: 0, to: events });
    const span = { fromMs: beganMs, toMs: endedMs };
    return { perSecond: rateOf(came, fromMs), cpu, found, span };
  });
}

/** Runs the bare worker on events that wait when it begins, or that are published at once. */
export async function bareBurst(events: number, publish: 'before' | 'at-once'): Promise<Burst> {
  return onBare({ events, publish }, async ({ receiver, beganMs, cpu }) => {
    const before = await cpu();
    await deliveredTo(receiver, events);
    const used = cpuOfEach(before, await cpu(), events);
    const came = await receiver.came();
    const fromMs = publish === 'before' ? (came[0]?.[1] ?? beganMs) : beganMs;
    const found = { delaysMs: [], lost: 0, twice: came.length - events, invented: 0 };
    return { perSecond: rateOf(came, fromMs), cpu: used, found };
  });
}

export function cpuOfEach(before: Cpu, after: Cpu, events: number): Cpu {
  return {
    processMs: (after.processMs - before.processMs) / events,
    redisMs: (after.redisMs - before.redisMs) / events,
  };
}

/** Events a second from a time (Unix ms) to the last arrival. */
export function rateOf(came: readonly Arrival[], fromMs: number): number {
  return (1_000 * came.length) / ((came.at(-1)?.[1] ?? Number.NaN) - fromMs);
}

export function speedOf(bursts: readonly Burst[]): number {
  return median(bursts.map(({ perSecond }) => perSecond));
}

export function printBurst(name: string, { perSecond, cpu }: Burst): void {
  const used = `${cpu.processMs.toFixed(2)} + ${cpu.redisMs.toFixed(2)} ms of CPU`;
  console.log(`${name}: ${perSecond.toFixed(0)} events/s at ${used} each`);
}
