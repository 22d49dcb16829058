import { describe, expect, test } from 'vitest';
import { accountRoute } from '../../demo/account-routes.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';

function event(word: string, output: string | null, sequence: number): RenderedEvent {
  return {
    id: `evt_${sequence}`,
    type: `route.${word}`,
    timestamp: '2026-11-20T11:31:00.123Z',
    data: {
      subject: { kind: 'route', id: 'route:a' },
      sequence,
      epoch: 1,
      status: null,
      previousStatus: null,
      changes: ['output'],
      record: { output },
      upstreamUpdatedAt: null,
      detectionDelaySeconds: null,
      wallets: [],
      subscriptions: [],
      metadata: {},
    },
  };
}

const ANSWERS = [['100', '1000'], ['1004'], ['1006'], [], [], ['1006']].map((outputs) => ({ outputs }));
const EVENTS = [
  event('available', '1000', 1),
  event('moved', '1006', 2),
  event('unavailable', null, 3),
  event('available', '1006', 4),
];
const problemsOf = (events: RenderedEvent[]): string[] =>
  accountRoute({ answers: ANSWERS, events, movedByMillionths: 5_000n, hasUnused: false }).problems;

describe('the account of a route', () => {
  test('adds up when each piece of news came once', () => {
    const sums = accountRoute({
      answers: ANSWERS,
      events: EVENTS.toReversed(),
      movedByMillionths: 5_000n,
      hasUnused: false,
    });
    expect(sums).toEqual({ shown: 6, due: 4, reported: 4, problems: [] });
  });

  test('does not check which events came where an answer was not used', () => {
    const account = { answers: ANSWERS, movedByMillionths: 5_000n, hasUnused: true };
    expect(accountRoute({ ...account, events: EVENTS.slice(0, 3) }).problems).toEqual([]);
    expect(accountRoute({ ...account, events: EVENTS.slice(1) }).problems).toHaveLength(1);
  });

  test.each([
    ['an event is missing', EVENTS.slice(0, 3)],
    ['an event was invented', [...EVENTS, event('moved', '1007', 5)]],
    ['an event has another output', [event('available', '100', 1), ...EVENTS.slice(1)]],
    ['a sequence has a gap', [...EVENTS.slice(0, 3), event('available', '1006', 5)]],
  ])('reports it when %s', (_, events) => {
    expect(problemsOf(events)).toHaveLength(1);
  });
});
