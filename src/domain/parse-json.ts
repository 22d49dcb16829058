import type { JsonValue } from './json.ts';

/**
 * Deeper nesting than this is refused. The interface nests five levels; what is nested much deeper would later
 * break those who walk it recursively, such as Redis' own JSON reader (1,000 levels).
 */
const MAX_DEPTH = 100;

/**
 * Parses JSON without losing a digit: a number that JavaScript cannot hold exactly becomes the string that was sent.
 * Members named `__proto__` are dropped, so that nobody who copies members by assignment changes a prototype; or refused
 * with a ProtoMemberError, where whoever wrote them can be told.
 * Throws a SyntaxError for what is not JSON or is nested deeper than 100 levels.
 */
export function parseJson(text: string, { proto = 'drop' }: { proto?: 'drop' | 'refuse' } = {}): JsonValue {
  let value: JsonValue;
  try {
    value = JSON.parse(text, proto === 'drop' ? keepDigits : refuseProto);
  } catch (error) {
    // The walk of a reviver is recursive: very deep nesting ends as a RangeError.
    if (error instanceof RangeError) throw new SyntaxError(TOO_DEEP);
    throw error;
  }
  refuseDepth(value);
  return value;
}

const TOO_DEEP = `JSON is nested too deeply, expected at most ${MAX_DEPTH} levels`;

/** A member named `__proto__`, which cannot be kept. */
export class ProtoMemberError extends Error {
  override readonly name = 'ProtoMemberError';
}

function refuseProto(key: string, value: unknown, context?: { source?: string }): unknown {
  if (key === '__proto__') throw new ProtoMemberError('found a member "__proto__", expected another name');
  return keepDigits(key, value, context);
}

function keepDigits(key: string, value: unknown, context?: { source?: string }): unknown {
  if (key === '__proto__') return undefined;
  // Half of a surrogate pair is no text: it would break whoever encodes it, Redis' own JSON reader for one.
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value !== 'number') return value;
  const source = context?.source ?? String(value);
  if (!survives(value, source)) return source;
  return value === 0 ? 0 : value; // no negative zero: it would differ from zero in a comparison
}

/**
 * Whether a text may be a number that JavaScript cannot hold, and that was kept as text: where the interface has a word
 * or a hash, it is none.
 */
export function isKeptNumber(text: string): boolean {
  return /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) && !survives(Number(text), text);
}

/** Whether the number says exactly what its source said. */
function survives(value: number, source: string): boolean {
  if (!Number.isFinite(value)) return false;
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return false;
  return String(value) === source || decimal(String(value)) === decimal(source);
}

/** One text for all spellings of a number: its significant digits and the power of ten of the last one. */
function decimal(text: string): string {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const all = (whole + fraction).replace(/^0+/, '');
  const digits = all.replace(/0+$/, '');
  if (digits === '') return '0';
  const power = Number(exponent) - fraction.length + (all.length - digits.length);
  return `${mantissa.startsWith('-') ? '-' : ''}${digits}e${power}`;
}

function refuseDepth(value: JsonValue): void {
  let level: JsonValue[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= MAX_DEPTH) throw new SyntaxError(TOO_DEEP);
    const next: JsonValue[] = [];
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue;
      for (const child of Object.values(item))
        if (typeof child === 'object' && child !== null) next.push(child);
    }
    level = next;
  }
}
