import { integer, randomStream } from '../../sandbox/world/random.ts';

/** One line of a file, and the line in its place. `line` counts from 1. */
export type Mutant = { file: string; line: number; before: string; after: string };

/** Ways to break a line: a pattern, and its replacement. Each changes what the line does, and none its syntax. */
const CHANGES: Readonly<Record<'ts' | 'lua', readonly (readonly [RegExp, string])[]>> = {
  ts: [
    [/ === /, ' !== '],
    [/ !== /, ' === '],
    [/ && /, ' || '],
    [/ \|\| /, ' && '],
    [/ < /, ' >= '],
    [/ > /, ' <= '],
    [/ <= /, ' < '],
    [/ >= /, ' > '],
    [/ \+ (?!['"`])/, ' - '],
    [/ - /, ' + '],
    [/ \* /, ' / '],
    [/\btrue\b/, 'false'],
    [/\bfalse\b/, 'true'],
    [/\bMath\.max\(/, 'Math.min('],
    [/\bMath\.min\(/, 'Math.max('],
    [/\breturn null;/, 'return undefined as never;'],
    [/\bif \(/, 'if (false && '],
    [/^(\s*)(?:await )?[a-zA-Z_.#]+(?:\?\.)?\([^()]*\);$/, '$1;'],
    [/\.filter\(([^()]*|\([^()]*\)[^()]*)\)/, '.slice()'],
  ],
  lua: [
    [/ == /, ' ~= '],
    [/ ~= /, ' == '],
    [/ and /, ' or '],
    [/ or /, ' and '],
    [/ < /, ' >= '],
    [/ > /, ' <= '],
    [/ <= /, ' < '],
    [/ >= /, ' > '],
    [/ \+ /, ' - '],
    [/ - (?!-)/, ' + '],
    [/\btrue\b/, 'false'],
    [/\bfalse\b/, 'true'],
    [/\bif /, 'if false and '],
    [/\bif not /, 'if '],
    [/^(\s*)redis\.call\([^()]*\)$/, '$1'],
  ],
};

/** A line of code: not a comment, an import or a type. */
function isCode(line: string): boolean {
  return !/^\s*(?:\/\/|\/?\*|--|import |export type |type |export \* |export \{|[a-zA-Z]+\??: [^=]*;$)/.test(
    line,
  );
}

/** Every way to break one line of a text. */
export function mutantsOf(file: string, text: string): Mutant[] {
  const changes = CHANGES[file.endsWith('.lua') ? 'lua' : 'ts'];
  // The header of a script is one comment of many lines.
  const code = text.replace(/^--\[\[.*?^\]\]/ms, (header) => header.replace(/[^\n]/g, ''));
  return code.split('\n').flatMap((before, index) => {
    if (!isCode(before)) return [];
    const [statement = ''] = before.split(/ (?:\/\/|--) /, 1);
    return changes
      .map(([pattern, by]) => statement.replace(pattern, by) + before.slice(statement.length))
      .filter((after) => after !== before)
      .map((after) => ({ file, line: index + 1, before, after }));
  });
}

/** Draws mutants by a seed: at most one of a line, each line as likely as another. */
export function drawMutants(all: readonly Mutant[], seed: number, count: number): Mutant[] {
  const random = randomStream('mutants', seed);
  const lines = Object.values(Object.groupBy(all, ({ file, line }) => `${file}:${line}`));
  const drawn: Mutant[] = [];
  while (drawn.length < count && lines.length > 0) {
    const [ways = []] = lines.splice(integer(random, lines.length), 1);
    const mutant = ways?.[integer(random, ways.length)];
    if (mutant !== undefined) drawn.push(mutant);
  }
  return drawn;
}
