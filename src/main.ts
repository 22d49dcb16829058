import { Command } from 'commander';
import { keepHeapSmall } from './daemon/heap.ts';
import { EXIT, reportFailure } from './exit.ts';
import { VERSION } from './version.ts';

/** Every command by its name. One is loaded when it is called: the daemon has no use for the sandbox. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import('./commands/start.ts')).startCommand(),
  check: async () => (await import('./commands/check.ts')).checkCommand(),
  demo: async () => (await import('./commands/demo.ts')).demoCommand(),
  sandbox: async () => (await import('./commands/sandbox.ts')).sandboxCommand(),
  keygen: async () => (await import('./commands/keygen.ts')).keygenCommand(),
  receivers: async () => (await import('./commands/receivers.ts')).receiversCommand(),
  'dead-letters': async () => (await import('./commands/dead-letters.ts')).deadLettersCommand(),
  replay: async () => (await import('./commands/replay.ts')).replayCommand(),
  'set-aside': async () => (await import('./commands/set-aside.ts')).setAsideCommand(),
  test: async () => (await import('./commands/test.ts')).testCommand(),
  learned: async () => (await import('./commands/learned.ts')).learnedCommand(),
  status: async () => (await import('./commands/status.ts')).statusCommand(),
  quote: async () => (await import('./commands/quote.ts')).quoteCommand(),
  'verify-quote': async () => (await import('./commands/verify-quote.ts')).verifyQuoteCommand(),
};

const program = new Command('intentwatch')
  .description(
    'Watches cross-chain stablecoin transfers and turns every change into a signed webhook, an e-mail and metrics.',
  )
  .version(VERSION)
  .showHelpAfterError()
  .addHelpText(
    'after',
    `\nExit codes: ${EXIT.done} done, ${EXIT.badConfig} bad config, ${EXIT.tryAgain} try again, ${EXIT.interrupted} interrupted twice, ${EXIT.failed} anything else.`,
  );

keepHeapSmall();
try {
  const [, , name = ''] = process.argv;
  const called = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  const loaded = await Promise.all(
    (called === undefined ? Object.values(COMMANDS) : [called]).map((load) => load()),
  );
  for (const command of loaded) program.addCommand(command);
  await program.parseAsync();
} catch (error) {
  process.exitCode = reportFailure(error);
}
