import { describe, expect, test } from 'vitest';
import { editDistance, globDistance } from '../../src/domain/edit-distance.ts';
import {
  correctedPattern,
  EVENT_TYPES,
  matchesEventType,
  nearestType,
} from '../../src/domain/events/event-types.ts';

describe('a pattern of event types', () => {
  test.each([
    '*',
    '*.filled',
    '!*.updated',
    '!intent.*',
    'intent.refund*',
    'receiver.*',
    'upstream.authorized',
    '!*.failing',
  ])('%s is known', (pattern) => {
    expect([matchesEventType(pattern), correctedPattern(pattern)]).toEqual([true, null]);
  });

  test.each([
    ['intent.fillled', 'intent.filled'],
    ['!intent.fillled', 'intent.filled'],
    ['*.fillled', 'intent.filled'],
    ['intent.filled.*', 'intent.filled'],
    ['intent', 'intent.error'],
    ['vault.xyz*', 'vault.error'],
    // Events about receivers need a pattern that begins with their own prefix.
    ['*.failing', 'receiver.failing'],
    ['frobnicated-thing.done', null],
  ])('%s matches nothing of the catalogue, where %s is nearest', (pattern, nearest) => {
    expect([matchesEventType(pattern), correctedPattern(pattern)]).toEqual([false, null]);
    expect(nearestType(pattern)?.split('.')[0]).toBe(nearest?.split('.')[0]);
    if (nearest?.includes('fill')) expect(nearestType(pattern)).toBe(nearest);
  });

  test.each([
    ['intnt.*', 'intent.*'],
    ['intents.filled', 'intent.filled'],
    ['!intenT.*', '!intent.*'],
    ['recever.*', 'receiver.*'],
    ['deposit_address.*', 'deposit-address.*'],
    ['vaut', 'vault'],
  ])('%s has a misspelt kind: %s was meant', (pattern, corrected) => {
    expect(correctedPattern(pattern)).toBe(corrected);
  });

  test('of each type in the catalogue is known', () => {
    for (const type of EVENT_TYPES) expect([type, matchesEventType(type)]).toEqual([type, true]);
  });
});

test('the distance of two texts is the number of edits', () => {
  expect(editDistance('kitten', 'sitting')).toBe(3);
  expect([editDistance('', 'abc'), editDistance('abc', ''), editDistance('a', 'a')]).toEqual([3, 3, 0]);
});

test('a `*` of a glob matches any run of characters', () => {
  expect([globDistance('*.filled', 'intent.filled'), globDistance('int*.fild', 'intent.filled')]).toEqual([
    0, 2,
  ]);
  expect([globDistance('*', ''), globDistance('a*', ''), globDistance('**', 'abc')]).toEqual([0, 1, 0]);
});
