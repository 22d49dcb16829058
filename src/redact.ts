/** A text as bytes (characters below 256, ASCII in lower case); `start` and `end`: their places in the text in UTF-16 units. */
type Bytes = { text: string; start: number[]; end: number[] };

function toBytes(text: string): Bytes {
  const bytes: Bytes = { text: '', start: [], end: [] };
  const parts: string[] = [];
  let at = 0;
  for (const character of text) {
    for (const byte of utf8(character)) {
      parts.push(byte);
      bytes.start.push(at);
      bytes.end.push(at + character.length);
    }
    at += character.length;
  }
  return { ...bytes, text: lowerCase(parts.join('')) };
}

const ENTITIES: Readonly<Record<string, string>> = {
  ...{ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", sol: '/', bsol: '\\', colon: ':', semi: ';' },
  ...{ equals: '=', commat: '@', num: '#', percnt: '%', plus: '+', quest: '?', period: '.', comma: ',' },
  ...{ lowbar: '_', excl: '!', dollar: '$', ast: '*', midast: '*', lpar: '(', rpar: ')', lsqb: '[' },
  ...{ lbrack: '[', rsqb: ']', rbrack: ']', lcub: '{', lbrace: '{', rcub: '}', rbrace: '}' },
  ...{ verbar: '|', vert: '|', grave: '`', hat: '^', nbsp: ' ', dash: '-', hyphen: '-', tilde: '~' },
};

const CONTROLS: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/** A reference of HTML may lack its semicolon, but not its end: a cut may have removed the next digit. */
const REFERENCE_END = '(?:;|(?=[^0-9a-f;]))';

const ESCAPES: readonly RegExp[] = [
  /%(?<byte>[0-9a-f]{2})/g,
  new RegExp(
    [
      '\\\\u(?<high>d[89ab][0-9a-f]{2})\\\\u(?<low>d[c-f][0-9a-f]{2})',
      '\\\\u\\{?(?<unit>[0-9a-f]{4,6})\\}?',
      '\\\\x(?<hex>[0-9a-f]{2})',
      '\\\\(?<mark>["\'/\\\\])',
      '\\\\(?<control>[bfnrt])',
    ].join('|'),
    'g',
  ),
  new RegExp(
    [
      `&#x0*(?<reference>[0-9a-f]{1,6})${REFERENCE_END}`,
      `&#0*(?<decimal>[0-9]{1,7})${REFERENCE_END}`,
      '&(?<name>[a-z]{2,6});',
    ].join('|'),
    'g',
  ),
];

/** Incomplete escapes that a cut may leave at the end. */
const ESCAPE_START = /(?:%[0-9a-f]?|\\(?:u\{?[0-9a-f]{0,5}|x[0-9a-f]?)?|&(?:#x?[0-9a-f]{0,6}|[a-z]{0,6}))$/;

/** Decodes the escapes of URLs, of JSON, and of HTML once, each alone, where there are any. */
function unescapeBytes(bytes: Bytes): Bytes[] {
  return ESCAPES.flatMap((escapes) => withoutEscapes(bytes, escapes) ?? []);
}

function withoutEscapes({ text, start, end }: Bytes, escapes: RegExp): Bytes | null {
  const parts: string[] = [];
  const made: Bytes = { text: '', start: [], end: [] };
  let at = 0;
  const copy = (until: number): void => {
    parts.push(text.slice(at, until));
    for (let index = at; index < until; index += 1) {
      made.start.push(start[index] ?? 0);
      made.end.push(end[index] ?? 0);
    }
    at = until;
  };
  for (const match of text.matchAll(escapes)) {
    const meant = meaningOf(match.groups ?? {});
    if (meant === null) continue;
    copy(match.index);
    at += match[0].length;
    for (const byte of lowerCase(meant)) {
      parts.push(byte);
      made.start.push(start[match.index] ?? 0);
      made.end.push(end[at - 1] ?? 0);
    }
  }
  if (at === 0) return null;
  copy(text.length);
  return { ...made, text: parts.join('') };
}

function meaningOf(groups: Record<string, string | undefined>): string | null {
  const { byte, high, low, unit, hex, mark, control, reference, decimal, name } = groups;
  if (byte !== undefined) return String.fromCharCode(Number.parseInt(byte, 16));
  if (high !== undefined && low !== undefined) {
    return utf8(String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16)));
  }
  if (mark !== undefined) return mark;
  if (control !== undefined) return CONTROLS[control] ?? null;
  if (name !== undefined) return ENTITIES[name] ?? null;
  const code = decimal === undefined ? Number.parseInt(unit ?? hex ?? reference ?? '', 16) : Number(decimal);
  return code <= 0x10ffff ? utf8(String.fromCodePoint(code)) : null;
}

/** Spellings of a text inside a longer text that is encoded in base64, in hexadecimal, or as a form. */
function encodedSpellings(text: string): string[] {
  const bytes = Buffer.from(text, 'utf8');
  const inBase64 = [0, 1, 2].flatMap((offset) => {
    const whole = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    // Characters that mix with the bytes before and after do not belong to it.
    const from = Math.ceil((offset * 8) / 6);
    const until = Math.floor(((offset + bytes.length) * 8) / 6);
    const own = whole.slice(from, until);
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')];
  });
  // A form has plus signs in place of spaces.
  return [...inBase64, bytes.toString('hex'), text.replaceAll(' ', '+')];
}

/** Of bytes only the ASCII letters have a case. */
function lowerCase(bytes: string): string {
  return bytes.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function utf8(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

const REDACTED = '[secret]';

/** Parts of a URL shorter than this are names rather than tokens; longer secrets are also found in pieces. */
const MIN_TOKEN_LENGTH = 12;

/** Secrets shorter than this occur in any text. */
const MIN_SECRET_LENGTH = 3;

const MIN_VALUE_LENGTH = 4;

/** Longest piece of a secret that may pass; for a short secret, half of it. */
const MAX_PIECE = 12;

/** Shortest beginning of a secret that is hidden where a text was cut. */
const MIN_CUT_PIECE = 4;

const MAX_DEPTH = 3;

/** Removes secrets from a text; `cut`: the text may end within one. */
export type Redact = (text: string, options?: { cut?: boolean }) => string;

/**
 * Replaces each of these secrets by `[secret]`, in any case of letters and any spelling: plain, with the escapes of JSON,
 * HTML or URLs, up to three nested, in base64 or in hexadecimal. A long secret is also found in pieces of 12 characters, or
 * of half its length. Call it before a text is shortened.
 */
export function redactor(secrets: readonly string[]): Redact {
  // Each receiver has a redactor, and few use it. Its search takes 15 kB, and is made again where it was collected.
  let made: WeakRef<Search> | null = null;
  return (text, { cut = false } = {}) => {
    const search = made?.deref() ?? searchFor(secrets);
    made = new WeakRef(search);
    const hidden = new Uint8Array(text.length);
    for (const bytes of decodings(text)) {
      hide(bytes, { index: search.index, hidden });
      if (cut) hideEnd(bytes, { spellings: search.spellings, hidden });
    }
    return withoutHidden(text, hidden);
  };
}

/** Spellings of secrets, and the index by which they are found. */
type Search = { spellings: readonly string[]; index: Index };

function searchFor(secrets: readonly string[]): Search {
  const longEnough = [...new Set(secrets)].filter((secret) => secret.length >= MIN_SECRET_LENGTH);
  const spellings = [...longEnough, ...longEnough.flatMap(encodedSpellings)]
    .filter((spelling) => spelling.length >= MIN_SECRET_LENGTH)
    .map((spelling) => toBytes(spelling).text);
  return { spellings, index: indexOf(new Set(spellings)) };
}

/** A text as it is, and after decoding, in any order of encodings. */
function decodings(text: string): Bytes[] {
  const found = new Map<string, Bytes>();
  let outer = [toBytes(text)];
  for (let depth = 0; outer.length > 0 && depth <= MAX_DEPTH; depth += 1) {
    const fresh = outer.filter((bytes) => !found.has(bytes.text));
    for (const bytes of fresh) found.set(bytes.text, bytes);
    outer = fresh.flatMap(unescapeBytes);
  }
  return [...found.values()];
}

/** Pieces of spellings by their length; each occurrence of a piece is secret. `starts` marks their first two bytes. */
type Index = { bySize: ReadonlyMap<number, ReadonlySet<string>>; starts: Uint8Array };

function indexOf(spellings: ReadonlySet<string>): Index {
  const bySize = new Map<number, Set<string>>();
  const starts = new Uint8Array(STARTS);
  for (const spelling of spellings) {
    const { length } = spelling;
    const size = length < MIN_TOKEN_LENGTH ? length : Math.min(MAX_PIECE, Math.ceil(length / 2));
    const pieces = bySize.get(size) ?? new Set();
    for (let at = 0; at + size <= length; at += 1) {
      pieces.add(spelling.slice(at, at + size));
      starts[startAt(spelling, at)] = 1;
    }
    bySize.set(size, pieces);
  }
  return { bySize, starts };
}

function hide({ text, start, end }: Bytes, { index, hidden }: { index: Index; hidden: Uint8Array }): void {
  for (let at = 0; at < text.length; at += 1) {
    if (index.starts[startAt(text, at)] === 0) continue;
    for (const [size, pieces] of index.bySize) {
      if (pieces.has(text.slice(at, at + size))) hidden.fill(1, start[at], end[at + size - 1]);
    }
  }
}

/** There is an index for each receiver: one mark per pair of bytes would take 64 kB for each. */
const STARTS = 0x800;

/** Index of two bytes in the marks: most places of a text cannot be the start of a piece. */
function startAt(text: string, at: number): number {
  return (text.charCodeAt(at) * 31 + (text.charCodeAt(at + 1) || 0)) % STARTS;
}

/** Hides the beginning of a secret at the end of a text, also where partial escapes follow it, nested in each other. */
function hideEnd(
  { text, start }: Bytes,
  { spellings, hidden }: { spellings: readonly string[]; hidden: Uint8Array },
): void {
  const endings = new Set([text]);
  let ending = text;
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    ending = ending.replace(ESCAPE_START, '');
    endings.add(ending);
  }
  for (const ending of endings) {
    for (const spelling of spellings) {
      for (let length = Math.min(spelling.length, ending.length); length >= MIN_CUT_PIECE; length -= 1) {
        if (!ending.endsWith(spelling.slice(0, length))) continue;
        hidden.fill(1, start[ending.length - length]);
        break;
      }
    }
  }
}

function withoutHidden(text: string, hidden: Uint8Array): string {
  let shown = '';
  for (let at = 0; at < text.length; at += 1) {
    if (hidden[at] === 0) shown += text[at];
    else if (hidden[at - 1] !== 1) shown += REDACTED;
  }
  return shown;
}

/**
 * Possible secrets of a URL: the whole, its host if that is a name, user and password, the path with its query, and each path
 * segment or query value that is long enough to be a token; as written and decoded.
 */
export function secretsOfUrl(url: URL): string[] {
  const { hostname, username, password, pathname, search } = url;
  const pathAndQuery = `${pathname}${search}`;
  const parts = [...pathname.split('/'), ...url.searchParams.values(), ...search.slice(1).split(/[&=]/)];
  const found = [
    url.href,
    ...(/[a-z]/.test(hostname) && hostname.includes('.') ? [hostname] : []),
    ...secretsOfLogin({ username, password }),
    ...[...parts, pathAndQuery].filter((part) => part.length >= MIN_TOKEN_LENGTH),
  ];
  return [...new Set(found.flatMap((part) => [part, decodeOrSame(part)]))];
}

/** Possible secrets in the login of a URL: the password, or a token in the place of the user, and both as they are sent. */
export function secretsOfLogin({ username, password }: { username: string; password: string }): string[] {
  const [user, pass] = [decodeOrSame(username), decodeOrSame(password)];
  if (password === '') {
    if (user.length < MIN_TOKEN_LENGTH) return [];
    return [username, user, Buffer.from(`${user}:`).toString('base64')];
  }
  const sent = [user, `${user}:${pass}`, `\0${user}\0${pass}`].map((text) =>
    Buffer.from(text).toString('base64'),
  );
  return [password, pass, ...sent];
}

/** Possible secrets of a header's value: the whole, texts long enough to be a token, and the login after `Basic`. */
export function secretsOfHeader(value: string): string[] {
  const words = value.split(/[ ,;=]+/).filter((word) => word.length >= MIN_TOKEN_LENGTH);
  const basic = /^basic +(\S+)$/i.exec(value)?.[1];
  const login = basic === undefined ? '' : Buffer.from(basic, 'base64').toString('utf8');
  const password = login.slice(login.indexOf(':') + 1);
  return [...(value.length >= MIN_VALUE_LENGTH ? [value] : []), ...words, login, password];
}

function decodeOrSame(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
