/**
 * A text as bytes (each a character below 256, ASCII letters in lower case), and for each byte which part of the text it
 * came from: `start` and `end` in UTF-16 units.
 */
export type Bytes = { text: string; start: number[]; end: number[] };

/** The text as UTF-8. */
export function toBytes(text: string): Bytes {
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

/** Names of HTML for the marks that secrets and URLs are made of. */
const ENTITIES: Readonly<Record<string, string>> = {
  ...{ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", sol: '/', bsol: '\\', colon: ':', semi: ';' },
  ...{ equals: '=', commat: '@', num: '#', percnt: '%', plus: '+', quest: '?', period: '.', comma: ',' },
  ...{ lowbar: '_', excl: '!', dollar: '$', ast: '*', midast: '*', lpar: '(', rpar: ')', lsqb: '[' },
  ...{ lbrack: '[', rsqb: ']', rbrack: ']', lcub: '{', lbrace: '{', rcub: '}', rbrace: '}' },
  ...{ verbar: '|', vert: '|', grave: '`', hat: '^', nbsp: ' ', dash: '-', hyphen: '-', tilde: '~' },
};

/** A reference of HTML may lack its semicolon, but not its end: the next digit may have been cut off. */
const REFERENCE_END = '(?:;|(?=[^0-9a-f;]))';

/** The escapes of each encoding: URLs, JSON and JavaScript, HTML. */
const ESCAPES: readonly RegExp[] = [
  /%(?<byte>[0-9a-f]{2})/g,
  new RegExp(
    [
      '\\\\u(?<high>d[89ab][0-9a-f]{2})\\\\u(?<low>d[c-f][0-9a-f]{2})',
      '\\\\u\\{?(?<unit>[0-9a-f]{4,6})\\}?',
      '\\\\x(?<hex>[0-9a-f]{2})',
      '\\\\(?<mark>["\'/\\\\])',
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

/** What an escape may look like that a cut has left at the end. */
export const ESCAPE_START =
  /(?:%[0-9a-f]?|\\(?:u\{?[0-9a-f]{0,5}|x[0-9a-f]?)?|&(?:#x?[0-9a-f]{0,6}|[a-z]{0,6}))$/;

/** The bytes with the escapes of URLs, of JSON, and of HTML taken away once, each apart, where there are any. */
export function unescapeBytes(bytes: Bytes): Bytes[] {
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
  const { byte, high, low, unit, hex, mark, reference, decimal, name } = groups;
  if (byte !== undefined) return String.fromCharCode(Number.parseInt(byte, 16));
  if (high !== undefined && low !== undefined) {
    return utf8(String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16)));
  }
  if (mark !== undefined) return mark;
  if (name !== undefined) return ENTITIES[name] ?? null;
  const code = decimal === undefined ? Number.parseInt(unit ?? hex ?? reference ?? '', 16) : Number(decimal);
  return code <= 0x10ffff ? utf8(String.fromCodePoint(code)) : null;
}

/** The spellings that a text has in the middle of something encoded in base64, or in hexadecimal. */
export function encodedSpellings(text: string): string[] {
  const bytes = Buffer.from(text, 'utf8');
  const inBase64 = [0, 1, 2].flatMap((offset) => {
    const whole = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    // What is mixed with the bytes before and after does not belong to it.
    const from = Math.ceil((offset * 8) / 6);
    const until = Math.floor(((offset + bytes.length) * 8) / 6);
    const own = whole.slice(from, until);
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return [...inBase64, bytes.toString('hex')];
}

/** Of bytes only the ASCII letters have a case. */
function lowerCase(bytes: string): string {
  return bytes.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function utf8(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
