import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  isExactNumber,
  isJsonObject,
  JsonLimitError,
  type JsonValue,
  parseJson,
  splitJson,
} from '../../src/domain/json.ts';
import { LIMITS } from '../../src/domain/limits.ts';

const OPTIONS = { limits: LIMITS.upstream, longNumber: 'drop' } as const;

/** JSON of texts and numbers that a plain parser changes; rarely one that is no JSON. */
const HOSTILE_SCALAR = fc.oneof(
  { weight: 9, arbitrary: fc.integer().map(String) },
  {
    weight: 9,
    arbitrary: fc.constantFrom('0', '-0', '-0.0', '1.0', '0.10', '1e3', '-12.50e-1', '1e400', '-7', '5e-324'),
  },
  { weight: 9, arbitrary: fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }).map(String) },
  { weight: 9, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }).map(String) },
  { weight: 9, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }).map((text) => JSON.stringify(text)) },
  {
    weight: 9,
    arbitrary: fc.constantFrom(
      '"\\ud800"',
      '"\\udc00x"',
      '"\\u0041"',
      '"\\\\"',
      '"\\""',
      '"[{,:]}"',
      '"\\/"',
    ),
  },
  { weight: 9, arbitrary: fc.constantFrom('true', 'false', 'null', '""', '9'.repeat(1_001)) },
  { weight: 1, arbitrary: fc.constantFrom('01', '-', '1.', 'tru', '"\n"', '') },
);

const NAME = fc.constantFrom(
  '"a"',
  '"b"',
  '"results"',
  '"__proto__"',
  '"\\u005f_proto__"',
  '"r\\u0065sults"',
  '"\\"results"',
);

const SPACE = fc.constantFrom('', '', '', ' ', '\n\t', '\r');

const { value: VALUE } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
  value: fc.oneof({ maxDepth: 4, withCrossShrink: true }, HOSTILE_SCALAR, tie('list'), tie('object')),
  list: fc
    .tuple(SPACE, fc.array(tie('value'), { maxLength: 4 }), SPACE)
    .map(([before, values, after]) => `[${before}${values.join(`${after},${before}`)}${after}]`),
  object: fc
    .tuple(SPACE, fc.array(fc.tuple(NAME, tie('value')), { maxLength: 4 }), SPACE)
    .map(
      ([before, members, after]) =>
        `{${before}${members.map(([name, value]) => `${name}${after}:${before}${value}`).join(`${after},`)}${after}}`,
    ),
}));

/** Such a value, maybe with a character too much, too little or another one. */
const TEXT = fc
  .tuple(
    VALUE,
    fc.oneof(
      { weight: 9, arbitrary: fc.constant('whole' as const) },
      {
        weight: 1,
        arbitrary: fc.tuple(fc.nat(), fc.constantFrom('', '"', '\\', '[', ']', '{', '}', ',', ':')),
      },
    ),
  )
  .map(([text, damage]) => {
    if (damage === 'whole') return text;
    const [place, character] = damage;
    const at = place % (text.length + 1);
    return text.slice(0, at) + character + text.slice(at + (place % 2));
  });

/** The rules of `parseJson` applied to every member, whether or not the text needs them. */
function parseEach(text: string): JsonValue {
  return JSON.parse(text, (key: string, value: unknown, context?: { source?: string }): unknown => {
    if (key === '__proto__') return undefined;
    if (typeof value === 'string') return value.toWellFormed();
    if (typeof value !== 'number') return value;
    const source = context?.source ?? '';
    if (source.length > LIMITS.upstream.numberCharacters) return {};
    return isExactNumber(source) ? source : Number(source) || 0;
  });
}

type Outcome = { value: JsonValue } | { error: string };

function outcomeOf(parse: () => JsonValue): Outcome {
  try {
    return { value: parse() };
  } catch (error) {
    if (error instanceof JsonLimitError) return { error: error.found };
    if (error instanceof SyntaxError) return { error: 'no JSON' };
    throw error;
  }
}

/** The whole text from its parts; null where it cannot be split. */
function joined(text: string): JsonValue | null {
  const split = splitJson(text, 'results', OPTIONS);
  if (split === null) return null;
  const { elements, rest, parse } = split;
  if (!isJsonObject(rest)) throw new Error('the rest is no object');
  return { ...rest, results: elements.map(parse) };
}

describe('a text of JSON', () => {
  test('is read as with a check of each member, however it is spelled', () => {
    const seen = { valid: 0, invalid: 0 };
    fc.assert(
      fc.property(TEXT, (text) => {
        const expected = outcomeOf(() => parseEach(text));
        seen['value' in expected ? 'valid' : 'invalid'] += 1;
        expect(outcomeOf(() => parseJson(text, OPTIONS))).toStrictEqual(expected);
      }),
      { numRuns: 2_000 },
    );
    expect(Math.min(seen.valid, seen.invalid)).toBeGreaterThan(200);
  });

  test('is the same in parts, where one list is split', () => {
    const seen = { split: 0, whole: 0 };
    const listed = fc
      .tuple(fc.array(TEXT, { maxLength: 4 }), SPACE, TEXT, TEXT)
      .map(
        ([values, space, before, after]) =>
          `{"a":${before},"results":${space}[${values.join(`,${space}`)}${space}]${space},"b":${after}}`,
      );
    fc.assert(
      fc.property(fc.oneof(listed, TEXT), (text) => {
        let isSplit = true;
        const inPieces = outcomeOf(() => {
          const value = joined(text);
          isSplit = value !== null;
          return value;
        });
        const expected = outcomeOf(() => parseJson(text, OPTIONS));
        if (!isSplit) {
          seen.whole += 1;
          return;
        }
        if ('value' in expected) seen.split += 1;
        expect(inPieces).toStrictEqual(expected);
      }),
      { numRuns: 2_000 },
    );
    expect(Math.min(seen.split, seen.whole)).toBeGreaterThan(200);
  });
});
