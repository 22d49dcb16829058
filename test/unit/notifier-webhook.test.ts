import { describe, expect, test } from 'vitest';
import { printableAnswer, printableLine } from '../../src/notifiers/printable.ts';
import { classifyAnswer, parseRetryAfter } from '../../src/notifiers/webhook/exchange.ts';
import { redactor, secretsOfUrl } from '../../src/redact.ts';

const NOW_MS = Date.parse('2026-11-20T11:31:00Z');
const ANSWER = { retryAfter: undefined, ended: true, timedOutAfterMs: null, nowMs: NOW_MS };

describe('the meaning of an answer', () => {
  test.each([
    [200, 'delivered'],
    [204, 'delivered'],
    [299, 'delivered'],
    [301, 'failed'],
    [304, 'failed'],
    [308, 'failed'],
    [400, 'failed'],
    [401, 'failed'],
    [404, 'failed'],
    [410, 'rejected'],
    [429, 'failed'],
    [500, 'failed'],
    [599, 'failed'],
  ])('%i is %s', (httpStatus, outcome) => {
    expect(classifyAnswer({ ...ANSWER, httpStatus }).outcome).toBe(outcome);
  });

  test.each([429, 502, 503, 504])('%i honours Retry-After', (httpStatus) => {
    expect(classifyAnswer({ ...ANSWER, httpStatus, retryAfter: '7' }).retryAfterMs).toBe(7_000);
  });

  test.each([200, 302, 410, 500])('%i does not honour Retry-After', (httpStatus) => {
    expect(classifyAnswer({ ...ANSWER, httpStatus, retryAfter: '7' }).retryAfterMs).toBeNull();
  });
});

test('a success whose body did not end in time is a failure that waits as long as the timeout was', () => {
  const slow = { ...ANSWER, httpStatus: 200, ended: false, timedOutAfterMs: 15_000 };
  expect(classifyAnswer(slow)).toMatchObject({ outcome: 'failed', retryAfterMs: 15_000 });
});

describe('Retry-After', () => {
  test.each([
    ['0', 0],
    ['120', 120_000],
    [' 120 ', 120_000],
    ['999999999999', 3_600_000],
    ['Fri, 20 Nov 2026 11:31:30 GMT', 30_000],
    ['Fri, 20 Nov 2026 11:30:00 GMT', 0],
    ['Sat, 21 Nov 2026 11:31:00 GMT', 3_600_000],
    ['soon', null],
    ['-1', null],
    ['1.5', null],
    ['Fri, 99 Nov 2026', null],
    ['', null],
    [undefined, null],
  ])('%j requests %j ms', (header, expected) => {
    expect(parseRetryAfter(header, NOW_MS)).toBe(expected);
  });
});

describe('text from outside', () => {
  test('becomes one line without control characters or marks that reorder it', () => {
    expect(printableLine('a\r\nBcc: x\u0000\u001b[31m\u202egpj.exe \ud800')).toBe(
      'a Bcc: x [31m gpj.exe \ufffd',
    );
  });

  test('is cut between characters', () => {
    expect(printableLine('abc\u{1f600}def', 5)).toBe('abc…');
  });

  test('an answer that was cut within a character loses that character only', () => {
    expect(printableAnswer(Buffer.from('aé').subarray(0, 2))).toBe('a');
    expect(printableAnswer(Buffer.from([0x61, 0xff, 0x62]))).toBe('a?b');
  });
});

describe('redaction', () => {
  const url = new URL('https://example.com/hooks/T012345678901?key=abcdefghijklmnop&v=1');

  test.each([
    ['no such path: /hooks/T012345678901?key=abcdefghijklmnop&v=1', 'no such path: [secret]'],
    ['unknown token T012345678901', 'unknown token [secret]'],
    ['bad key abcdefghijklmnop', 'bad key [secret]'],
    ['hooks at example.com', 'hooks at [secret]'],
    ['bad key cut off in abcdefg', 'bad key cut off in [secret]'],
  ])('%s', (answer, expected) => {
    expect(redactor(secretsOfUrl(url))(answer, { cut: true })).toBe(expected);
  });

  test.each([
    ['correct horse battery', 'key=correct+horse+battery&x=1', 'key=[secret]&x=1'],
    ['a+b correct horse', 'key=a%2Bb+correct+horse', 'key=[secret]'],
    ['first\nsecond\tthird', JSON.stringify({ e: 'bad first\nsecond\tthird' }), '{"e":"bad [secret]"}'],
  ])('%j in the spelling of a form or of JSON', (secret, answer, expected) => {
    expect(redactor([secret])(answer)).toBe(expected);
  });
});
