import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decide } from '../../src/domain/changes/decide.ts';
import { nextSnapshot } from '../../src/domain/changes/next-snapshot.ts';
import { type RouteQuote, routeRecord } from '../../src/domain/quotes/route.ts';
import type { Snapshot } from '../../src/domain/subjects/record.ts';
import { quoteOf, ROUTE } from '../support/routes.ts';

const CONTEXT = { nowMs: 1_000, exact: true, history: false, confirmAfterMs: 600_000 };

/** Outputs around one amount, so that small and large moves both come often. */
const output = fc.oneof(
  { weight: 30, arbitrary: fc.bigInt({ min: 98_000_000n, max: 102_000_000n }) },
  { weight: 1, arbitrary: fc.bigInt({ min: 0n, max: 10n ** 30n }) },
);
const quote = fc
  .record({
    output: output.map(String),
    solver: fc.constantFrom('0x01', '0x02', null),
    minimumOutput: fc.option(output.map(String)),
    fillEstimateSeconds: fc.option(fc.nat(100)),
    id: fc.uuid(),
  })
  .map(({ output, ...facts }) => quoteOf(output, facts));
const answer = fc.oneof(
  { weight: 1, arbitrary: fc.constant([]) },
  { weight: 4, arbitrary: fc.array(quote, { maxLength: 4 }) },
);
const share = fc.integer({ min: 1, max: 30_000 });

function take(
  snapshot: Snapshot | null,
  quotes: readonly RouteQuote[],
  movedBy: number,
): { type: string | null; isStored: boolean; snapshot: Snapshot | null } {
  const record = routeRecord({ ...ROUTE, movedBy }, quotes);
  const decision = decide(snapshot, record, CONTEXT);
  if (decision.outcome === 'stale') throw new Error('a route has no stale answers');
  const event = decision.outcome === 'first' || decision.outcome === 'changed';
  const type = event ? decision.transition.type : null;
  if (decision.accepted === null) return { type, isStored: false, snapshot };
  const next = nextSnapshot(snapshot, decision.accepted, { subject: record.subject, nowMs: 1_000, event });
  return { type, isStored: true, snapshot: { ...next, commit: 0, reported: true } };
}

function bestOf(quotes: readonly RouteQuote[]): bigint | null {
  return quotes.reduce<bigint | null>((best, { output }) => {
    const value = BigInt(output);
    return best === null || value > best ? value : best;
  }, null);
}

test('a move is reported exactly when the output differs from the one reported last by more than the share', () => {
  fc.assert(
    fc.property(fc.array(answer, { minLength: 1, maxLength: 12 }), share, (answers, millionths) => {
      let snapshot: Snapshot | null = null;
      let reported: bigint | null | undefined;
      for (const quotes of answers) {
        const best = bestOf(quotes);
        const ingested = take(snapshot, quotes, millionths / 1_000_000);
        snapshot = ingested.snapshot;
        let expected: string | null = null;
        if (reported === undefined || (reported === null) !== (best === null)) {
          expected = best === null ? 'route.unavailable' : 'route.available';
        } else if (reported !== null && best !== null) {
          const far =
            (best > reported ? best - reported : reported - best) * 1_000_000n >
            reported * BigInt(millionths);
          expected = far ? 'route.moved' : null;
        }
        expect(ingested.type).toBe(expected);
        if (expected !== null) reported = best;
      }
    }),
    { numRuns: 500 },
  );
});

test('the order of quotes means nothing: any order of the same quotes is no event and nothing to store', () => {
  const shuffled = fc
    .array(quote, { minLength: 1, maxLength: 5 })
    .chain((quotes) =>
      fc.tuple(fc.constant(quotes), fc.shuffledSubarray(quotes, { minLength: quotes.length })),
    );
  fc.assert(
    fc.property(
      fc.array(answer, { maxLength: 3 }),
      shuffled,
      share,
      (before, [quotes, again], millionths) => {
        const movedBy = millionths / 1_000_000;
        let { snapshot } = take(null, [], movedBy);
        for (const earlier of [...before, quotes]) snapshot = take(snapshot, earlier, movedBy).snapshot;
        // Once more in the same order, and in another.
        expect(take(snapshot, quotes, movedBy)).toEqual({ type: null, isStored: false, snapshot });
        expect(take(snapshot, again, movedBy)).toEqual({ type: null, isStored: false, snapshot });
      },
    ),
    { numRuns: 500 },
  );
});
