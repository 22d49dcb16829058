import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Program } from '../test/support/program.ts';
import { Endpoint } from './deliveries/endpoint.ts';
import { COUNT, inTurns, SIDE_OPTIONS } from './deliveries/sides.ts';
import { Stage } from './deliveries/stage.ts';
import { median, printTargets, type Target } from './detection/targets.ts';
import { cpuMsOf } from './polls/cpu.ts';

const OPTIONS = {
  ...SIDE_OPTIONS,
  seconds: { type: 'string', default: '15' },
  wallets: { type: 'string', default: '120' },
  budget: { type: 'string', default: '80' },
  past: { type: 'string', default: '50' },
  profile: { type: 'string' },
} as const;

/** Rounds over all wallets before polls are measured: their pages were seen, and the time of their next change is learned. */
const FIRST_POLLS = 10;

type Size = { seconds: number; wallets: number; budget: number; past: number; profile: string | null };

/** Cost of a poll: CPU in ms and commands of Redis; the number a second, and the longest delay of the event loop, ms. */
type Poll = { processMs: number; redisMs: number; commands: number; perSecond: number; longestMs: number };

/**
 * Measures the CPU of a poll of a wallet's page of 50 transfers that have not changed. The baseline requests the same pages as
 * often by undici, and parses them by `JSON.parse`.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const size: Size = {
    seconds: COUNT.parse(values.seconds),
    wallets: COUNT.parse(values.wallets),
    budget: COUNT.parse(values.budget),
    past: Number(values.past),
    profile: values.profile ?? null,
  };
  const { daemon, bare } = await inTurns(
    values,
    { daemon: () => measure(size), bare: () => measureBare(size) },
    print,
  );
  console.log('');
  const figure = (kind: keyof Poll, found: readonly Poll[]): number =>
    median(found.map((poll) => poll[kind]));
  const targets: Target[] = [
    {
      what: 'ms of CPU of the process per unchanged poll',
      found: figure('processMs', daemon),
      most: 0.9,
      goal: 0.5,
      baseline: figure('processMs', bare),
    },
    {
      what: 'ms of CPU of Redis per unchanged poll',
      found: figure('redisMs', daemon),
      most: 0.35,
      goal: 0.2,
    },
    { what: 'commands of Redis per unchanged poll', found: figure('commands', daemon) },
    { what: 'share of the budget used', found: figure('perSecond', daemon) / size.budget, least: 0.95 },
    { what: 'ms of the longest delay of the event loop', found: figure('longestMs', daemon) },
  ];
  return printTargets(targets) ? 0 : 1;
}

async function measure({ seconds, wallets, budget, past, profile }: Size): Promise<Poll> {
  return Stage.use(async (stage) => {
    await stage.upstream.number(`/past?each=${past}`);
    await stage.start({ wallets, requestsPerSecond: budget, profile });
    await stage.polled(FIRST_POLLS, wallets);
    await stage.longestDelayMs();
    const sample = async (): Promise<Poll> => {
      const [cpu, commands, polls] = await Promise.all([
        stage.cpu(),
        stage.commands(),
        stage.upstream.number('/requests'),
      ]);
      return { ...cpu, commands, perSecond: polls, longestMs: 0 };
    };
    const before = await sample();
    await wait(1_000 * seconds);
    const after = await sample();
    const polls = after.perSecond - before.perSecond;
    return {
      processMs: (after.processMs - before.processMs) / polls,
      redisMs: (after.redisMs - before.redisMs) / polls,
      commands: (after.commands - before.commands) / polls,
      perSecond: polls / seconds,
      longestMs: await stage.longestDelayMs(),
    };
  });
}

async function measureBare({ seconds, wallets, budget, past }: Size): Promise<Poll> {
  const upstream = await Endpoint.start('upstream.ts');
  await upstream.number(`/past?each=${past}`);
  const program = await Program.start(join(import.meta.dirname, 'polls/bare-requests.ts'), [
    ...[`--upstream=${upstream.url}`, `--wallets=${wallets}`, `--per-second=${budget}`],
  ]);
  try {
    await program.line(/began/);
    await wait(2_000);
    const [polls, cpuMs] = [await upstream.number('/requests'), await cpuMsOf(program.pid)];
    await wait(1_000 * seconds);
    const made = (await upstream.number('/requests')) - polls;
    const processMs = ((await cpuMsOf(program.pid)) - cpuMs) / made;
    return { processMs, redisMs: 0, commands: 0, perSecond: made / seconds, longestMs: 0 };
  } finally {
    await program.end('SIGKILL');
    await upstream.end();
  }
}

function print(name: string, { processMs, redisMs, commands, perSecond, longestMs }: Poll): void {
  const used = `${processMs.toFixed(2)} + ${redisMs.toFixed(2)} ms of CPU, ${commands.toFixed(1)} commands`;
  console.log(`${name}: ${used}, ${perSecond.toFixed(1)}/s, event loop ${longestMs.toFixed(0)} ms at most`);
}
