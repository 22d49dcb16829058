import { describe, expect, test } from 'vitest';
import type { Transition } from '../../src/domain/changes/decision.ts';
import { eventId } from '../../src/domain/events/event.ts';
import { RENDERED_EVENT } from '../../src/domain/events/event-schema.ts';
import { EVENT_TYPES, OPERATOR_TYPES, TEST_TYPE } from '../../src/domain/events/event-types.ts';
import { isOperatorType, matchGlob, wantsType } from '../../src/domain/events/filter.ts';
import {
  type EventInput,
  makeEvent,
  type RenderedSubscription,
  renderEvent,
} from '../../src/domain/events/make-event.ts';

const TRANSITION: Transition = {
  type: 'intent.filled',
  status: 'filled',
  previousStatus: 'pending',
  changes: ['status'],
  skipped: false,
  regression: false,
};
const PARTS: EventInput = {
  subject: { kind: 'intent', id: 'intent:0xaa' },
  sequence: 3,
  epoch: 1,
  transition: TRANSITION,
  record: { id: 'intent:0xaa', status: 'filled', amount: '1' },
  updatedAt: 1_763_638_259,
  nowMs: 1_763_638_259_900,
};

describe('patterns of events', () => {
  test.each([
    ['***…x', `${'*'.repeat(127)}x`, 'intent.incomplete-deposit'],
    ['*a*a…x', `${'*a'.repeat(63)}x`, 'a'.repeat(200)],
    ['*aa…b', `*${'a'.repeat(126)}b`, 'a'.repeat(200)],
  ])('are matched in a bounded number of steps: %s', (_, pattern, type) => {
    const { matches, steps } = matchGlob(pattern, type);
    expect(matches).toBe(false);
    expect(steps).toBeLessThanOrEqual((pattern.length + 1) * (type.length + 1));
  });

  test.each<[string[], string, boolean]>([
    [['*'], 'intent.filled', true],
    [[], 'intent.filled', false],
    [['intent.*'], 'intent.filled', true],
    [['intent.*'], 'intents.filled', false],
    [['intent.*'], 'xintent.filled', false],
    [['intent.filled'], 'intent.filled', true],
    [['intent.filled'], 'intentxfilled', false],
    [['intent.filled'], 'intent.filled.late', false],
    [['intent.refund*'], 'intent.refundable', true],
    [['*.overdue'], 'deposit-address.overdue', true],
    [['*.*d'], 'intent.filled', true],
    [['intent.*', '!*.updated'], 'intent.updated', false],
    [['!*.updated', 'intent.*'], 'intent.updated', false],
    [['intent.*', '!*.updated'], 'intent.filled', true],
    [['!intent.filled'], 'intent.settled', false],
    [['*', '!intent.*'], 'quote.active', true],
    [['a+.(b)*'], 'a+.(b)c', true],
    [['a+.(b)*'], 'aa.bc', false],
  ])('%j let %s through: %s', (patterns, type, expected) => {
    expect(wantsType(patterns, type)).toBe(expected);
  });

  test.each<[string[], string, boolean]>([
    [['*'], 'upstream.unreachable', false],
    [['*.unreachable'], 'upstream.unreachable', false],
    [['up*'], 'upstream.unreachable', false],
    [['upstream.*'], 'upstream.unreachable', true],
    [['*', 'upstream.unreachable'], 'upstream.unreachable', true],
    [['upstream.*'], 'receiver.failing', false],
    [['*'], 'intentwatch.storage_truncated', false],
    [['intentwatch.*'], 'intentwatch.storage_truncated', true],
    [['receiver.*', '!receiver.failing'], 'receiver.failing', false],
    [['receiver.*', '!receiver.failing'], 'receiver.disabled', true],
  ])('let an event for the operator through only by its own name: %j, %s: %s', (patterns, type, expected) => {
    expect(wantsType(patterns, type)).toBe(expected);
  });

  test('know the events for the operator from all others', () => {
    expect(EVENT_TYPES.filter(isOperatorType)).toEqual([...OPERATOR_TYPES, TEST_TYPE]);
    expect(isOperatorType('receiver.disabled')).toBe(true);
    expect(isOperatorType('upstreams.filled')).toBe(false);
  });
});

describe('an event', () => {
  test('carries the facts of the transition', () => {
    expect(makeEvent(PARTS)).toEqual({
      id: expect.stringMatching(/^evt_[0-9a-f]{40}$/),
      type: 'intent.filled',
      timestamp: '2025-11-20T11:30:59.900Z',
      data: {
        subject: { kind: 'intent', id: 'intent:0xaa' },
        sequence: 3,
        epoch: 1,
        status: 'filled',
        previousStatus: 'pending',
        changes: ['status'],
        record: PARTS.record,
        upstreamUpdatedAt: 1_763_638_259,
        detectionDelaySeconds: 0.9,
      },
    });
  });

  test.each<[string, Partial<EventInput>, number | undefined]>([
    ['moves on', {}, 23],
    ['moves on at a time before, by a wrong clock', { updatedAt: 1_763_638_230 }, 0],
    ['moves on at no known time', { updatedAt: null }, undefined],
    ['was not waiting', { waitingSince: null }, undefined],
    ['is first seen', { transition: { ...TRANSITION, previousStatus: null } }, undefined],
    ['waits on', { transition: { ...TRANSITION, type: 'intent.updated', status: 'PENDING' } }, undefined],
    [
      'is overdue',
      {
        transition: { ...TRANSITION, type: 'intent.overdue', status: 'pending' },
        updatedAt: 1_763_638_236,
        nowMs: 1_763_639_136_900,
      },
      900,
    ],
  ])('states the waiting time of a subject that %s', (_, fields, seconds) => {
    const { data } = makeEvent({ ...PARTS, waitingSince: 1_763_638_236, ...fields });
    expect(data.elapsedSeconds).toBe(seconds);
    expect(Object.hasOwn(data, 'elapsedSeconds')).toBe(seconds !== undefined);
  });

  test('has skipped and regression only where they are true', () => {
    const { data } = makeEvent({ ...PARTS, transition: { ...TRANSITION, skipped: true, regression: true } });
    expect(data).toMatchObject({ skipped: true, regression: true });
    expect(Object.keys(makeEvent(PARTS).data)).not.toEqual(expect.arrayContaining(['skipped']));
    expect(Object.keys(makeEvent(PARTS).data)).not.toEqual(expect.arrayContaining(['regression']));
  });

  test('has the same id at any time, in any place, by any path, with members in any order', () => {
    const { id } = makeEvent(PARTS);
    const record = { amount: '1', status: 'filled', id: 'intent:0xaa' };
    expect(makeEvent({ ...PARTS, nowMs: 5, updatedAt: null, record }).id).toBe(id);
    expect(makeEvent({ ...PARTS, sequence: 4, epoch: 2 }).id).toBe(id);
    expect(makeEvent({ ...PARTS, transition: { ...TRANSITION, previousStatus: null, changes: [] } }).id).toBe(
      id,
    );
  });

  test.each<[string, Partial<EventInput>]>([
    ['subject', { subject: { kind: 'intent', id: 'intent:0xab' } }],
    ['type', { transition: { ...TRANSITION, type: 'intent.updated' } }],
    ['record', { record: { ...PARTS.record, amount: '2' } }],
  ])('has another id for another %s', (_, other) => {
    expect(makeEvent({ ...PARTS, ...other }).id).not.toBe(makeEvent(PARTS).id);
  });

  test('distinguishes the parts of an id', () => {
    expect(eventId(['ab', 'c'])).not.toBe(eventId(['a', 'bc']));
    expect(eventId(['a","b'])).not.toBe(eventId(['a', 'b']));
  });

  test.each<[number | null, number, number | null]>([
    [100, 100_000, 0],
    [100, 100_949, 0.9],
    [100, 160_000, 60],
    [101, 100_000, 0],
    [101, 100_999, 0],
    [null, 100_000, null],
  ])('of %s seen at %i ms was detected after %s s', (updatedAt, nowMs, seconds) => {
    expect(makeEvent({ ...PARTS, updatedAt, nowMs }).data.detectionDelaySeconds).toBe(seconds);
  });
});

describe('an event as a receiver gets it', () => {
  const subscriptions = new Map<string, RenderedSubscription>([
    ['b-second', { name: 'b-second', order: 2, metadata: { order: '2', team: 'second' } }],
    ['a-third', { name: 'a-third', order: 3, metadata: { order: '3' } }],
    ['c-first', { name: 'c-first', order: 1, metadata: { team: 'first', own: 'yes' } }],
    ['secret', { name: 'secret', order: 0, metadata: { secret: 'of another', order: '0' } }],
  ]);
  const render = (...claimKeys: string[]) => renderEvent(makeEvent(PARTS), claimKeys, subscriptions);

  test('merges metadata in the order of the config, for any order of the claims', () => {
    const claimKeys = ['a-third|intent:0xaa', 'c-first|wallet:0x1', 'b-second|wallet:0x2'];
    for (const order of [claimKeys, [...claimKeys].reverse()]) {
      expect(render(...order).data).toMatchObject({
        subscriptions: ['c-first', 'b-second', 'a-third'],
        metadata: { team: 'second', own: 'yes', order: '3' },
      });
    }
  });

  test('shows only its own wallets, subscriptions and metadata', () => {
    const text = JSON.stringify(render('c-first|wallet:0x1'));
    expect(text).not.toContain('secret');
    expect(text).not.toContain('second');
    expect(render('c-first|wallet:0x1').data).toMatchObject({
      wallets: ['0x1'],
      subscriptions: ['c-first'],
      metadata: { team: 'first', own: 'yes' },
    });
  });

  test('names a subscription once, however many of its subjects lead to it', () => {
    expect(render('c-first|wallet:0x1', 'c-first|wallet:0x2', 'c-first|intent:0xaa').data).toMatchObject({
      wallets: ['0x1', '0x2'],
      subscriptions: ['c-first'],
    });
  });

  test('still names a subscription that has gone, last and without metadata', () => {
    expect(render('gone|wallet:0x9', 'c-first|wallet:0x1').data).toMatchObject({
      subscriptions: ['c-first', 'gone'],
      metadata: { team: 'first', own: 'yes' },
    });
  });

  test('is empty of them without claims, and fits the published schema in any case', () => {
    expect(render().data).toMatchObject({ wallets: [], subscriptions: [], metadata: {} });
    for (const rendered of [render(), render('c-first|wallet:0x1', 'gone|wallet:0x9')]) {
      expect(RENDERED_EVENT.parse(rendered)).toEqual(rendered);
    }
  });

  test('retains id, type, time and facts of the event', () => {
    const event = makeEvent(PARTS);
    const { id, type, timestamp, data } = render('c-first|wallet:0x1');
    expect({ id, type, timestamp }).toEqual({ id: event.id, type: event.type, timestamp: event.timestamp });
    expect(data).toMatchObject(event.data);
  });

  test('does not change the configured metadata', () => {
    render('c-first|wallet:0x1', 'a-third|wallet:0x1');
    expect(subscriptions.get('c-first')?.metadata).toEqual({ team: 'first', own: 'yes' });
  });
});
