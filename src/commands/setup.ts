import { randomBytes } from 'node:crypto';
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { formatHmacSecret, formatKeyPair } from '../config/fields/signing-secret.ts';
import { DEFAULT_TABLE, TABLE_NAME } from '../config/sections/postgres-receiver.ts';
import { tableDefinition } from '../notifiers/postgres/table.ts';
import { writeLine } from './daemon.ts';

const KEY_BYTES = 32;

const VARIABLE = 'WEBHOOK_SECRET';

const CONFIG_LINE = `# In the config: secrets: ["\${${VARIABLE}}"]`;

/** `keygen`: makes a secret for a webhook receiver and prints its place in the config. */
export function keygenCommand(): Command {
  return new Command('keygen')
    .description('Make a signing secret for a webhook receiver.')
    .addOption(
      new Option('--type <type>', 'hmac: one secret for both sides; ed25519: the receiver gets a public key')
        .choices(['hmac', 'ed25519'])
        .default('hmac'),
    )
    .action((options: { type: 'hmac' | 'ed25519' }) => {
      process.stdout.write(`${keygen(options.type).join('\n')}\n`);
    });
}

function keygen(type: 'hmac' | 'ed25519'): string[] {
  const bytes = randomBytes(KEY_BYTES);
  switch (type) {
    case 'hmac':
      return [
        '# For the environment of the daemon, and for whoever verifies its webhooks.',
        CONFIG_LINE,
        `${VARIABLE}=${formatHmacSecret(bytes)}`,
      ];
    case 'ed25519': {
      const { secret, publicKey } = formatKeyPair(bytes);
      return [
        '# For the environment of the daemon. Share it with nobody.',
        CONFIG_LINE,
        `${VARIABLE}=${secret}`,
        '# For whoever verifies its webhooks:',
        publicKey,
      ];
    }
    default:
      return type satisfies never;
  }
}

/** `postgres-table`: prints the SQL for the table of a receiver with `type: postgres`. */
export function postgresTableCommand(): Command {
  return new Command('postgres-table')
    .description('Print the SQL that makes the table of a receiver with `type: postgres`.')
    .option('--table <name>', 'its name, with a schema or without', readName, DEFAULT_TABLE)
    .action(({ table }: { table: string }) => void process.stdout.write(tableDefinition(table)));
}

function readName(text: string): string {
  if (TABLE_NAME.test(text)) return text;
  throw new InvalidArgumentError(
    'expected letters, digits, _ and $, like intentwatch_events or audit.events',
  );
}

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

type Word = { word: string; description: string };

/** Arguments that may follow a command. `values`: flags with a value, and its choices (null: any, or a file). */
export type Words = {
  path: readonly string[];
  description: string;
  words: readonly Word[];
  values: readonly { flag: string; words: readonly string[] | null }[];
};

/** Script of a shell. It holds all arguments: completion starts no process. */
export function completionScript(shell: (typeof SHELLS)[number], commands: readonly Words[]): string {
  switch (shell) {
    case 'bash':
      return bash(commands);
    case 'zsh':
      return `#compdef intentwatch\nautoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`;
    case 'fish':
      return fish(commands);
    default:
      return shell satisfies never;
  }
}

/** Our arguments have letters, digits and hyphens only: they need no quotes. */
function bash(commands: readonly Words[]): string {
  const top = commands.filter(({ path }) => path.length === 1).map(({ path }) => path[0] ?? '');
  const words = commands.map(
    (one) => `    '${one.path.join(' ')}') words='${one.words.map(({ word }) => word).join(' ')}' ;;`,
  );
  const values = commands.flatMap(({ path, values: flags }) =>
    flags.map(({ flag, words: choices }) => {
      const then = choices === null ? 'files=1' : `words='${choices.join(' ')}'`;
      return `    '${path.join(' ')} ${flag}') ${then}; value=1 ;;`;
    }),
  );
  const paths = commands.map(({ path }) => `'${path.join(' ')}'`).join(' | ');
  return `# Completion of intentwatch. To have it: source <(intentwatch completion bash)
_intentwatch() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}"
  local path='' words='${top.join(' ')} --help --version' files='' value='' at
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "\${path:+$path }\${COMP_WORDS[at]}" in
    ${paths}) path="\${path:+$path }\${COMP_WORDS[at]}" ;;
    esac
  done
  case "$path" in
${words.join('\n')}
  esac
  case "$path $prev" in
${values.join('\n')}
  esac
  if [[ -n $files ]]; then
    COMPREPLY=($(compgen -f -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
}
complete -o default -F _intentwatch intentwatch`;
}

function fish(commands: readonly Words[]): string {
  const top = commands.filter(({ path }) => path.length === 1);
  const lines = top.map(
    ({ path: [name = ''], description }) =>
      `complete -c intentwatch -n __fish_use_subcommand -f -a ${name} -d ${quoted(description)}`,
  );
  const below = commands.flatMap(({ path, words, values }) => {
    const seen = path.map((one) => `__fish_seen_subcommand_from ${one}`).join('; and ');
    return words.map(({ word, description }) => {
      const value = values.find(({ flag }) => flag === word);
      const takes =
        value === undefined ? '' : value.words === null ? ' -r' : ` -x -a ${quoted(value.words.join(' '))}`;
      const what = word.startsWith('--') ? `-l ${word.slice(2)}${takes}` : `-f -a ${word}`;
      return `complete -c intentwatch -n ${quoted(seen)} ${what}${description === '' ? '' : ` -d ${quoted(description)}`}`;
    });
  });
  return [
    '# Completion of intentwatch. To have it: intentwatch completion fish | source',
    ...lines,
    ...below,
  ].join('\n');
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

/** `completion`: prints a script with which a shell completes commands and flags. `load` gives all commands. */
export function completionCommand(load: () => Promise<Command[]>): Command {
  return new Command('completion')
    .description('Print a script that has the shell complete commands and flags.')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .action(async (shell: (typeof SHELLS)[number]) => {
      const loaded = await load();
      writeLine(
        completionScript(
          shell,
          loaded.flatMap((command) => wordsOf(command, [])),
        ),
      );
    });
}

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
