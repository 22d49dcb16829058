#!/usr/bin/env node
import { Command } from 'commander';
import { checkCommand } from './commands/check.ts';
import { deadLettersCommand } from './commands/dead-letters.ts';
import { demoCommand } from './commands/demo.ts';
import { EXIT, reportFailure } from './commands/exit.ts';
import { keygenCommand } from './commands/keygen.ts';
import { learnedCommand } from './commands/learned.ts';
import { quoteCommand } from './commands/quote.ts';
import { receiversCommand } from './commands/receivers.ts';
import { replayCommand } from './commands/replay.ts';
import { sandboxCommand } from './commands/sandbox.ts';
import { setAsideCommand } from './commands/set-aside.ts';
import { startCommand } from './commands/start.ts';
import { statusCommand } from './commands/status.ts';
import { testCommand } from './commands/test.ts';
import { verifyQuoteCommand } from './commands/verify-quote.ts';
import { VERSION } from './version.ts';

const program = new Command('intentwatch')
  .description(
    'Watches cross-chain stablecoin transfers and turns every change into a signed webhook, an e-mail and metrics.',
  )
  .version(VERSION)
  .addCommand(startCommand())
  .addCommand(checkCommand())
  .addCommand(demoCommand())
  .addCommand(sandboxCommand())
  .addCommand(keygenCommand())
  .addCommand(receiversCommand())
  .addCommand(deadLettersCommand())
  .addCommand(replayCommand())
  .addCommand(setAsideCommand())
  .addCommand(testCommand())
  .addCommand(learnedCommand())
  .addCommand(statusCommand())
  .addCommand(quoteCommand())
  .addCommand(verifyQuoteCommand())
  .showHelpAfterError()
  .addHelpText(
    'after',
    `\nExit codes: ${EXIT.done} done, ${EXIT.badConfig} bad config, ${EXIT.tryAgain} try again, ${EXIT.interrupted} interrupted twice, ${EXIT.failed} anything else.`,
  );

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = reportFailure(error);
}
