import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { Command } from 'commander';
import { COMMANDS, loadCommands } from './commands/commands.ts';
import { EXIT, reportFailure } from './exit.ts';
import { VERSION } from './version.ts';

/**
 * Limits the heap to little more than its live objects. On a machine with much memory V8 collects garbage late: a daemon with
 * 70 MB of live objects used 280 MB. V8 collects the old space after it has grown by `GROWING_PERCENT`. The young space is small
 * during the start, which makes much garbage. Later it grows with the load, up to `MOST_YOUNG_BYTES`: under load, a small young
 * space costs a third of the CPU time. These flags of V8 take effect when they are set.
 */
export function limitHeap(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWING_PERCENT}`);
  setYoungGrowth(1);
  setTimeout(letYoungGrow, STARTED_MS).unref();
}

const GROWING_PERCENT = 25;
const STARTED_MS = 5_000;

/** Both halves of the young space together. Each growth doubles it. */
const MOST_YOUNG_BYTES = 32 * 2 ** 20;

/** It grows only where it is collected. A timer would wake an idle process. */
function letYoungGrow(): void {
  setYoungGrowth(2);
  const collections = new PerformanceObserver(() => {
    const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
    if ((young?.space_size ?? 0) < MOST_YOUNG_BYTES) return;
    setYoungGrowth(1);
    collections.disconnect();
  });
  collections.observe({ entryTypes: ['gc'] });
}

function setYoungGrowth(factor: number): void {
  setFlagsFromString(`--semi-space-growth-factor=${factor}`);
}

const program = new Command('intentwatch')
  .description(
    'Watches cross-chain stablecoin transfers and turns every change into a signed webhook, an e-mail and metrics.',
  )
  .version(VERSION)
  .showHelpAfterError('intentwatch --help lists the commands, intentwatch COMMAND --help what one takes.')
  .addHelpText(
    'after',
    `\nExit codes: ${EXIT.done} done, ${EXIT.badConfig} bad config, ${EXIT.tryAgain} try again, ${EXIT.interrupted} interrupted twice, ${EXIT.failed} anything else.`,
  );

// A program that reads the output may end first, as `head` does.
process.stdout.on('error', (error: Error) => {
  process.exit('code' in error && error.code === 'EPIPE' ? EXIT.done : EXIT.failed);
});
try {
  const [, , name = ''] = process.argv;
  const called = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  // For every command: V8 reuses compiled code only under the flags with which it was made.
  limitHeap();
  const isVersion = name === '--version' || name === '-V';
  const loaded = called !== undefined ? [await called.load()] : isVersion ? [] : await loadCommands();
  for (const command of loaded) program.addCommand(command);
  await program.parseAsync();
} catch (error) {
  process.exitCode = reportFailure(error);
}
