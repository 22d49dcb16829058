import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { LIMITS } from '../../domain/limits.ts';
import { decoded } from '../fields/http.ts';
import { type ConfigPath, renderPath } from './errors.ts';

/** What a message shows in the place of a secret. */
const HIDDEN = '…';

/** Shorter ones stand in innocent words: a port, a name of three letters. They are hidden by their place alone. */
const SHORTEST_KNOWN = 6;

/**
 * How secrets are written, wherever they stand. No form begins with a part that repeats and may be found again at each
 * character of itself: a long text would take quadratic time.
 */
const SECRET_FORMS: readonly RegExp[] = [
  // A user and password in a URL.
  /[a-z0-9+.-]:\/\/[^\s/?#]*@/i,
  // A token in the path of a chat's webhook.
  /hooks\.slack\.com\/|discord(app)?\.com\/api\/webhooks\//i,
  /(^|[^a-z0-9])wh(sec|sk)_/i,
  /(^|[^a-z0-9])(sk|pk|rk|ghp|gho|ghs|glpat|npm|xox[a-z])[-_]\w/i,
  /(^|[^a-z0-9])(bearer|basic|digest)[\s:=]+\S/i,
  /(password|passwd|secret|api[-_]?key|token)["']?\s*[:=]\s*\S/i,
  /(^|[^A-Za-z0-9])(AKIA[A-Z0-9]{12}|eyJ[\w-]{8})/,
  /-----BEGIN /,
];

/** How the name of a secret ends in a query, and the longest of these endings. */
const SECRET_NAME = /(key|token|secret|sig|signature|password|auth|code)$/i;
const LONGEST_NAME = 'signature'.length;

/** True when a text is a secret by its form. Takes time linear in its length. */
export function isWrittenAsSecret(text: string): boolean {
  return SECRET_FORMS.some((form) => form.test(text)) || holdsLogin(text) || holdsSecretQuery(text);
}

/** True when a text holds `user:password@host`. */
function holdsLogin(text: string): boolean {
  return text.split(/\s/).some((word) => {
    const parts = word.split('@');
    return parts.some((part, index) => (parts[index + 1] ?? '') !== '' && /[^:]:./.test(part));
  });
}

/** True when a text holds a token in a query. */
function holdsSecretQuery(text: string): boolean {
  return text.matchAll(/(?<=^|[=&\s])([^=&\s]*)=/g).some(({ index, 1: name = '' }) => {
    const isInQuery = text[index - 1] === '&' || /[?;]/.test(name);
    return isInQuery && SECRET_NAME.test(name.slice(-LONGEST_NAME));
  });
}

/** Tells what of a config file may stand in a message. */
export type Hiding = {
  /** True when a text is a secret, holds one, or is written as one. */
  hides(text: string): boolean;
  /** The text without the secrets that are known by their value. */
  mask(text: string): string;
  /** A path as a person writes it, without keys that are secrets. */
  renderPath(path: ConfigPath): string;
};

/** `known` are the values that must not be shown: what came from outside, and what stands where a secret may be. */
export function createHiding(known: Iterable<string>): Hiding {
  const texts = [...new Set([...known].flatMap(partsOf))].filter((text) => text.length >= SHORTEST_KNOWN);
  // The longest first: what is left of one must not show.
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
function partsOf(secret: string): string[] {
  const url = secret.includes('://') ? URL.parse(secret) : null;
  const user =
    url === null ? [] : [url.username, url.password].flatMap((part) => [part, decoded(part) ?? '']);
  return [secret, secret.trim(), JSON.stringify(secret).slice(1, -1), ...user];
}

/** The text of a scalar after expansion, the variables and files it came from with their values, and what is wrong with them. */
type Expansion = { text: string; variables: string[]; outside: string[]; problems: string[] };

/** The place where the files of a config are: `folder` is the config file's, and paths are relative to it. `onFile` is notified of each. */
export type FilePlace = { folder: string; onFile?: (path: string) => void };

/** The place where values that do not stand in the config come from. */
export type Outside = FilePlace & { env: NodeJS.ProcessEnv };

const REFERENCE = /\$\$\{|\$\{(?:file:([^{}]+)\}|([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\})?/g;

/**
 * Replaces `${VAR}` and `${VAR:-default}` by the environment's values, and `${file:PATH}` by what the file holds, without
 * the line break at its end; `$${` stands for a literal `${`. A default is taken when the variable is unset or empty.
 * Values are taken as they are: what looks like a variable inside a value is not expanded again. A problem names the
 * variable or the file and never its value.
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

/** A longer name in lower or mixed case that holds a digit may be a token that was written between the braces. */
const LONGEST_MIXED_NAME = 20;

/** Tells a variable's name from a secret that somebody wrote between the braces: `${whsk_…}`. */
function isShownAsName(name: string): boolean {
  // `NPM_TOKEN` would be a secret by its form; tokens are never in capitals and underscores alone, but for AWS keys.
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
    const code = error instanceof Error && 'code' in error ? error.code : 'no file';
    return { problem: code === 'ENOENT' ? 'which does not exist' : `which cannot be read (${code})` };
  }
  try {
    const value = new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '');
    return value === '' ? { problem: 'which is empty' } : { value };
  } catch {
    return { problem: 'which is no text in UTF-8' };
  }
}

/** A pipe or a device could keep the reader for ever. */
function statFile(path: string): { size: number } {
  const stat = statSync(path);
  if (!stat.isFile()) throw new Error('neither a file nor a link to one');
  return stat;
}

/**
 * Hides the braces of `${…}` from the YAML parser, which would take them for a mapping inside `{ … }` and `[ … ]`. The
 * text keeps its length, so positions stay true; `unmask` undoes it in each scalar.
 */
export function maskVariables(text: string): { masked: string; unmask(part: string): string } {
  const [open, close] = unusedCharacters(text);
  return {
    masked: text.replaceAll(/\$\{([^{}\n]*)\}/g, (_, inside: string) => `$${open}${inside}${close}`),
    unmask: (part) => (part.includes(open) ? part.replaceAll(open, '{').replaceAll(close, '}') : part),
  };
}

/** Two characters of the private use area that the text does not hold. */
function unusedCharacters(text: string): [string, string] {
  const free: string[] = [];
  for (let code = 0xe000; free.length < 2; code += 1) {
    const character = String.fromCodePoint(code);
    if (!text.includes(character)) free.push(character);
  }
  const [open = '', close = ''] = free;
  return [open, close];
}
