import { decoded } from '../fields/urls.ts';
import { type ConfigPath, renderPath } from './errors.ts';

/** What a message shows in the place of a secret. */
const HIDDEN = '…';

/** Shorter ones stand in innocent words: a port, a name of three letters. They are hidden by their place alone. */
const SHORTEST_KNOWN = 6;

/** How secrets are written, wherever they stand. */
const SECRET_FORMS: readonly RegExp[] = [
  // A user and password, in a URL or before a host.
  /[a-z][a-z0-9+.-]*:\/\/[^\s/?#]*@/i,
  /[^\s:@]:[^\s@]+@[^\s@]/,
  // A token in a query, or in the path of a chat's webhook.
  /[?&;][^=&\s]*(key|token|secret|sig|signature|password|auth|code)=/i,
  /hooks\.slack\.com\/|discord(app)?\.com\/api\/webhooks\//i,
  /(^|[^a-z0-9])wh(sec|sk)_/i,
  /(^|[^a-z0-9])(sk|pk|rk|ghp|gho|ghs|glpat|npm|xox[a-z])[-_]\w/i,
  /(^|[^a-z0-9])(bearer|basic|digest)[\s:=]+\S/i,
  /(password|passwd|secret|api[-_]?key|token)["']?\s*[:=]\s*\S/i,
  /(^|[^A-Za-z0-9])(AKIA[A-Z0-9]{12}|eyJ[\w-]{8})/,
  /-----BEGIN /,
];

/** Whether a text is a secret by its form. */
export function isWrittenAsSecret(text: string): boolean {
  return SECRET_FORMS.some((form) => form.test(text));
}

/** Tells what of a config file may stand in a message. */
export type Hiding = {
  /** Whether a text is a secret, holds one, or is written as one. */
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
