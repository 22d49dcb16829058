import { Command } from 'commander';
import { COMMANDS, loadCommands } from './commands/commands.ts';
import { keepHeapSmall } from './daemon/heap.ts';
import { EXIT, reportFailure } from './exit.ts';
import { VERSION } from './version.ts';

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
