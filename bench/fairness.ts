import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { eventually } from '../test/support/eventually.ts';
import { type Account, account, exactness } from './deliveries/account.ts';
import { type Arrival, Endpoint } from './deliveries/endpoint.ts';
import { COUNT } from './deliveries/sides.ts';
import { type Route, Stage, subjectOf, walletOf, webhook } from './deliveries/stage.ts';
import { median, printTargets, quantile, type Target } from './detection/targets.ts';

const OPTIONS = {
  part: { type: 'string', default: 'burst,slow' },
  rounds: { type: 'string', default: '1' },
  events: { type: 'string', default: '20000' },
  changes: { type: 'string', default: '20' },
  wallets: { type: 'string', default: '40' },
  seconds: { type: 'string', default: '15' },
  rate: { type: 'string', default: '100' },
} as const;

const BUDGET = 80;
/** Delay of the slow receiver's answers. */
const SLOW_MS = 300;

const MOST = { beyondUnloadedMs: 100, slowRatio: 1.2, eventLoopMs: 10 };

type Size = { events: number; changes: number; wallets: number; seconds: number; rate: number };

/**
 * Measures the effect of work for one receiver on another. `burst`: the delay of a lone change of another wallet to another
 * receiver, alone and while a burst of changes is polled and delivered; and the longest delay of the event loop. `slow`: delays
 * at a receiver with and without a slow one beside it that gets the same events.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const size: Size = {
    events: COUNT.parse(values.events),
    changes: COUNT.parse(values.changes),
    wallets: COUNT.parse(values.wallets),
    seconds: COUNT.parse(values.seconds),
    rate: COUNT.parse(values.rate),
  };
  const rounds = COUNT.parse(values.rounds);
  const parts = new Set(values.part.split(','));
  const targets: Target[] = [];
  if (parts.has('burst')) targets.push(...burstTargets(await repeated(rounds, () => besideBurst(size))));
  if (parts.has('slow')) {
    const alone = await repeated(rounds, () => besideSlow(size, false));
    const beside = await repeated(rounds, () => besideSlow(size, true));
    targets.push(...slowTargets(alone, beside));
  }
  console.log('');
  return printTargets(targets) ? 0 : 1;
}

async function repeated<T>(rounds: number, measure: () => Promise<T>): Promise<T[]> {
  const found: T[] = [];
  for (let round = 0; round < rounds; round += 1) found.push(await measure());
  return found;
}

/** Delays of lone changes without and beside a burst, ms; the longest of the event loop, ms; and the account of the burst. */
type Lone = { unloadedMs: number[]; loadedMs: number[]; eventLoopMs: number; burst: Account };

async function besideBurst({ events, changes, wallets }: Size): Promise<Lone> {
  const other = await Endpoint.start('receiver.ts');
  try {
    return await Stage.use(async (stage) => {
      const routes: Route[] = [
        { name: 'backend', wallets: numbers(wallets), receiver: webhook(stage.receiver) },
        { name: 'other', wallets: [wallets], receiver: webhook(other) },
      ];
      await stage.start({ wallets: wallets + 1, requestsPerSecond: BUDGET, routes });
      await stage.polled(2, wallets + 1);
      const lone: number[] = [];
      for (let count = 0; count < changes; count += 1) lone.push(await loneChange(stage, other, wallets));
      const unloaded = lone.length;
      await stage.longestDelayMs();
      await stage.upstream.number(`/make?count=${events}`);
      const before = await stage.receiver.number('/count');
      await eventually('the burst has begun', async () => (await stage.receiver.number('/count')) > before);
      const isOver = async (): Promise<boolean> => (await stage.receiver.number('/count')) >= events;
      while (!(await isOver())) lone.push(await loneChange(stage, other, wallets));
      const eventLoopMs = await stage.longestDelayMs();
      const [shown, came, ours] = await Promise.all([stage.shown(), other.came(), stage.came()]);
      const delays = delaysOf(lone, shown, came);
      const all = lone.length + events;
      const burst = account({ shown, came: [...ours, ...came], from: 0, to: all });
      const found = {
        unloadedMs: delays.slice(0, unloaded),
        loadedMs: delays.slice(unloaded),
        eventLoopMs,
        burst,
      };
      print('alone', found.unloadedMs);
      print(`beside a burst of ${events}`, found.loadedMs);
      return found;
    });
  } finally {
    await other.end();
  }
}

/** Makes a change of the lone wallet and waits for its delivery. Returns its number. */
async function loneChange(stage: Stage, other: Endpoint, wallet: number): Promise<number> {
  const count = await other.number('/count');
  const number = await stage.upstream.number(`/lone?wallet=${walletOf(wallet)}`);
  await eventually('a lone change has come', async () => (await other.number('/count')) > count);
  return number;
}

function delaysOf(
  changes: readonly number[],
  shown: ReadonlyMap<number, number>,
  came: readonly Arrival[],
): number[] {
  const atMs = new Map(came.map(([, arrivedMs, subject]) => [subject, arrivedMs]));
  return changes.map(
    (number) => (atMs.get(subjectOf(number)) ?? Number.NaN) - (shown.get(number) ?? Number.NaN),
  );
}

async function besideSlow({ wallets, seconds, rate }: Size, isBeside: boolean): Promise<number[]> {
  const slow = await Endpoint.start('receiver.ts');
  try {
    await slow.number(`/delay?ms=${SLOW_MS}`);
    return await Stage.use(async (stage) => {
      const all = numbers(wallets);
      const routes: Route[] = [
        { name: 'backend', wallets: all, receiver: webhook(stage.receiver) },
        ...(isBeside ? [{ name: 'slow', wallets: all, receiver: webhook(slow) }] : []),
      ];
      await stage.start({ wallets, requestsPerSecond: BUDGET, routes });
      await stage.polled(2, wallets);
      await stage.pace(rate);
      await wait(1_000 * seconds);
      const to = await stage.pace(0);
      await stage.delivered(to);
      const [shown, came] = await Promise.all([stage.shown(), stage.came()]);
      const { delaysMs } = account({ shown, came, from: 0, to });
      print(isBeside ? 'beside a slow receiver' : 'without it', delaysMs);
      return delaysMs;
    });
  } finally {
    await slow.end();
  }
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at);
}

function print(name: string, delaysMs: readonly number[]): void {
  const [middle, p95] = [median(delaysMs), quantile(delaysMs, 0.95)].map((ms) => ms.toFixed(1));
  const longest = Math.max(...delaysMs).toFixed(1);
  console.log(`${name}: ${delaysMs.length} events, p50 ${middle} ms, p95 ${p95} ms, longest ${longest} ms`);
}

function burstTargets(rounds: readonly Lone[]): Target[] {
  const unloaded = median(rounds.map(({ unloadedMs }) => median(unloadedMs)));
  const beyond = (share: number): number =>
    median(rounds.map(({ unloadedMs, loadedMs }) => quantile(loadedMs, share) - median(unloadedMs)));
  return [
    { what: 'lone change, alone: ms from answer to receiver, p50', found: unloaded },
    { what: 'lone change beside a burst: ms beyond that, p50', found: beyond(0.5) },
    {
      what: 'lone change beside a burst: ms beyond that, longest',
      found: beyond(1),
      most: MOST.beyondUnloadedMs,
    },
    {
      what: 'burst: ms of the longest delay of the event loop',
      found: median(rounds.map(({ eventLoopMs }) => eventLoopMs)),
      most: MOST.eventLoopMs,
    },
    ...exactness(
      'burst and lone changes',
      rounds.map(({ burst }) => burst),
    ),
  ];
}

function slowTargets(
  alone: readonly (readonly number[])[],
  beside: readonly (readonly number[])[],
): Target[] {
  const p95 = (rounds: readonly (readonly number[])[]): number =>
    median(rounds.map((delaysMs) => quantile(delaysMs, 0.95)));
  return [
    {
      what: 'beside a slow receiver: p95 over that without it',
      found: p95(beside),
      baseline: p95(alone),
      isRatio: true,
      most: MOST.slowRatio,
    },
  ];
}
