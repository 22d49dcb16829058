import { decoded } from '../fields/urls.ts';
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
