import { expect, test } from 'vitest';
import { claimsOnExpired, isExpired, mayBeExpired } from '../../src/domain/changes/decision.ts';
import { intentId } from '../../src/domain/subjects/subject.ts';
import type { Claim } from '../../src/domain/subjects/subscription.ts';

const DAY_S = 86_400;
const DAY_MS = 86_400_000;
const READ_MS = 100 * DAY_MS;
const WALLET = { readAtMs: READ_MS, confirmedMs: READ_MS + DAY_MS, retentionMs: 30 * DAY_MS };
const CLAIM: Claim = { key: 's|wallet:0x1', atMs: 10 * DAY_MS, historyBefore: null, served: false };

function record(status: string, updatedAt: number | null) {
  return { subject: intentId('0x7'), status, updatedAt, names: [], raw: {}, unreadable: [] };
}

test.each([
  ['settled', 1, true],
  ['refunded', 1, true],
  ['pending', 1, false],
  ['filled', 1, false],
  ['refundable', 1, false],
  ['settled', null, false],
  ['a-word-of-its-own', 1, false],
])('an unknown record with the status %s and the time %s may have been removed: %s', (status, at, may) => {
  expect(mayBeExpired(record(status, at), {})).toBe(may);
});

test.each([
  ['ended the retention before the wallet was read', {}, 70 * DAY_S, true],
  ['ended a second later', {}, 70 * DAY_S + 1, false],
  ['of a wallet that was never read', { readAtMs: 0 }, 1, false],
  ['of a wallet that was read at a time that is not confirmed', { confirmedMs: READ_MS - 1 }, 1, false],
])('one that %s', (_, more, updatedAt, expired) => {
  const wallet = { ...WALLET, ...more };
  expect(isExpired(record('settled', updatedAt), { claims: [CLAIM], wallet })).toBe(expired);
});

test('one is news for a subscription that came after the wallet was read', () => {
  const later = { ...CLAIM, key: 't|wallet:0x1', atMs: READ_MS + 1 };
  expect(claimsOnExpired([CLAIM, later], WALLET).map(({ historyBefore }) => historyBefore)).toEqual([
    70 * DAY_S + 1,
    null,
  ]);
  expect(isExpired(record('settled', 1), { claims: [CLAIM, later], wallet: WALLET })).toBe(false);
});
