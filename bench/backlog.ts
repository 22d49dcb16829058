import { parseArgs } from 'node:util';
import { monotonicMs } from './budget/profile.ts';
import { bareBurst, cpuOfEach, type DaemonBurst, printBurst, rateOf, speedOf } from './burst.ts';
import { account, exactness } from './deliveries/account.ts';
import { COUNT, inTurns, SIDE_OPTIONS } from './deliveries/sides.ts';
import { Stage } from './deliveries/stage.ts';
import { printTargets } from './detection/targets.ts';

const OPTIONS = {
  ...SIDE_OPTIONS,
  events: { type: 'string', default: '20000' },
  wallets: { type: 'string', default: '40' },
  profile: { type: 'string' },
} as const;

const BUDGET = 80;
const LEAST_SPEED = { least: 0.6, goal: 0.75 };

/**
 * Measures the deliveries of events that are stored and wait for one receiver, from the first to the last arrival. The
 * baseline is a bare worker of BullMQ to which as many events were published before.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const events = COUNT.parse(values.events);
  const wallets = COUNT.parse(values.wallets);
  const { daemon, bare } = await inTurns(
    values,
    {
      daemon: () => daemonBacklog(events, { wallets, profile: values.profile ?? null }),
      bare: () => bareBurst(events, 'before'),
    },
    printBurst,
  );
  console.log('');
  return printTargets([
    {
      what: 'backlog: events a second, ratio to bare',
      found: speedOf(daemon),
      baseline: speedOf(bare),
      isRatio: true,
      ...LEAST_SPEED,
    },
    ...exactness(
      'backlog',
      daemon.map((one) => one.found),
    ),
  ])
    ? 0
    : 1;
}

/** Runs a backlog of the daemon on a stage of its own; under a profiler where a folder is given for its profile. */
export async function daemonBacklog(
  events: number,
  { wallets, profile }: { wallets: number; profile: string | null },
): Promise<DaemonBurst> {
  return Stage.use(async (stage) => {
    await stage.store(events, { wallets, requestsPerSecond: BUDGET, profile });
    const [before, beganMs] = [await stage.cpu(), monotonicMs()];
    await stage.act('resume');
    await stage.delivered(events);
    const [cpu, endedMs] = [cpuOfEach(before, await stage.cpu(), events), monotonicMs()];
    const [shown, came] = await Promise.all([stage.shown(), stage.came()]);
    const found = account({ shown, came, from: 0, to: events });
    const span = { fromMs: beganMs, toMs: endedMs };
    return { perSecond: rateOf(came, came[0]?.[1] ?? Number.NaN), cpu, found, span };
  });
}
