import { describe, expect, test } from 'vitest';
import { parseJson } from '../../src/domain/parse-json.ts';

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
  ])('keeps %s as the number it is', (text, value) => {
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
  ])('keeps %s as its text, because a number would change it', (text) => {
    expect(parseJson(`{"amount":[${text}]}`)).toEqual({ amount: [text] });
  });

  test('drops members named __proto__ and changes no prototype', () => {
    const value = parseJson('{"a":{"__proto__":{"polluted":true},"b":1},"__proto__":{"polluted":true}}');
    expect(value).toEqual({ a: { b: 1 } });
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    const copy = Object.assign({}, Object(value));
    expect('polluted' in copy || 'polluted' in {}).toBe(false);
  });

  test('keeps members named constructor and toString as plain data', () => {
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
