import { describe, expect, test } from 'vitest';
import { atWork } from '../support/at-work.ts';

/** Two key presses, and not one that came twice. */
const APART_MS = 600;

describe.concurrent('a daemon', () => {
  test('ends soon after SIGTERM with exit code 0 while it works', async ({ onTestFinished }) => {
    const { daemon } = await atWork(onTestFinished);
    const { code } = await daemon.end('SIGTERM');
    expect(code).toBe(0);
  });

  test('ends at once with exit code 130 at a second SIGINT', async ({ onTestFinished }) => {
    const { daemon } = await atWork(onTestFinished, () => null);
    daemon.send('SIGINT');
    await daemon.line(/"msg":"daemon.stopping"/);
    await new Promise((resolve) => setTimeout(resolve, APART_MS));
    expect(await daemon.end('SIGINT')).toMatchObject({ code: 130 });
  });
});
