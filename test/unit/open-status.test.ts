import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../../src/domain/json.ts';
import { readOpenStatus } from '../../src/upstream/wire/open-status.ts';

function statusOf(status: JsonValue, beside: { [name: string]: JsonValue } = {}): string | undefined {
  const parsed = readOpenStatus({ data: { status, ...beside } });
  return 'value' in parsed ? parsed.value.status : `mismatch: ${parsed.mismatch}`;
}

describe('a sub-status of the open source', () => {
  test.each([
    ['WaitingToFulfill', 'pending'],
    ['WaitingForRefund', 'refundable'],
    ['Fulfilled', 'filled'],
    ['Refunded', 'refunded'],
  ])('%s is %s in any nesting and spelling', (word, status) => {
    const phase = status === 'filled' || status === 'refunded' ? 'Completed' : 'Pending';
    const snake = word.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
    for (const spelled of [word, word.toLowerCase(), snake, snake.toLowerCase().replaceAll('_', '-')]) {
      const shapes: JsonValue[] = [
        spelled,
        { [phase]: spelled },
        { [phase.toLowerCase()]: { [spelled]: {} } },
        { [phase]: { [spelled]: true, reason: 'Other' } },
        { [phase]: { subStatus: spelled, since: 1_763_638_259 } },
        { Pending: null, Completed: null, [phase]: spelled },
        { status: phase, sub_status: spelled },
        { type: phase, value: { type: spelled } },
      ];
      expect(shapes.map((shape) => statusOf(shape))).toEqual(shapes.map(() => status));
      expect(statusOf(phase, { subStatus: spelled })).toBe(status);
    }
  });

  test.each([
    ['Cancelled', 'Cancelled'],
    [{ Pending: 'Queued' }, 'Queued'],
    [{ Completed: { Recovered: {} } }, 'Recovered'],
    ['Pending', 'Pending'],
    [{ Completed: {} }, 'Completed'],
    [{ Pending: { reason: 'the solver is slow', since: 5 } }, 'Pending'],
  ])('of another word passes as it is: %j', (status, word) => {
    expect(statusOf(status)).toBe(word);
  });

  test.each([
    [null, 'null as data.status'],
    [{}, 'an object as data.status'],
    [7, 'a number as data.status'],
    [{ Pending: 'WaitingToFulfill', Completed: 'Fulfilled' }, '2 sub-statuses as data.status'],
  ])('is not read from %j', (status, mismatch) => {
    expect(statusOf(status)).toBe(`mismatch: ${mismatch}`);
  });

  test('is read from few words of a status of any size', () => {
    const wide = Object.fromEntries(Array.from({ length: 9_999 }, (_, index) => [`m${index}`, 'Fulfilled']));
    expect(statusOf({ Pending: wide })).toBe('Pending');
    let deep: JsonValue = 'Fulfilled';
    for (let level = 0; level < 90; level += 1) deep = { Pending: deep };
    expect(statusOf(deep)).toBe('Pending');
  });
});

describe('an answer of the open source', () => {
  test('may be a list of one, names its intents, and is stored whole', () => {
    const data = {
      status: { Pending: 'WaitingToFulfill' },
      intentHash: '0xAB',
      intentCreated: { intentHash: '0xab' },
    };
    const value = { status: 'pending', intentHashes: ['0xab', '0xab'], raw: data };
    expect(readOpenStatus({ data })).toEqual({ value });
    expect(readOpenStatus({ data: [data] })).toEqual({ value });
  });

  test.each([
    [[], 'an array as the body'],
    [{ data: null }, 'null as data'],
    [{ data: [] }, 'an array as data'],
    [{ data: [{}, {}] }, 'an array as data'],
  ])('is malformed as %j', (body, mismatch) => {
    expect(readOpenStatus(body)).toEqual({ mismatch });
  });
});
