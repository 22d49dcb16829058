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
  const { limits, unstorable = 'repair', longNumber = 'refuse' } = options;
  checkJson(text, {
    ...limits,
    numberCharacters: longNumber === 'drop' ? Infinity : limits.numberCharacters,
  });
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

const [QUOTE, BACKSLASH, COMMA, MINUS] = [0x22, 0x5c, 0x2c, 0x2d];

const QUOTES = 2;
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Counts depth, members and characters before parsing. Throws a JsonLimitError at the first excess; bad JSON passes. */
export function checkJson(text: string, limits: JsonLimits): void {
  const { depth, members, numberCharacters, textCharacters = Infinity } = limits;
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
    if (code === QUOTE) {
      const end = endOfString(text, at + 1);
      if (end - at - QUOTES > textCharacters) {
        throw new JsonLimitError({
          found: 'JSON with a text that is too long',
          expected: `at most ${textCharacters} characters`,
          scanned: end,
        });
      }
      at = end;
    } else if (code === MINUS || isDigit(code)) {
      const end = endOfNumber(text, at + 1, numberCharacters);
      if (end - at > numberCharacters) {
        throw new JsonLimitError({
          found: 'JSON with a number that is too long',
          expected: `at most ${numberCharacters} characters`,
          scanned: end,
        });
      }
      at = end;
    } else at += 1;
  }
}

function endOfString(text: string, start: number): number {
  let at = start;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    at += code === BACKSLASH ? 2 : 1;
  }
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
