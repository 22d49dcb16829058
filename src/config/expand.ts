/** The text of a scalar after expansion, the variables it came from with their values, and what is wrong with them. */
export type Expansion = { text: string; variables: string[]; outside: string[]; problems: string[] };

const REFERENCE = /\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\})?/g;

/**
 * Replaces `${VAR}` and `${VAR:-default}` by the environment's values; `$${` stands for a literal `${`. A default is
 * taken when the variable is unset or empty. Values are taken as they are: what looks like a variable inside a value is
 * not expanded again. A problem names the variable and never its value.
 */
export function expandVariables(text: string, env: NodeJS.ProcessEnv): Expansion {
  const variables: string[] = [];
  const outside: string[] = [];
  const problems: string[] = [];
  const expanded = text.replaceAll(REFERENCE, (found, name?: string, fallback?: string) => {
    if (found === '$${') return '${';
    if (name === undefined) {
      problems.push(
        'found "${" that begins no variable, expected ${NAME}, ${NAME:-default}, or $${ for a literal "${"',
      );
      return '';
    }
    if (!variables.includes(name)) variables.push(name);
    const value = env[name];
    if (value !== undefined) outside.push(value);
    if (fallback !== undefined) return value === undefined || value === '' ? fallback : value;
    if (value === undefined) {
      problems.push(
        `found \${${name}}, which is not set, expected it in the environment or with a default: \${${name}:-…}`,
      );
    }
    return value ?? '';
  });
  return { text: expanded, variables, outside, problems };
}

/**
 * Hides the braces of `${…}` from the YAML parser, which would take them for a mapping inside `{ … }` and `[ … ]`. The
 * text keeps its length, so positions stay true; `unmask` undoes it in each scalar.
 */
export function maskVariables(text: string): { masked: string; unmask(part: string): string } {
  const [open, close] = unusedCharacters(text);
  return {
    masked: text.replaceAll(/\$\{([^{}\n]*)\}/g, (_, inside: string) => `$${open}${inside}${close}`),
    unmask: (part) => part.replaceAll(open, '{').replaceAll(close, '}'),
  };
}

/** Two characters of the private use area that the text does not hold. */
function unusedCharacters(text: string): [string, string] {
  const used = new Set(text);
  const free: string[] = [];
  for (let code = 0xe000; free.length < 2; code += 1) {
    const character = String.fromCodePoint(code);
    if (!used.has(character)) free.push(character);
  }
  const [open = '', close = ''] = free;
  return [open, close];
}
