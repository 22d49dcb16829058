import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Found, TxState } from '../../src/domain/proof/proof.ts';
import { type PostponeReason, planRecheck } from '../../src/domain/proof/recheck-times.ts';
import { WAITING_REASONS } from '../../src/domain/proof/verdict.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

function blockAt(number: number) {
  return { number: String(number), hash: `0x${number}`, timestamp: number * 12 };
}

function found(endpoint: string, { number = 100, head = 110 } = {}): Found {
  return {
    endpoint,
    host: endpoint,
    outcome: 'found',
    block: blockAt(number),
    head: blockAt(head),
    isFinal: head >= number,
    succeeded: true,
    moves: [],
    fulfilled: null,
  };
}

const failed = (endpoint: string): TxState => ({
  endpoint,
  host: endpoint,
  outcome: 'failed',
  reason: 'down',
});

function absent(endpoint: string, head: number | null = 110): TxState {
  return {
    endpoint,
    host: endpoint,
    outcome: 'absent',
    isSynced: true,
    head: head === null ? null : blockAt(head),
  };
}

function planned(
  because: PostponeReason,
  txStates: TxState[],
  { ageMs = 20 * MINUTE_MS, sinceSeenMs = null }: { ageMs?: number; sinceSeenMs?: number | null } = {},
) {
  return planRecheck({ because, txStates, ageMs, sinceSeenMs });
}

describe('the state of an endpoint', () => {
  const cases: [string, TxState, TxState, object][] = [
    ['that fails', failed('own'), found('other'), { outcome: 'failed', head: null, until: null }],
    ['that has it final', found('own'), failed('other'), { outcome: 'answered', head: '110', until: null }],
    [
      'that has it in a block that is not final',
      found('own', { head: 99 }),
      found('other'),
      { outcome: 'answered', head: '99', until: '100' },
    ],
    [
      'that is behind the block that another has',
      absent('own', 99),
      found('other'),
      { outcome: 'answered', head: '99', until: '100' },
    ],
    [
      'that lacks what another has',
      absent('own', 100),
      found('other'),
      { outcome: 'failed', head: '100', until: null },
    ],
    [
      'that lacks what nobody has',
      absent('own'),
      failed('other'),
      { outcome: 'absent', head: '110', until: null },
    ],
  ];
  test.each(cases)('%s', (_, own, other, state) => {
    expect(planned('not-found', [own, other]).endpoints[0]).toEqual({ name: 'own', ...state });
  });
});

describe('the time of the next observation', () => {
  const cases: [
    string,
    PostponeReason,
    TxState[],
    { ageMs?: number; sinceSeenMs?: number | null },
    number,
  ][] = [
    ['leaves endpoints that are down to their probes', 'unreachable', [failed('own')], { ageMs: 5 }, 900_000],
    [
      'is that of the block, where it is near',
      'not-final',
      [found('own', { head: 99 })],
      { ageMs: 8 },
      12_000,
    ],
    [
      'leaves a block that is far to the watch of the final head',
      'not-final',
      [found('own', { head: 90 })],
      { ageMs: 8 },
      180_000,
    ],
    [
      'leaves a block that should be final long ago to the watch',
      'not-final',
      [found('own', { head: 99 })],
      { ageMs: 10 * MINUTE_MS },
      135_000,
    ],
    ['is near after a reorganisation', 'not-found', [absent('own')], { sinceSeenMs: HOUR_MS - 1 }, 15_000],
    [
      'is far for what was in no block for an hour',
      'not-found',
      [absent('own')],
      { sinceSeenMs: HOUR_MS },
      150_000,
    ],
    ['grows with the age of what no endpoint has', 'not-found', [absent('own')], { ageMs: 5_000 }, 5_000],
    [
      'is at most 15 s in the first 15 minutes',
      'not-found',
      [absent('own')],
      { ageMs: 14 * MINUTE_MS },
      15_000,
    ],
    [
      'is at most 15 minutes',
      'disagreement',
      [found('own'), found('other')],
      { ageMs: 99 * HOUR_MS },
      900_000,
    ],
    [
      'is the hour after which one host is believed',
      'one-endpoint',
      [found('own'), failed('other')],
      { ageMs: HOUR_MS - 5_000 },
      5_000,
    ],
  ];
  test.each(cases)('%s', (_, because, txStates, more, inMs) => {
    expect(planned(because, txStates, more).inMs).toBe(inMs);
  });
});

const txState = fc.oneof(
  fc.constantFrom('own', 'other', 'third').map(failed),
  fc
    .tuple(fc.constantFrom('own', 'other', 'third'), fc.integer({ min: 0, max: 500 }))
    .map(([name, head]) => absent(name, head)),
  fc
    .tuple(
      fc.constantFrom('own', 'other', 'third'),
      fc.integer({ min: 0, max: 500 }),
      fc.integer({ min: 0, max: 500 }),
    )
    .map(([name, number, head]) => found(name, { number, head })),
);

test('no wait longer than 15 s is without something that ends it early, but where no endpoint knows the payment', () => {
  const waits = fc.record({
    because: fc.constantFrom<PostponeReason>(...WAITING_REASONS, 'not-stated'),
    txStates: fc.array(txState, { minLength: 1, maxLength: 3 }),
    ageMs: fc.integer({ min: 0, max: 14 * 24 * HOUR_MS }),
    sinceSeenMs: fc.option(fc.integer({ min: 0, max: 2 * HOUR_MS })),
  });
  fc.assert(
    fc.property(waits, ({ because, txStates, ageMs, sinceSeenMs }) => {
      const { inMs, endpoints } = planRecheck({ because, txStates, ageMs, sinceSeenMs });
      expect(inMs).toBeGreaterThanOrEqual(2_000);
      expect(inMs).toBeLessThanOrEqual(900_000);
      const isAwaited = endpoints.some(({ outcome, until }) => outcome === 'failed' || until !== null);
      const isOther = ['claimed', 'funding', 'not-stated', 'unreachable'].includes(because);
      const isYoung = ageMs < 15 * MINUTE_MS;
      if (inMs > 15_000 && !isOther && isYoung) expect(isAwaited).toBe(true);
    }),
  );
});
