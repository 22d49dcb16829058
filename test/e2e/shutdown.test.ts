import { describe, expect, test } from 'vitest';
import { atWork } from '../support/at-work.ts';
import { eventually } from '../support/eventually.ts';

/** Longer than a repeated signal of one key press: two key presses. */
const APART_MS = 600;

describe.concurrent('a daemon', () => {
  test('ends soon after SIGTERM with exit code 0 while it works', async ({ onTestFinished }) => {
    const { daemon } = await atWork(onTestFinished);
    const { code } = await daemon.end('SIGTERM');
    expect(code).toBe(0);
  });

  test('ends at once with exit code 130 at a second SIGINT', async ({ onTestFinished }) => {
    // On a busy machine the daemon ends by itself before the second one is sent.
    await eventually('a second SIGINT in time', async () => {
      const { daemon } = await atWork(onTestFinished, () => null);
      daemon.send('SIGINT');
      await daemon.line(/"msg":"daemon.stopping"/);
      const stoppingMs = performance.now();
      await new Promise((resolve) => setTimeout(resolve, APART_MS));
      const isInTime = performance.now() - stoppingMs < 2 * APART_MS;
      const { code } = await daemon.end('SIGINT');
      if (isInTime) expect(code).toBe(130);
      return isInTime;
    });
  });
});
