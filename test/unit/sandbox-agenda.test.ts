import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createAgenda } from '../../sandbox/world/agenda.ts';
import { createBoundedLog } from '../../sandbox/world/bounded-log.ts';

test('everything due is done in the order of its time, equal times in the order they were added', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 20 })),
      fc.integer({ min: 0, max: 20 }),
      (dueTimes, nowMs) => {
        const agenda = createAgenda();
        const done: number[] = [];
        dueTimes.forEach((dueMs, index) => {
          agenda.add(dueMs, () => done.push(index));
        });
        const sorted = dueTimes
          .map((dueMs, index) => ({ dueMs, index }))
          .sort((left, right) => left.dueMs - right.dueMs);
        const due = sorted.filter(({ dueMs }) => dueMs <= nowMs);
        expect(agenda.nextDueMs()).toBe(sorted[0]?.dueMs ?? null);
        agenda.runDue(nowMs);
        expect(done).toEqual(due.map(({ index }) => index));
        expect(agenda.nextDueMs()).toBe(sorted[due.length]?.dueMs ?? null);
        agenda.runDue(20);
        expect(done).toEqual(sorted.map(({ index }) => index));
      },
    ),
  );
});

test('work that is added by work and already due is done in the same run', () => {
  const agenda = createAgenda();
  const done: string[] = [];
  agenda.add(10, () => {
    done.push('first');
    agenda.add(15, (nowMs) => done.push(`second at ${nowMs}`));
    agenda.add(25, () => done.push('third'));
  });
  agenda.runDue(20);
  expect(done).toEqual(['first', 'second at 20']);
  expect(agenda.nextDueMs()).toBe(25);
});

test('a log retains its newest entries and reads the tail from a time on', () => {
  const log = createBoundedLog<{ at: number }>(3);
  expect(log.read()).toEqual([]);
  for (const at of [1, 2, 2, 3, 4]) log.add({ at });
  expect(log.read()).toEqual([{ at: 2 }, { at: 3 }, { at: 4 }]);
  expect(log.read(3)).toEqual([{ at: 3 }, { at: 4 }]);
  expect(log.read(5)).toEqual([]);
});
