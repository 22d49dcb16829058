import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Pace, restMs } from '../../src/queues/pace.ts';

test('a receiver that works is never waited with, and one that fails ever longer, up to 0.1 s', () => {
  expect(restMs(0)).toBe(0);
  fc.assert(
    fc.property(fc.nat(1_000_000), (failures) => {
      expect(restMs(failures + 1)).toBeGreaterThanOrEqual(restMs(failures));
      expect(restMs(failures + 1)).toBeGreaterThan(0);
      expect(restMs(failures)).toBeLessThanOrEqual(100);
    }),
  );
});

test('the rest counts failures in a row: a success ends it', async () => {
  const { signal } = new AbortController();
  const pace = new Pace();
  const restsFor = async (): Promise<number> => {
    const startMs = performance.now();
    await pace.rest(signal);
    return performance.now() - startMs;
  };
  for (let failure = 0; failure < 20; failure += 1) pace.note({ delivered: false });
  expect(await restsFor()).toBeGreaterThanOrEqual(restMs(20) - 1);
  pace.note({ delivered: true });
  // Nothing is waited for: what was asked for before the rest comes after it.
  const order: string[] = [];
  setTimeout(() => order.push('timer'), 0);
  await pace.rest(signal);
  order.push('rest');
  expect(order).toEqual(['rest']);
});

test('shutdown ends a rest', async () => {
  const pace = new Pace();
  for (let failure = 0; failure < 20; failure += 1) pace.note({ delivered: false });
  const order: string[] = [];
  setTimeout(() => order.push('timer'), restMs(20));
  await pace.rest(AbortSignal.abort());
  order.push('rest');
  expect(order).toEqual(['rest']);
});
