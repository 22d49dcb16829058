import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { LIMITS } from '../../domain/limits.ts';
import { codeOf } from '../../errors.ts';
import { decoded } from '../fields/http.ts';
import { type ConfigPath, renderPath } from './errors.ts';

const HIDDEN = '…';

/** Shorter secrets occur in harmless texts: a port, a name of three letters. Only their place hides them. */
const SHORTEST_SECRET = 6;

/**
 * Spellings of secrets. No form begins with a repeated part that matches again at each of its characters: that would be
 * quadratic.
 */
const SECRET_FORMS: readonly RegExp[] = [
  /[a-z0-9+.-]:\/\/[^\s/?#]*@/i,
  /hooks\.slack\.com\/|discord(app)?\.com\/api\/webhooks\//i,
  /(^|[^a-z0-9])wh(sec|sk)_/i,
  /(^|[^a-z0-9])(sk|pk|rk|ghp|gho|ghs|glpat|npm|xox[a-z])[-_]\w/i,
  /(^|[^a-z0-9])(bearer|basic|digest)[\s:=]+\S/i,
  /(password|passwd|secret|api[-_]?key|token)["']?\s*[:=]\s*\S/i,
  /(^|[^A-Za-z0-9])(AKIA[A-Z0-9]{12}|eyJ[\w-]{8})/,
  /-----BEGIN /,
];

const SECRET_NAME = /(key|token|secret|sig|signature|password|auth|code)$/i;
const LONGEST_NAME = 'signature'.length;

/** True when a text is a secret by its form. Takes time linear in its length. */
export function isWrittenAsSecret(text: string): boolean {
  return SECRET_FORMS.some((form) => form.test(text)) || holdsLogin(text) || holdsSecretQuery(text);
}

function holdsLogin(text: string): boolean {
  return text.split(/\s/).some((word) => {
    const parts = word.split('@');
    return parts.some((part, index) => (parts[index + 1] ?? '') !== '' && /[^:]:./.test(part));
  });
}

function holdsSecretQuery(text: string): boolean {
  return text.matchAll(/(?<=^|[=&\s])([^=&\s]*)=/g).some(({ index, 1: name = '' }) => {
    const isInQuery = text[index - 1] === '&' || /[?;]/.test(name);
    return isInQuery && SECRET_NAME.test(name.slice(-LONGEST_NAME));
  });
}

/** Decides which parts of a config file a message may show. */
export type Hiding = {
  hides(text: string): boolean;
  /** The text without the secrets that are known by their value. */
  mask(text: string): string;
  renderPath(path: ConfigPath): string;
};

/** `secrets`: values that must not be shown, from outside the file or from the place of a secret. */
export function createHiding(secrets: Iterable<string>): Hiding {
  const texts = [...new Set([...secrets].flatMap(fragmentsOf))].filter(
    (text) => text.length >= SHORTEST_SECRET,
  );
  // The longest first, so that the rest of one never shows.
  texts.sort((a, b) => b.length - a.length);
  const hides = (text: string): boolean =>
    texts.some((secret) => text.includes(secret)) || isWrittenAsSecret(text);
  return {
    hides,
    mask: (text) => texts.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text),
    renderPath: (path) =>
      renderPath(path.map((key) => (typeof key === 'string' && hides(key) ? HIDDEN : key))),
  };
}

/** A secret, as it is and on one line, and the password of a URL. */
function fragmentsOf(secret: string): string[] {
  const url = secret.includes('://') ? URL.parse(secret) : null;
  const user =
    url === null ? [] : [url.username, url.password].flatMap((part) => [part, decoded(part) ?? '']);
  return [secret, secret.trim(), JSON.stringify(secret).slice(1, -1), ...user];
}

/** Text of a scalar after expansion, the variables and files that it used, their values, and problems with them. */
type Expansion = { text: string; variables: string[]; outside: string[]; problems: string[] };

/** Location of a config's files: paths are relative to `folder`. `onFile` is notified of each file. */
export type FilePlace = { folder: string; onFile?: (path: string) => void };

/** Source of values from outside the config. */
export type Outside = FilePlace & { env: NodeJS.ProcessEnv };

const REFERENCE = /\$\$\{|\$\{(?:file:([^{}]+)\}|([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\})?/g;

/**
 * Replaces `${VAR}` and `${VAR:-default}` by the environment's values, and `${file:PATH}` by the content of the file, without
 * the line break at its end; `$${` is a literal `${`. A default is used when the variable is unset or empty. Values are not
 * expanded again, whatever they contain. A problem names the variable or the file and never its value.
 */
export function expandVariables(text: string, { env, folder, onFile }: Outside): Expansion {
  if (!text.includes('$')) return { text, variables: [], outside: [], problems: [] };
  const variables: string[] = [];
  const outside: string[] = [];
  const problems: string[] = [];
  const note = (name: string): void => {
    if (!variables.includes(name)) variables.push(name);
  };
  const expanded = text.replaceAll(
    REFERENCE,
    (found, path: string | undefined, name: string | undefined, fallback: string | undefined) => {
      if (found === '$${') return '${';
      if (path !== undefined) {
        const shown = isWrittenAsSecret(path) ? 'file:…' : `file:${path}`;
        note(shown);
        const file = resolve(folder, path);
        onFile?.(file);
        const read = readSecretFile(file);
        if ('problem' in read) {
          problems.push(`found \${${shown}}, ${read.problem}, expected a file that holds the value`);
          return '';
        }
        outside.push(read.value);
        return read.value;
      }
      if (name === undefined) {
        problems.push(
          'found "${" that begins no variable, expected ${NAME}, ${NAME:-default}, ${file:PATH}, or $${ for a literal "${"',
        );
        return '';
      }
      const shownName = isShownAsName(name) ? name : '…';
      note(shownName);
      const value = env[name];
      if (value !== undefined && Buffer.byteLength(value) > LIMITS.environment.bytes) {
        problems.push(
          `found \${${shownName}}, which is longer than ${LIMITS.environment.bytes} bytes, expected a shorter value`,
        );
        return '';
      }
      if (value !== undefined) outside.push(value);
      if (fallback !== undefined) return value === undefined || value === '' ? fallback : value;
      if (value === undefined) {
        problems.push(
          `found \${${shownName}}, which is not set, expected it in the environment or with a default: \${${shownName}:-…}`,
        );
      }
      return value ?? '';
    },
  );
  return { text: expanded, variables, outside, problems };
}

/** A longer name in lower or mixed case that contains a digit may be a token written between the braces. */
const LONGEST_MIXED_NAME = 20;

/** Distinguishes a variable's name from a secret written between the braces: `${whsk_…}`. */
function isShownAsName(name: string): boolean {
  // `NPM_TOKEN` would be a secret by its form. Apart from AWS keys, no token consists of capitals and underscores alone.
  if (/^[A-Z_][A-Z0-9_]{0,63}$/.test(name)) return !name.includes('AKIA');
  if (isWrittenAsSecret(name)) return false;
  return name.length <= LONGEST_MIXED_NAME || (name.length <= 64 && !/\d/.test(name));
}

function readSecretFile(path: string): { value: string } | { problem: string } {
  let bytes: Buffer;
  try {
    const { size } = statFile(path);
    if (size > LIMITS.secretFile.bytes)
      return { problem: `which is larger than ${LIMITS.secretFile.bytes} bytes` };
    bytes = readFileSync(path);
  } catch (error) {
    const code = codeOf(error) ?? 'no file';
    return { problem: code === 'ENOENT' ? 'which does not exist' : `which cannot be read (${code})` };
  }
  try {
    const value = new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '');
    return value === '' ? { problem: 'which is empty' } : { value };
  } catch {
    return { problem: 'which is no text in UTF-8' };
  }
}

/** A pipe or a device could block the reader for ever. */
function statFile(path: string): { size: number } {
  const stat = statSync(path);
  if (!stat.isFile()) throw new Error('neither a file nor a link to one');
  return stat;
}

/**
 * Hides the braces of `${…}` from the YAML parser, which would read them as a mapping inside `{ … }` and `[ … ]`. The text
 * has the same length, so positions stay true; `unmask` undoes it in each scalar.
 */
export function maskVariables(text: string): { masked: string; unmask(part: string): string } {
  const [open, close] = unusedCharacters(text);
  return {
    masked: text.replaceAll(/\$\{([^{}\n]*)\}/g, (_, inside: string) => `$${open}${inside}${close}`),
    unmask: (part) => (part.includes(open) ? part.replaceAll(open, '{').replaceAll(close, '}') : part),
  };
}

/** Two characters of the private use area that the text does not contain. */
function unusedCharacters(text: string): [string, string] {
  const free: string[] = [];
  for (let code = 0xe000; free.length < 2; code += 1) {
    const character = String.fromCodePoint(code);
    if (!text.includes(character)) free.push(character);
  }
  const [open = '', close = ''] = free;
  return [open, close];
}
