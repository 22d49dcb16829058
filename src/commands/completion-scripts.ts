/** The shells for which there is a script. */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;

type Word = { word: string; description: string };

/** What can be typed after a command. `values`: flags that take a value, with the words it can be (null: any, or a file). */
export type Words = {
  path: readonly string[];
  description: string;
  words: readonly Word[];
  values: readonly { flag: string; words: readonly string[] | null }[];
};

/** The script of a shell. It holds all words: nothing is started while somebody types. */
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

/** Words of ours hold letters, digits and hyphens only: they need no quotes. */
function bash(commands: readonly Words[]): string {
  const top = commands.filter(({ path }) => path.length === 1).map(({ path }) => path[0] ?? '');
  const words = commands.map(
    (one) => `    '${one.path.join(' ')}') words='${one.words.map(({ word }) => word).join(' ')}' ;;`,
  );
  const values = commands.flatMap(({ path, values: flags }) =>
    flags.map(({ flag, words: known }) => {
      const then = known === null ? 'files=1' : `words='${known.join(' ')}'`;
      return `    '${path.join(' ')} ${flag}') ${then}; value=1 ;;`;
    }),
  );
  const known = commands.map(({ path }) => `'${path.join(' ')}'`).join(' | ');
  return `# Completion of intentwatch. To have it: source <(intentwatch completion bash)
_intentwatch() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}"
  local path='' words='${top.join(' ')} --help --version' files='' value='' at
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "\${path:+$path }\${COMP_WORDS[at]}" in
    ${known}) path="\${path:+$path }\${COMP_WORDS[at]}" ;;
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
