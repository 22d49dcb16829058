import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Account, account, exactness } from './deliveries/account.ts';
import { COUNT, inTurns, SIDE_OPTIONS } from './deliveries/sides.ts';
import { type Cpu, deliveredTo, onBare, Stage } from './deliveries/stage.ts';
import { median, printTargets, quantile, type Target } from './detection/targets.ts';

const OPTIONS = {
  ...SIDE_OPTIONS,
  rates: { type: 'string', default: '20,200,500,1000' },
  seconds: { type: 'string', default: '15' },
  wallets: { type: 'string', default: '40' },
  profile: { type: 'string' },
} as const;

/** From this rate of changes on the budget is raised, and CPU is measured. */
const BUSY_PER_SECOND = 100;
const BUDGET = 80;

const WARM_SECONDS = 4;
const IDLE_SECONDS = 6;
/** Time in which a repeated event would come. */
const AFTER_MS = 2_000;

const SHARES = { p50: 0.5, p95: 0.95, p99: 0.99 } as const;

/** Promised delays, ms: the most, and the goal beyond. */
const DELAYS: { readonly [rate: number]: { readonly [share in keyof typeof SHARES]?: [number, number] } } = {
  20: { p50: [3.5, 2], p95: [7, 4] },
  200: { p50: [4, 2.5], p95: [12, 5] },
  500: { p95: [25, 12] },
  1000: { p50: [15, 5], p99: [60, 30] },
};
const CPU = { process: [0.4, 0.3], redis: [0.15, 0.1] } as const;

type Size = { seconds: number; wallets: number; profile: string | null };

/** A round: its delays, changes that waited at its begin and end, and CPU of a change beyond that of idle polls, ms. */
type Round = { found: Account; waiting: { before: number; after: number }; cpu: Cpu };

/**
 * Measures the time from an answer of the upstream to the receiver's request at steady rates of changes, and the CPU of a
 * change without the share of idle polls. The baseline is a bare worker of BullMQ at the same rate, from the time at which each
 * event is to be published.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const size: Size = {
    seconds: COUNT.parse(values.seconds),
    wallets: COUNT.parse(values.wallets),
    profile: values.profile ?? null,
  };
  const targets: Target[] = [];
  for (const rate of values.rates.split(',').map((text) => COUNT.parse(text))) {
    const { daemon, bare } = await inTurns(
      values,
      { daemon: () => measure(size, rate), bare: () => measureBare(size, rate) },
      (name, round) => print(`${rate}/s, ${name}`, round),
    );
    targets.push(...targetsOf(rate, daemon, bare));
  }
  console.log('');
  return printTargets(targets) ? 0 : 1;
}

async function measure({ seconds, wallets, profile }: Size, rate: number): Promise<Round> {
  return Stage.use(async (stage) => {
    const requestsPerSecond = rate > BUSY_PER_SECOND ? BUDGET : null;
    await stage.start({ wallets, requestsPerSecond, profile });
    await stage.polled(1, wallets);
    const waiting = async (): Promise<number> =>
      (await stage.upstream.number('/born')) - (await stage.receiver.number('/count'));
    const idle = await during(() => stage.cpu(), IDLE_SECONDS);
    await stage.pace(rate);
    await wait(WARM_SECONDS * 1_000);
    const before = await waiting();
    const from = await stage.pace(rate);
    const busy = await during(() => stage.cpu(), seconds);
    const to = await stage.pace(0);
    const after = await waiting();
    await stage.delivered(to);
    await wait(AFTER_MS);
    const [shown, came] = await Promise.all([stage.shown(), stage.came()]);
    const share = (kind: keyof Cpu): number =>
      (busy[kind] - (idle[kind] * seconds) / IDLE_SECONDS) / (to - from);
    return {
      found: account({ shown, came, from, to }),
      waiting: { before, after },
      cpu: { processMs: share('processMs'), redisMs: share('redisMs') },
    };
  });
}

async function measureBare({ seconds }: Size, rate: number): Promise<Round> {
  const warm = WARM_SECONDS * rate;
  const events = warm + seconds * rate;
  return onBare({ events, publish: { perSecond: rate } }, async ({ receiver, beganMs, cpu }) => {
    await wait(WARM_SECONDS * 1_000);
    const before = warm - (await receiver.number('/count'));
    const busy = await during(cpu, seconds);
    const after = events - (await receiver.number('/count'));
    await deliveredTo(receiver, events);
    const came = await receiver.came();
    const delaysMs = came.flatMap(([id, atMs]) => {
      const number = Number(id.slice('evt_'.length));
      return number < warm ? [] : [atMs - beganMs - (1_000 * number) / rate];
    });
    return {
      found: { delaysMs, lost: 0, twice: came.length - events, invented: 0 },
      waiting: { before: Math.max(0, before), after: Math.max(0, after) },
      cpu: { processMs: busy.processMs / (seconds * rate), redisMs: busy.redisMs / (seconds * rate) },
    };
  });
}

async function during(cpu: () => Promise<Cpu>, seconds: number): Promise<Cpu> {
  const before = await cpu();
  await wait(1_000 * seconds);
  const after = await cpu();
  return { processMs: after.processMs - before.processMs, redisMs: after.redisMs - before.redisMs };
}

function print(name: string, { found, waiting, cpu }: Round): void {
  const delays = Object.entries(SHARES).map(
    ([share, value]) => `${share} ${quantile(found.delaysMs, value).toFixed(1)} ms`,
  );
  const used = `${cpu.processMs.toFixed(2)} + ${cpu.redisMs.toFixed(2)} ms of CPU`;
  const counts = `${found.delaysMs.length} events, ${waiting.before} to ${waiting.after} waiting`;
  console.log(`${name}: ${delays.join(', ')}, ${used}, ${counts}`);
}

function targetsOf(rate: number, daemon: readonly Round[], bare: readonly Round[]): Target[] {
  if (daemon.length === 0 && bare.length === 0) return [];
  const name = `${rate} changes/s`;
  const middle = (rounds: readonly Round[], pick: (round: Round) => number): number =>
    median(rounds.map(pick));
  const figure = (
    what: string,
    pick: (round: Round) => number,
    bounds?: readonly [number, number],
  ): Target => ({
    what: `${name}: ${what}`,
    found: middle(daemon, pick),
    ...(bounds === undefined ? {} : { most: bounds[0], goal: bounds[1] }),
    ...(bare.length === 0 ? {} : { baseline: middle(bare, pick) }),
  });
  const delays = Object.entries(SHARES).map(([share, value]) =>
    figure(
      `ms from answer to receiver, ${share}`,
      ({ found }) => quantile(found.delaysMs, value),
      DELAYS[rate]?.[share as keyof typeof SHARES],
    ),
  );
  const cpu =
    rate > BUSY_PER_SECOND
      ? [
          figure('ms of CPU of the process per event', (round) => round.cpu.processMs, CPU.process),
          figure('ms of CPU of Redis per event', (round) => round.cpu.redisMs, CPU.redis),
        ]
      : [];
  const grown = daemon.map(({ waiting }) => waiting.after - waiting.before);
  return [
    ...delays,
    ...cpu,
    // Wallets are polled in turn: what waits for its wallet's turn varies by about a second's changes.
    { what: `${name}: growth of what waits`, found: Math.max(...grown), most: 2 * rate },
    ...exactness(
      name,
      daemon.map(({ found }) => found),
    ),
  ];
}
