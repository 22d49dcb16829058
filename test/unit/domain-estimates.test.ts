import { describe, expect, test } from 'vitest';
import { AGE_BINS, binOf, quantileSeconds } from '../../src/domain/cadence/hazard.ts';
import { knowledgeOf, type StoredTally } from '../../src/domain/cadence/knowledge.ts';
import { ARRIVAL_RULE, WATCH_RULES } from '../../src/domain/cadence/watch-rules.ts';

const NOW_MS = 1_795_174_200_000;

function seen(route: string, { count, ageSeconds }: { count: number; ageSeconds: number }): StoredTally {
  const only = (value: number): number[] => AGE_BINS.map((_, bin) => (bin === binOf(ageSeconds) ? value : 0));
  return {
    route,
    statistic: 'pending',
    tally: { ended: only(count), watchedSeconds: only(count * ageSeconds * 0.1) },
    landmarkMs: NOW_MS,
  };
}

function learnedOf(stored: readonly StoredTally[], estimates: Record<string, number>) {
  const rules = { rules: WATCH_RULES, arrivals: ARRIVAL_RULE, nowMs: NOW_MS };
  return knowledgeOf(stored, { ...rules, estimates: new Map(Object.entries(estimates)) });
}

const medianOf = (knowledge: ReturnType<typeof learnedOf>, route: string): number =>
  10 * Math.round(quantileSeconds(knowledge.curve(route, 'pending'), 0.5) / 10);

describe('the duration of a delivery by its quotes', () => {
  test('is the expectation of the route before any observation, half as long again', () => {
    const knowledge = learnedOf([], { '1:10': 120, '1:59': 300 });
    expect(medianOf(knowledge, '1:10')).toBe(180);
    expect(medianOf(knowledge, '2:10')).toBe(40);
    expect(medianOf(knowledge, '*')).toBe(40);
  });

  test('is the longest from a source of which the destination is not known', () => {
    expect(medianOf(learnedOf([], { '1:10': 120, '1:59': 300, '11:1': 900 }), '1:*')).toBe(450);
  });

  test('gives a time after which a transfer is overdue, and has no effect on other stages', () => {
    const knowledge = learnedOf([], { '1:10': 20 });
    expect(knowledge.p99Seconds('1:10', 'pending')).toBeGreaterThan(250);
    expect(knowledge.p99Seconds('1:10', 'pending')).toBeLessThan(350);
    expect(knowledge.p99Seconds('1:10', 'filled')).toBe(null);
    expect(knowledge.p99Seconds('2:10', 'pending')).toBe(null);
  });

  test('counts no more once enough was seen on the route, or on all of them', () => {
    const fills = { count: 500, ageSeconds: 9 };
    for (const stored of [[seen('1:10', fills)], [seen('*', fills)]]) {
      expect(medianOf(learnedOf(stored, { '1:10': 600 }), '1:10')).toBeLessThan(30);
    }
    const few = [seen('*', { count: 2, ageSeconds: 9 })];
    expect(medianOf(learnedOf(few, { '1:10': 120 }), '1:10')).toBe(180);
  });
});
