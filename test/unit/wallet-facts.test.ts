import { expect, test } from 'vitest';
import { parseFacts } from '../../src/store/wallets.ts';

const NOW_MS = Date.UTC(2026, 0, 7);
const MONTH_MS = 31 * 86_400_000;

test('a listing that was polled by a clock that ran ahead counts as never polled', () => {
  const stored = {
    'polled:head': String(NOW_MS + MONTH_MS),
    'virtual:head': '5',
    'polled:pending': String(NOW_MS - 1_000),
    'virtual:pending': '6',
  };
  expect(parseFacts(stored, NOW_MS).polled).toEqual({ pending: { atMs: NOW_MS - 1_000, virtual: 6 } });
});
