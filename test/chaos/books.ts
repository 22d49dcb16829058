import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { Command } from 'commander';
import { EXIT } from '../../src/exit.ts';
import { PARTS } from '../support/optional-parts.ts';
import { booksRun } from './books-run.ts';

// Two daemons on one Redis store the books in a Postgres while their environment fails at random times, with midnight in the
// middle: faketime sets the clock of every program. At the end the books of both days are compared with the transfers that the
// sandbox made. Exits with 0 only if they balance and agree to the last unit, and name every exception.

const DAY_MS = 86_400_000;
const LONGEST_START_SECONDS = 120;
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

type Options = { seconds: number; starting: number; seed: number };

await new Command('books')
  .description(
    'Disturb two daemons around a midnight, and hold the books of both days against what was made.',
  )
  .option('--seconds <number>', 'how long to disturb, one half on each day', Number, 60)
  .option('--starting <number>', 'how many seconds everything may take to start, at first', Number, 30)
  .option('--seed <number>', 'decides what the upstream does and what is done to whom', Number, 1)
  .action(async (options: Options) => {
    if (process.env.FAKETIME === undefined) await runAtMidnight(options);
    else await run(options);
  })
  .parseAsync();

/**
 * Runs this program again with a clock on which midnight (UTC) falls into the disturbed time; once more with a later midnight
 * where the start took too long.
 */
async function runAtMidnight({ seconds, starting }: Options): Promise<void> {
  const bender = PARTS.faketime.place;
  if (bender === null) {
    writeLine('found no faketime, expected it: apt-get install faketime');
    process.exitCode = EXIT.failed;
    return;
  }
  for (let startingSeconds = starting; ; startingSeconds *= 2) {
    const offsetMs = DAY_MS - (Date.now() % DAY_MS) - (seconds / 2 + startingSeconds) * 1_000;
    const env = {
      ...process.env,
      // Redis brings an allocator that requests the time before the library can answer: the C library's comes first.
      LD_PRELOAD: [bender, ...globSync('/lib/*/libc.so.6')].join(':'),
      FAKETIME: `+${Math.round(offsetMs / 1_000)}s`,
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    };
    process.exitCode = await again(env);
    if (process.exitCode !== EXIT.tryAgain || startingSeconds > LONGEST_START_SECONDS) return;
  }
}

async function again(env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(process.execPath, process.argv.slice(1), { env, stdio: 'inherit' });
  const pass = (signal: NodeJS.Signals): void => void child.kill(signal);
  for (const signal of SIGNALS) process.on(signal, pass);
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  for (const signal of SIGNALS) process.off(signal, pass);
  return code ?? EXIT.failed;
}

async function run({ seconds, seed }: Options): Promise<void> {
  const closers: (() => Promise<unknown>)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  for (const signal of SIGNALS) {
    process.once(signal, () => void closeAll().finally(() => process.exit(EXIT.interrupted)));
  }
  try {
    const outcome = await booksRun({ seconds, seed, writeLine, later: (close) => void closers.push(close) });
    process.exitCode = { right: EXIT.done, wrong: EXIT.failed, late: EXIT.tryAgain }[outcome];
  } finally {
    await closeAll();
  }
}

function writeLine(line: string): void {
  process.stdout.write(`${line}\n`);
}
