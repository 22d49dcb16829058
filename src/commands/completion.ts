import { Argument, Command } from 'commander';
import { completionScript, SHELLS, type Words } from './completion-scripts.ts';
import { say } from './daemon.ts';

/** `completion`: prints a script that has a shell complete commands and flags. `load` gives all of them. */
export function completionCommand(load: () => Promise<Command[]>): Command {
  return new Command('completion')
    .description('Print a script that has the shell complete commands and flags.')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .action(async (shell: (typeof SHELLS)[number]) => {
      const loaded = await load();
      say(
        completionScript(
          shell,
          loaded.flatMap((command) => wordsOf(command, [])),
        ),
      );
    });
}

/** What can follow a command, and each of its own commands. */
function wordsOf(command: Command, before: readonly string[]): Words[] {
  const path = [...before, command.name()];
  const flags = command.options.filter(({ hidden }) => !hidden);
  const choices = command.registeredArguments[0]?.argChoices ?? [];
  const own = {
    path,
    description: command.description(),
    words: [
      ...command.commands.map((one) => ({ word: one.name(), description: one.description() })),
      ...choices.map((word) => ({ word, description: '' })),
      ...flags.flatMap(({ long, description }) => (long == null ? [] : [{ word: long, description }])),
      { word: '--help', description: 'display help for command' },
    ],
    values: flags.flatMap(({ long, argChoices, required, optional }) =>
      long == null || !(required || optional) ? [] : [{ flag: long, words: argChoices ?? null }],
    ),
  };
  return [own, ...command.commands.flatMap((one) => wordsOf(one, path))];
}
