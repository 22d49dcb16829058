import { expect, test } from 'vitest';
import { LoadLimit } from '../../src/queues/polls/dispatcher.ts';

function limitOf(capacity: number): { limit: LoadLimit; busy: (share: number, used: number) => number } {
  let share = 0;
  const limit = new LoadLimit(capacity, () => ({ share, ofMs: 100 }));
  const busy = (now: number, used: number): number => {
    share = now;
    limit.adapt(used);
    return limit.allowed;
  };
  return { limit, busy };
}

test('polls that wait for a slow upstream are joined by more, up to the capacity', () => {
  const { limit, busy } = limitOf(1_000);
  expect(limit.allowed).toBe(400);
  const allowed = [1, 2, 3, 4].map(() => busy(0.3, limit.allowed));
  expect(allowed).toEqual([600, 900, 1_000, 1_000]);
});

test('a process that is the bottleneck itself has fewer at once, and never too few', () => {
  const { limit, busy } = limitOf(1_000);
  while (limit.allowed < 1_000) busy(0.3, limit.allowed);
  expect(busy(0.95, 1_000)).toBe(800);
  for (let pass = 0; pass < 10; pass++) busy(1, limit.allowed);
  expect(limit.allowed).toBe(400);
});

test('where few are under way, nothing is gained by more', () => {
  const { busy } = limitOf(1_000);
  expect(busy(0.3, 100)).toBe(400);
});

test('a small capacity is never exceeded', () => {
  const { limit, busy } = limitOf(20);
  expect(limit.allowed).toBe(20);
  expect(busy(0.3, 20)).toBe(20);
  expect(busy(1, 20)).toBe(20);
});

test('intervals too short to measure change nothing', () => {
  const limit = new LoadLimit(1_000, () => ({ share: 0.1, ofMs: 3 }));
  limit.adapt(400);
  expect(limit.allowed).toBe(400);
});
