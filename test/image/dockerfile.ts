/** One instruction of a Dockerfile: its keyword, and the rest of its line with continuations joined. */
export type Instruction = { keyword: string; rest: string };

/** A stage: its base, its name if it has one, and its instructions in order. */
export type ImageStage = { base: string; name: string | null; instructions: Instruction[] };

/** Reads a Dockerfile without heredocs and parser directives. */
export function parseDockerfile(text: string): ImageStage[] {
  const lines = text.split('\n').filter((line) => !/^\s*(#|$)/.test(line));
  const joined = lines.join('\n').replaceAll(/\\\n\s*/g, '');
  const stages: ImageStage[] = [];
  for (const line of joined.split('\n')) {
    const [, keyword = '', rest = ''] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    if (keyword === 'FROM') {
      const [, base = '', name = null] = /^(\S+)(?:\s+AS\s+(\S+))?$/i.exec(rest) ?? [];
      stages.push({ base, name, instructions: [] });
    } else {
      stages.at(-1)?.instructions.push({ keyword, rest });
    }
  }
  return stages;
}

/**
 * Names that a .dockerignore lets into the context: it ignores all (`*`), then includes names (`!name`, at the top). `isLeftOut`
 * tests for names excluded below them (`**` and a name with `*`).
 */
export function parseIgnoreFile(text: string): { names: string[]; isLeftOut: (name: string) => boolean } {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const [first, ...rest] = lines;
  if (first !== '*') throw new Error(`.dockerignore: found ${first} first, expected *`);
  const leftOut = rest.filter((line) => !line.startsWith('!')).map(patternOf);
  return {
    names: rest.filter((line) => line.startsWith('!')).map((line) => line.slice(1)),
    isLeftOut: (name) => leftOut.some((pattern) => pattern.test(name)),
  };
}

function patternOf(line: string): RegExp {
  const [, glob] = /^\*\*\/([^/]+)$/.exec(line) ?? [];
  if (glob === undefined) throw new Error(`.dockerignore: found ${line}, expected **/name`);
  return new RegExp(`^${glob.replaceAll('.', '\\.').replaceAll('*', '.*')}$`);
}
