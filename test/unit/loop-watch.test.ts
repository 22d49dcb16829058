import { expect, onTestFinished, test } from 'vitest';
import { LoopWatch } from '../../src/server/loop-watch.ts';
import { eventually } from '../support/eventually.ts';

function started({ windowMs }: { windowMs: number }): LoopWatch {
  const watch = new LoopWatch({ beatMs: 20, windowMs, limitMs: 150 });
  onTestFinished(() => watch.close());
  watch.start();
  return watch;
}

/** Blocks the event loop until the process has used some processor time. */
function compute(ms: number): void {
  const from = process.cpuUsage();
  let used = 0;
  while (used < ms) {
    const { user, system } = process.cpuUsage(from);
    used = (user + system) / 1_000;
  }
}

test('an event loop that computes without a break is stuck, and no longer when that is over', async () => {
  const watch = started({ windowMs: 600 });
  expect(watch.isStuck()).toBe(false);
  compute(300);
  expect(watch.stalledMs()).toBeGreaterThan(200);
  expect(watch.isStuck()).toBe(true);
  await eventually('not stuck', () => !watch.isStuck());
});

test('several short stalls add up', async () => {
  // Longer than they can take, though others use the processors.
  const watch = started({ windowMs: 60_000 });
  for (let stall = 0; stall < 3; stall++) {
    compute(100);
    // A turn of the loop, in which the overdue beat comes.
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  expect(watch.isStuck()).toBe(true);
});

test('a process that got no processor is not stuck', () => {
  const watch = started({ windowMs: 600 });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
  expect(watch.isStuck()).toBe(false);
});
