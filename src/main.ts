import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { Command } from 'commander';
import { COMMANDS, loadCommands } from './commands/commands.ts';
import { EXIT, reportFailure } from './exit.ts';
import { VERSION } from './version.ts';

/**
 * Keeps the heap close to what lives in it. V8 lets garbage pile up to several times that on a machine with much memory: a
 * daemon that needs 70 MB held 280. What is old is collected once it has grown by so many percent. What is young has little
 * space while the program starts, which leaves much garbage once; then as much as its load needs, up to a bound: with too
 * little, a third of the processor's time under load goes into collecting it. All are flags of V8 that count from when they
 * are set.
 */
export function keepHeapSmall(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWING_PERCENT}`);
  setYoungGrowth(1);
  setTimeout(letYoungGrow, STARTED_MS).unref();
}

const GROWING_PERCENT = 25;
const STARTED_MS = 5_000;

/** Both halves of the young space together; it doubles from one size to the next. */
const MOST_YOUNG_BYTES = 32 * 2 ** 20;
const LOOK_EVERY_MS = 250;

function letYoungGrow(): void {
  setYoungGrowth(2);
  const timer = setInterval(() => {
    const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
    if ((young?.space_size ?? 0) < MOST_YOUNG_BYTES) return;
    setYoungGrowth(1);
    clearInterval(timer);
  }, LOOK_EVERY_MS);
  timer.unref();
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

// Whoever reads the output may have had enough: `| head`.
process.stdout.on('error', (error: Error) => {
  process.exit('code' in error && error.code === 'EPIPE' ? EXIT.done : EXIT.failed);
});
try {
  const [, , name = ''] = process.argv;
  const called = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  // It costs a command that ends at once a tenth of its time.
  if (called?.staysResident) keepHeapSmall();
  const loaded = called === undefined ? await loadCommands() : [await called.load()];
  for (const command of loaded) program.addCommand(command);
  await program.parseAsync();
} catch (error) {
  process.exitCode = reportFailure(error);
}
