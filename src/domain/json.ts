import { LIMITS } from './limits.ts';

/** Any JSON value. Numbers that JavaScript cannot hold exactly arrive as strings. */
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;

/** A JSON object. */
export type JsonObject = { [key: string]: JsonValue };

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns JSON text with sorted object keys, so that equal values have equal text. */
export function canonicalJson(value: JsonValue): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  let text = '';
  if (Array.isArray(value)) {
    for (const element of value) text += `${text === '' ? '' : ','}${canonicalJson(element)}`;
    return `[${text}]`;
  }
  for (const key of Object.keys(value).sort()) {
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`;
  }
  return `{${text}}`;
}

/** Limits of one JSON text; LIMITS has those of each source. */
export type JsonLimits = {
  depth: number;
  members: number;
  numberCharacters: number;
  /** Characters of one text as written; absent: limited by the bytes alone. */
  textCharacters?: number;
};

type ParseOptions = {
  limits: JsonLimits;
  /** `repair` drops members named `__proto__` and replaces surrogate halves. `refuse`: their author can be notified. */
  unstorable?: 'repair' | 'refuse';
  /** `drop` turns a number with too long a text into `{}`, which no reader accepts as a number or text. */
  longNumber?: 'drop' | 'refuse';
};

/** JSON text beyond a limit. The message quotes nothing of the text. */
export class JsonLimitError extends SyntaxError {
  override readonly name = 'JsonLimitError';
  readonly found: string;
  readonly expected: string;
  readonly scanned: number;

  constructor({ found, expected, scanned }: { found: string; expected: string; scanned: number }) {
    super(`${found}, expected ${expected}`);
    this.found = found;
    this.expected = expected;
    this.scanned = scanned;
  }
}

/** JSON that cannot be stored as it is: a member named `__proto__`, or a text with half of a surrogate pair. */
export class UnstorableJsonError extends Error {
  override readonly name = 'UnstorableJsonError';
}

export const BROKEN_TEXT = {
  found: 'a text with half of a surrogate pair',
  expected: 'whole characters (U+D800 to U+DFFF are none)',
};

/**
 * Parses JSON without losing a digit: a number that JavaScript cannot hold exactly becomes the string that was sent.
 * Throws a SyntaxError for invalid JSON, a JsonLimitError beyond a limit, and an UnstorableJsonError.
 */
export function parseJson(text: string, options: ParseOptions): JsonValue {
  const { isPlain } = scanJson(text, scannedLimits(options));
  return isPlain ? JSON.parse(text) : revive(text, options);
}

/** An object whose one list is split: the text of each element, the object with an empty list, and their parser. */
export type SplitJson = { elements: string[]; rest: JsonValue; parse: (element: string) => JsonValue };

/**
 * Splits a list that is a member of the outermost object into the texts of its elements, each parsed by itself. Parsed, they
 * and the rest are as `parseJson` gives them for the whole text. Throws as that does, except that a bad element throws when it
 * is parsed. Null where the text has not exactly one such list.
 */
export function splitJson(text: string, list: string, options: ParseOptions): SplitJson | null {
  const { isPlain, elements: places } = scanJson(text, scannedLimits(options), list);
  if (places === null) return null;
  const parse = (part: string): JsonValue => (isPlain ? JSON.parse(part) : revive(part, options));
  const { bounds, from, to } = places;
  const elements: string[] = [];
  for (let at = 0; at + 1 < bounds.length; at += 2) elements.push(text.slice(bounds[at], bounds[at + 1]));
  return { elements, rest: parse(text.slice(0, from) + text.slice(to)), parse };
}

function scannedLimits({ limits, longNumber = 'refuse' }: ParseOptions): JsonLimits {
  return longNumber === 'drop' ? { ...limits, numberCharacters: Infinity } : limits;
}

/** Parses a text that may hold numbers, names or halves of characters that cannot stay as they are. */
function revive(text: string, { limits, unstorable = 'repair' }: ParseOptions): JsonValue {
  return JSON.parse(text, (key: string, value: unknown, context?: { source?: string }): unknown => {
    if (key === '__proto__') {
      if (unstorable === 'repair') return undefined;
      throw new UnstorableJsonError('found a member "__proto__", expected another name');
    }
    if (unstorable === 'refuse' && !(key.isWellFormed() && isStorable(value))) {
      throw new UnstorableJsonError(`found ${BROKEN_TEXT.found}, expected ${BROKEN_TEXT.expected}`);
    }
    // Half of a surrogate pair is not text and breaks encoders, such as Redis' own JSON reader.
    if (typeof value === 'string') return value.toWellFormed();
    if (typeof value !== 'number') return value;
    const source = context?.source ?? String(value);
    if (source.length > limits.numberCharacters) return {};
    if (!survives(value, source)) return source;
    return value === 0 ? 0 : value; // negative zero would differ from zero in a comparison
  });
}

function isStorable(value: unknown): boolean {
  return typeof value !== 'string' || value.isWellFormed();
}

const [QUOTE, COLON, COMMA, MINUS, ZERO] = [0x22, 0x3a, 0x2c, 0x2d, 0x30];

const QUOTES = 2;
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Positions of a list: between its brackets, and the bounds of each element. */
type ListPlaces = { from: number; to: number; bounds: number[] };

/** A scanned text: true when `JSON.parse` alone reads it exactly, and the places of the list that was searched. */
type JsonScan = { isPlain: boolean; elements: ListPlaces | null };

/** Counts depth, members and characters before parsing. Throws a JsonLimitError at the first excess; bad JSON passes. */
export function checkJson(text: string, limits: JsonLimits): void {
  scanJson(text, limits);
}

/** Checks as `checkJson` does, and finds the elements of the list that the outermost object has under a name. */
function scanJson(text: string, limits: JsonLimits, list: string | null = null): JsonScan {
  const { depth, members, numberCharacters, textCharacters = Infinity } = limits;
  // Only an escape can spell half of a surrogate pair, or another form of a name.
  let isPlain = !text.includes('\\u') && !text.includes('__proto__') && text.isWellFormed();
  const found = new ListSearch(text, list);
  let escapeAt = positionOf(text, '\\', 0);
  let level = 0;
  let count = 0;
  let isFirst = false;
  let at = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (isSpace(code)) {
      at += 1;
      continue;
    }
    const isClosing = code === CLOSE_LIST || code === CLOSE_OBJECT;
    if (code === COMMA || (isFirst && !isClosing)) count += 1;
    isFirst = code === OPEN_LIST || code === OPEN_OBJECT;
    if (isFirst) level += 1;
    if (isClosing) level -= 1;
    if (level > depth) {
      throw new JsonLimitError({
        found: 'JSON that is nested too deeply',
        expected: `at most ${depth} levels`,
        scanned: at,
      });
    }
    if (count > members) {
      throw new JsonLimitError({
        found: 'JSON with too many members',
        expected: `at most ${members}`,
        scanned: at,
      });
    }
    if (list !== null && level <= 2) found.note(code, { at, level });
    if (code === QUOTE) {
      // Each search begins behind the last one, so that all of them together are linear.
      let end = positionOf(text, '"', at + 1);
      if (escapeAt <= at) escapeAt = positionOf(text, '\\', at + 1);
      const isEscaped = escapeAt < end;
      while (escapeAt < end) {
        if (end === escapeAt + 1) end = positionOf(text, '"', escapeAt + 2);
        escapeAt = positionOf(text, '\\', escapeAt + 2);
      }
      end = Math.min(end + 1, text.length);
      if (end - at - QUOTES > textCharacters) {
        throw new JsonLimitError({
          found: 'JSON with a text that is too long',
          expected: `at most ${textCharacters} characters`,
          scanned: end,
        });
      }
      if (list !== null && level === 1) found.noteText({ at, end, isEscaped });
      at = end;
    } else if (code === MINUS || isDigit(code)) {
      const digits = endOfDigits(text, at + 1, numberCharacters);
      const end = endOfNumber(text, digits, numberCharacters - (digits - at - 1));
      if (end - at > numberCharacters) {
        throw new JsonLimitError({
          found: 'JSON with a number that is too long',
          expected: `at most ${numberCharacters} characters`,
          scanned: end,
        });
      }
      const isNegativeZero = code === MINUS && text.charCodeAt(at + 1) === ZERO;
      isPlain &&= end === digits && end - at <= PLAIN_DIGITS && !isNegativeZero;
      at = end;
    } else at += 1;
  }
  return { isPlain, elements: found.places };
}

/** Search for the one list under a name in the outermost object. */
class ListSearch {
  readonly #text: string;
  readonly #list: string | null;
  #places: ListPlaces | null = null;
  #isIn = false;
  #isAmbiguous = false;
  /** State of the present member: a text that may be its name, its name, or anything else. */
  #member: 'text' | 'named' | 'other' = 'other';

  constructor(text: string, list: string | null) {
    this.#text = text;
    this.#list = list;
  }

  get places(): ListPlaces | null {
    return this.#isAmbiguous || this.#isIn ? null : this.#places;
  }

  /** Notes a character outside of texts on the first two levels; `level` is that behind it. */
  note(code: number, { at, level }: { at: number; level: number }): void {
    if (this.#isIn && this.#places !== null) {
      const { bounds, from } = this.#places;
      if (level === 2 && code === COMMA) bounds.push(at, at + 1);
      if (level > 1) return;
      this.#isIn = false;
      if (bounds.length > 1 || !isBlank(this.#text, from, at)) bounds.push(at);
      else bounds.pop();
      this.#places = { from, to: at, bounds };
    } else if (level === 2 && code === OPEN_LIST && this.#member === 'named') {
      this.#isIn = true;
      this.#places = { from: at + 1, to: at + 1, bounds: [at + 1] };
    }
    if (code === COLON && this.#member === 'text') {
      this.#member = 'named';
      if (this.#places !== null) this.#isAmbiguous = true;
    } else this.#member = 'other';
  }

  /** Notes a text of the first level. One with an escape may spell the name in another way. */
  noteText({ at, end, isEscaped }: { at: number; end: number; isEscaped: boolean }): void {
    const list = this.#list ?? '';
    if (isEscaped) this.#isAmbiguous ||= this.#isKey(end);
    else if (end - at === list.length + QUOTES && this.#text.startsWith(list, at + 1)) this.#member = 'text';
  }

  #isKey(end: number): boolean {
    let at = end;
    while (at < this.#text.length && isSpace(this.#text.charCodeAt(at))) at += 1;
    return this.#text.charCodeAt(at) === COLON;
  }
}

function isBlank(text: string, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (!isSpace(text.charCodeAt(at))) return false;
  return true;
}

/** Position of the next occurrence; the end of the text where there is none. */
function positionOf(text: string, character: string, from: number): number {
  const at = text.indexOf(character, from);
  return at === -1 ? text.length : at;
}

/** Characters of a whole number that JavaScript holds exactly. */
const PLAIN_DIGITS = 15;

function endOfDigits(text: string, start: number, most: number): number {
  let at = start;
  while (at < text.length && at - start <= most && isDigit(text.charCodeAt(at))) at += 1;
  return at;
}

/** Position after a number, or one position beyond the limit. */
function endOfNumber(text: string, start: number, most: number): number {
  let at = start;
  while (at < text.length && at - start <= most && isOfNumber(text.charCodeAt(at))) at += 1;
  return at;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function isOfNumber(code: number): boolean {
  return isDigit(code) || code === MINUS || code === 0x2b || code === 0x2e || code === 0x65 || code === 0x45;
}

/** True when a text may be a stored number too large for JavaScript: such a text is no status or hash of the interface. */
export function isExactNumber(text: string): boolean {
  if (text.length > LIMITS.upstream.numberCharacters) return false;
  return /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) && !survives(Number(text), text);
}

function survives(value: number, source: string): boolean {
  if (!Number.isFinite(value)) return false;
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return false;
  return String(value) === source || decimal(String(value)) === decimal(source);
}

/** One text for all spellings of a number: its significant digits and the power of ten of the last one. */
function decimal(text: string): string {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const all = whole + fraction;
  // No regular expression such as /0+$/: it restarts at each zero.
  let first = 0;
  while (all[first] === '0') first += 1;
  let end = all.length;
  while (end > first && all[end - 1] === '0') end -= 1;
  if (first === end) return '0';
  const power = Number(exponent) - fraction.length + (all.length - end);
  return `${mantissa.startsWith('-') ? '-' : ''}${all.slice(first, end)}e${power}`;
}

/** Text as databases store it: the character 0 and halves of surrogate pairs become U+FFFD. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd');
}
