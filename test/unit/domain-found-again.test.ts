import { describe, expect, test } from 'vitest';
import { mayBeFoundAgain } from '../../src/domain/changes/decision.ts';
import { walletId } from '../../src/domain/subjects/subject.ts';
import { claimKey } from '../../src/domain/subjects/subscription.ts';

const RESTORED_MS = 1_800_000_000_000;
const HOUR_MS = 3_600_000;
const EPOCH = { epoch: 2, atMs: RESTORED_MS, nowMs: RESTORED_MS + HOUR_MS };

const claimAt = (atMs: number) => ({
  key: claimKey('s', walletId(`0x${'1'.repeat(40)}`)),
  atMs,
  historyBefore: null,
  served: false,
});
const EARLY = claimAt(RESTORED_MS - HOUR_MS);
const LATE = claimAt(RESTORED_MS + HOUR_MS);
const secondsAfter = (seconds: number): number => RESTORED_MS / 1_000 + seconds;
const lost = { snapshot: null, stored: [], fresh: [EARLY] };

describe('a state may have been reported before a restore', () => {
  test('never in the first epoch', () => {
    expect(mayBeFoundAgain(lost, null, { ...EPOCH, epoch: 1, atMs: null })).toBe(false);
  });

  test('where the subject has no event of this epoch', () => {
    const earlier = { ...lost, snapshot: { epoch: 1 } };
    expect(mayBeFoundAgain(earlier, secondsAfter(99), EPOCH)).toBe(true);
    expect(mayBeFoundAgain({ ...earlier, snapshot: { epoch: 2 } }, secondsAfter(99), EPOCH)).toBe(false);
  });

  test('where Redis does not have the subject, a page of a wallet from before shows it, and its time is no later', () => {
    expect(mayBeFoundAgain(lost, secondsAfter(-60), EPOCH)).toBe(true);
    expect(mayBeFoundAgain(lost, secondsAfter(60), EPOCH)).toBe(true);
    expect(mayBeFoundAgain(lost, secondsAfter(600), EPOCH)).toBe(false);
    expect(mayBeFoundAgain({ ...lost, fresh: [LATE] }, secondsAfter(-60), EPOCH)).toBe(false);
  });

  test('where it has no time, for a day', () => {
    expect(mayBeFoundAgain(lost, null, EPOCH)).toBe(true);
    expect(mayBeFoundAgain(lost, null, { ...EPOCH, nowMs: RESTORED_MS + 25 * HOUR_MS })).toBe(false);
  });

  test('where a claim on it from before was not lost', () => {
    expect(mayBeFoundAgain({ ...lost, stored: [EARLY], fresh: [] }, secondsAfter(600), EPOCH)).toBe(true);
  });
});
