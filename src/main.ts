import { Command } from 'commander';
import { COMMANDS, loadCommands } from './commands/commands.ts';
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
    `\nExit codes: ${EXIT.done} done, ${EXIT.failed} failed, ${EXIT.tryAgain} try again, ${EXIT.badConfig} bad config, ${EXIT.interrupted} interrupted twice; of verify also ${EXIT.usage}, ${EXIT.badInput} and ${EXIT.unforeseen} (verify --help).`,
  );

// A program that reads the output may end first, as `head` does.
process.stdout.on('error', (error: Error) => {
  process.exit('code' in error && error.code === 'EPIPE' ? EXIT.done : EXIT.failed);
});
try {
  const [, , name = ''] = process.argv;
  const called = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  const isVersion = name === '--version' || name === '-V';
  const loaded = called !== undefined ? [await called.load()] : isVersion ? [] : await loadCommands();
  for (const command of loaded) program.addCommand(command);
  await program.parseAsync();
} catch (error) {
  process.exitCode = reportFailure(error);
}
