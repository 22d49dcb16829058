import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BoundedMap, bytesOfTexts, CACHES, type CacheLimits } from '../../src/domain/caches.ts';

const KEY = fc.integer({ min: 0, max: 12 }).map((number) => `key-${number}`);

const SET = fc.record({ act: fc.constant('set' as const), key: KEY, text: fc.string({ maxLength: 60 }) });
const READ = fc.record({
  act: fc.constantFrom('get' as const, 'peek' as const, 'delete' as const),
  key: KEY,
});
const CLEAR = fc.record({ act: fc.constant('clear' as const) });

// A map that is cleared often is never full.
const STEP = fc.oneof(
  { arbitrary: SET, weight: 30 },
  { arbitrary: READ, weight: 20 },
  { arbitrary: CLEAR, weight: 1 },
);

type Step = typeof STEP extends fc.Arbitrary<infer One> ? One : never;

const BOUNDS = fc.record({
  entries: fc.option(fc.integer({ min: 1, max: 8 })),
  bytes: fc.option(fc.integer({ min: 100, max: 1_500 })),
});

/** The rule of the map, written as a list: the entry that was used longest ago comes first. */
class ExpectedMap {
  list: (readonly [key: string, text: string])[] = [];
  readonly #limits: { entries: number | null; bytes: number | null };

  constructor(limits: { entries: number | null; bytes: number | null }) {
    this.#limits = limits;
  }

  apply(step: Step): void {
    if (step.act === 'clear') this.list = [];
    if (step.act === 'clear' || step.act === 'peek') return;
    const found = this.list.find(([key]) => key === step.key);
    if (step.act === 'get' && found === undefined) return;
    this.list = this.list.filter(([key]) => key !== step.key);
    if (step.act === 'get' && found !== undefined) this.list.push(found);
    if (step.act !== 'set' || !this.isWithin([[step.key, step.text]])) return;
    this.list.push([step.key, step.text]);
    while (!this.isWithin(this.list)) this.list.shift();
  }

  isWithin(list: readonly (readonly [string, string])[]): boolean {
    const { entries, bytes } = this.#limits;
    return (entries === null || list.length <= entries) && (bytes === null || bytesOf(list) <= bytes);
  }
}

function bytesOf(list: readonly (readonly [string, string])[]): number {
  return list.reduce((sum, [key, text]) => sum + bytesOfTexts(key, text), 0);
}

test('a bounded map has the entries used last, and never more entries or bytes than its bounds', () => {
  fc.assert(
    fc.property(BOUNDS, fc.array(STEP, { maxLength: 60, size: 'max' }), (limits, steps) => {
      const map = new BoundedMap<string, string>({ ...limits, bytesOf: bytesOfTexts });
      const expected = new ExpectedMap(limits);
      for (const step of steps) {
        if (step.act === 'set') {
          const others = expected.list.filter(([key]) => key !== step.key);
          expect(map.fits(step.key, step.text)).toBe(expected.isWithin([...others, [step.key, step.text]]));
          map.set(step.key, step.text);
        } else if (step.act === 'clear') map.clear();
        else map[step.act](step.key);
        expected.apply(step);
        const entries = [...map.entries()];
        expect(expected.isWithin(entries)).toBe(true);
        expect(entries).toEqual(expected.list);
        for (const [key, text] of entries) expect([map.has(key), map.peek(key)]).toEqual([true, text]);
      }
    }),
  );
});

test('each cache of the table with texts holds what its bounds allow, and no more', () => {
  for (const [name, { entries, bytes }] of Object.entries<CacheLimits>(CACHES)) {
    const map = new BoundedMap<number, number>({ entries, bytes, bytesOf: (_key, size) => size });
    for (const size of [1_000, 100_000]) {
      map.clear();
      for (let key = 0; key < 20_100; key += 1) map.set(key, size);
      const count = [...map.entries()].length;
      const most = Math.min(entries ?? 20_100, bytes === null ? 20_100 : Math.floor(bytes / size));
      expect([name, size, count]).toEqual([name, size, most]);
    }
  }
});

test('a bounded map that is never full holds nothing of what was removed from it', () => {
  setFlagsFromString('--expose-gc');
  const collect: NodeJS.GCFunction = runInNewContext('gc');
  const map = new BoundedMap<number, object>({ entries: 100, bytes: null, bytesOf: () => 1 });
  const heapAfter = (changes: number) => {
    for (let at = 0; at < changes; at += 1) {
      map.set(at % 50, { at });
      map.get((at * 7) % 50);
      if (at % 3 === 0) map.delete((at * 11) % 50);
    }
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = heapAfter(1_000);
  expect((heapAfter(100_000) - before) / 100_000).toBeLessThan(10);
});
