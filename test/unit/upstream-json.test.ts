import { describe, expect, test, vi } from 'vitest';
import {
  checkJson,
  isExactNumber,
  JsonLimitError,
  type JsonValue,
  parseJson as parse,
} from '../../src/domain/json.ts';
import { LIMITS } from '../../src/domain/limits.ts';

const parseJson = (text: string): JsonValue => parse(text, { limits: LIMITS.upstream, longNumber: 'drop' });

describe('parseJson', () => {
  test.each([
    ['0', 0],
    ['-0', 0],
    ['0.10', 0.1],
    ['1.0', 1],
    ['1e3', 1000],
    ['1E+3', 1000],
    ['-12.50e-1', -1.25],
    ['1763638259', 1763638259],
    ['9007199254740991', 9007199254740991],
    ['5e-324', 5e-324],
  ])('reads %s as the number it is', (text, value) => {
    expect(parseJson(text)).toBe(value);
  });

  test.each([
    '9007199254740992',
    '-9007199254740993',
    '12345678901234567890',
    '0.12345678901234567891',
    '1e400',
    '1e-400',
    '100000000000000000000000',
    '1.7976931348623157e308',
  ])('reads %s as its text, because a number would change it', (text) => {
    expect(parseJson(`{"amount":[${text}]}`)).toEqual({ amount: [text] });
  });

  test.each([
    '{"a":"\\ud800"}',
    '["\\udc00x"]',
    '{"k\\ud800":1}',
    '{"a":{"__proto__":1}}',
  ])('refuses a text that cannot be stored where its author can be informed: %s', (text) => {
    const refused = () => parse(text, { limits: LIMITS.api, unstorable: 'refuse' });
    expect(refused).toThrow(/^found a (text with half of a surrogate pair|member "__proto__"), expected /);
  });

  test('drops members named __proto__ and changes no prototype', () => {
    const value = parseJson('{"a":{"__proto__":{"polluted":true},"b":1},"__proto__":{"polluted":true}}');
    expect(value).toEqual({ a: { b: 1 } });
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    const copy = Object.assign({}, Object(value));
    expect('polluted' in copy || 'polluted' in {}).toBe(false);
  });

  test('reads members named constructor and toString as plain data', () => {
    expect(JSON.stringify(parseJson('{"constructor":1,"toString":"x"}'))).toBe(
      '{"constructor":1,"toString":"x"}',
    );
  });

  test.each(['', '{', '[1,]', 'undefined', '<html>', '{"a":1}x', 'NaN'])('refuses %j', (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError);
  });

  test.each([101, 2000, 100_000])('refuses %i nested arrays as too deep', (depth) => {
    expect(() => parseJson('['.repeat(depth) + ']'.repeat(depth))).toThrow(/too deeply.*100 levels/);
  });

  test('takes 100 nested arrays', () => {
    expect(Array.isArray(parseJson('['.repeat(100) + ']'.repeat(100)))).toBe(true);
  });
});

describe('a number with a long text', () => {
  const digits = (count: number): string => `1${'0'.repeat(count - 2)}1`;

  test.each([
    1_001, 16_384, 65_536,
  ])('of %i characters is dropped alone, its neighbours are stored', (count) => {
    const text = `{"id":"intent:1","amount":${digits(count)},"list":[1,${digits(count)},2]}`;
    expect(parseJson(text)).toEqual({ id: 'intent:1', amount: {}, list: [1, {}, 2] });
  });

  test('is stored as its text up to 1,000 characters', () => {
    expect(parseJson(`[${digits(1_000)}]`)).toEqual([digits(1_000)]);
  });

  test.each([
    digits(1_001),
    `-${digits(1_000)}`,
    `0.${digits(1_000)}`,
    `1.${'0'.repeat(1_000)}1`,
    `1e${digits(1_000)}`,
  ])('is refused where its author can be informed', (number) => {
    expect(() => parse(`{"after":${number}}`, { limits: LIMITS.api })).toThrow(
      'JSON with a number that is too long, expected at most 1000 characters',
    );
  });

  test('is refused after its first 1,000 characters, however many follow', () => {
    const refused = limitErrorOf(() => parse(`[${digits(1_000_000)}]`, { limits: LIMITS.api }));
    expect(refused.scanned).toBeLessThan(1_010);
  });

  test('sent as text stays text', () => {
    expect(parseJson(JSON.stringify([digits(65_536)]))).toEqual([digits(65_536)]);
    expect(isExactNumber(digits(65_536))).toBe(false);
  });
});

describe('the pass before parsing', () => {
  const limits = { depth: 3, members: 4, numberCharacters: 5 };

  test.each([
    '[1,2,3,4]',
    '{"a":1,"b":[2,3]}',
    '[[],[],[ ],{}]',
    '"[[[[,,,,\\",,,,,"',
    ' [ [ [ ] ] ] ',
    '[12345]',
  ])('lets %s through', (text) => {
    expect(() => checkJson(text, limits)).not.toThrow();
  });

  test.each([
    ['[1,2,3,4,5]', 'too many members'],
    ['{"a":1,"b":[2,3,4]}', 'too many members'],
    ['[[],[],[],[],[]]', 'too many members'],
    ['[[[[', 'too deeply'],
    ['[{"a":[[]]}]', 'too deeply'],
    ['[123456]', 'a number that is too long'],
  ])('refuses %s', (text, message) => {
    expect(() => checkJson(text, limits)).toThrow(message);
  });

  test.each(['1', '{}', '[]'])('stops at the limit in an endless list of %s', (item) => {
    const text = `[${`${item},`.repeat(500_000)}${item}]`;
    const { scanned } = limitErrorOf(() => parse(text, { limits: LIMITS.api }));
    expect(scanned).toBeLessThanOrEqual((LIMITS.api.members + 1) * (item.length + 1));
  });

  test.each([
    `[${'"\\\\",'.repeat(2_000)}1]`,
    `"${'\\"'.repeat(4_000)}`,
    `[${'1234567,'.repeat(1_000)}1]`,
    `[${' '.repeat(10_000)}]`,
  ])('reads each character at most twice', (text) => {
    const read = vi.spyOn(String.prototype, 'charCodeAt');
    try {
      checkJson(text, LIMITS.upstream);
      expect(read.mock.calls.length).toBeLessThanOrEqual(2 * text.length);
    } finally {
      read.mockRestore();
    }
  });
});

function limitErrorOf(call: () => unknown): JsonLimitError {
  try {
    call();
  } catch (error) {
    if (error instanceof JsonLimitError) return error;
    throw error;
  }
  throw new Error('expected a JsonLimitError');
}
