import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import { intentId } from '../../src/domain/subjects/subject.ts';
import { OpenTransfersStage, record, sent, T0, T0_MS, TOKEN } from '../support/open-transfers-stage.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const HASHES = [hashOf(1), hashOf(2), hashOf(3)];

/** A step of a transfer; the first is the most frequent one. */
const STEP = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      what: fc.constant('take' as const),
      transfer: fc.nat(HASHES.length - 1),
      status: fc.constantFrom(
        'pending',
        'PENDING',
        'filled',
        'settled',
        'expired',
        'refundable',
        'refunded',
        'failed',
        'odd',
      ),
      updatedAt: fc.integer({ min: T0, max: T0 + 50 }),
      // Beyond a double and an integer of Redis.
      amount: fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
      chainId: fc.constantFrom(56, 10),
      token: fc.constantFrom(TOKEN, null),
      wallet: fc.constantFrom('s', 't', 'u'),
      // A client library that lost its connection sends a command twice; a killed process gets no answer.
      fate: fc.constantFrom('answered', 'answered', 'killed'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constantFrom('overdue' as const, 'retire' as const, 'recount' as const),
      transfer: fc.nat(HASHES.length - 1),
    }),
  },
);

test('after any change of transfers and any crash, the counts equal the snapshots of all tracked transfers', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 25 }), async (steps) => {
      const stage = new OpenTransfersStage(inject('redisUrl'));
      try {
        for (const step of steps) {
          const subject = intentId(HASHES[step.transfer] ?? '');
          if (step.what === 'take') {
            const { status, updatedAt, chainId, token, wallet, fate } = step;
            const raw = record(subject, status, updatedAt, sent(String(step.amount), { chainId, token }));
            const nowMs = T0_MS + 1_000_000;
            if (fate === 'killed') await stage.killedWhile((other) => other.take(raw, { nowMs, wallet }));
            else await stage.take(raw, { nowMs, wallet });
          } else if (step.what === 'overdue') {
            await stage.reportOverdue(subject, T0_MS + 3_600_000);
          } else if (step.what === 'retire') {
            await stage.retire(subject);
          } else {
            expect(await stage.subjects.recount()).toEqual([]);
          }
          const truth = await stage.truth();
          expect(await stage.sums()).toEqual(truth.sums);
          expect(await stage.oldest()).toEqual(truth.oldest);
        }
      } finally {
        stage.close();
      }
    }),
    { numRuns: 30 },
  );
});
