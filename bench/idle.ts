import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Program } from '../test/support/program.ts';
import { COUNT, inTurns, SIDE_OPTIONS } from './deliveries/sides.ts';
import { type Cpu, redisCpuMsOf, Stage } from './deliveries/stage.ts';
import { median, printTargets } from './detection/targets.ts';
import { cpuMsOf } from './polls/cpu.ts';

const OPTIONS = {
  ...SIDE_OPTIONS,
  seconds: { type: 'string', default: '40' },
  // V8 compiles what polls run in their first two minutes.
  'settle-seconds': { type: 'string', default: '120' },
} as const;

type Size = { seconds: number; settleSeconds: number };

/**
 * Measures the share of a core that a daemon uses which polls one wallet without changes, with default settings. The baseline
 * is a process with a worker of BullMQ that waits for work.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const size = {
    seconds: COUNT.parse(values.seconds),
    settleSeconds: Number(values['settle-seconds']),
  };
  const { daemon, bare } = await inTurns(
    values,
    { daemon: () => measure(size), bare: () => measureBare(size) },
    (name, { processMs, redisMs }) =>
      console.log(`${name}: ${processMs.toFixed(2)} % of a core, Redis ${redisMs.toFixed(2)} %`),
  );
  const share = (found: readonly Cpu[], kind: keyof Cpu): number => median(found.map((one) => one[kind]));
  console.log('');
  return printTargets([
    {
      what: 'idle CPU of the process, % of a core',
      found: share(daemon, 'processMs'),
      most: 1,
      goal: 0.5,
      baseline: share(bare, 'processMs'),
    },
    {
      what: 'idle CPU of Redis, % of a core',
      found: share(daemon, 'redisMs'),
      baseline: share(bare, 'redisMs'),
    },
  ])
    ? 0
    : 1;
}

async function measure(size: Size): Promise<Cpu> {
  return Stage.use(async (stage) => {
    await stage.start({ wallets: 1, requestsPerSecond: null });
    await stage.polled(1, 1);
    return percent(() => stage.cpu(), size);
  });
}

async function measureBare(size: Size): Promise<Cpu> {
  return Stage.use(async ({ redis, redisUrl, receiver }) => {
    const program = await Program.start(join(import.meta.dirname, 'idle/bare.ts'), [
      ...[`--redis=${redisUrl}`, `--receiver=${receiver.url}`],
    ]);
    try {
      await program.line(/waiting/);
      const cpu = async (): Promise<Cpu> => ({
        processMs: await cpuMsOf(program.pid),
        redisMs: await redisCpuMsOf(redis),
      });
      return await percent(cpu, size);
    } finally {
      await program.end('SIGKILL');
    }
  });
}

/** Shares of a core, in percent, after a time in which a start settles. */
async function percent(cpu: () => Promise<Cpu>, { seconds, settleSeconds }: Size): Promise<Cpu> {
  await wait(1_000 * settleSeconds);
  const before = await cpu();
  await wait(1_000 * seconds);
  const after = await cpu();
  const share = (kind: keyof Cpu): number => (100 * (after[kind] - before[kind])) / (1_000 * seconds);
  return { processMs: share('processMs'), redisMs: share('redisMs') };
}
