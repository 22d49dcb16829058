import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Program } from '../support/program.ts';
import { isRunning, redisPid } from '../support/redis-pid.ts';
import { Stage } from '../support/stage.ts';

/** The number in a line of the demo's summary. */
function count(demo: Program, name: string): number {
  const line = demo.stdout.find((one) => one.trimStart().startsWith(name));
  return Number(/^ *\D+?(\d+) /.exec(`${line} `)?.[1]);
}

describe('the demo', () => {
  test('ends by itself with a summary that adds up', async ({ onTestFinished }) => {
    const stage = new Stage(onTestFinished);
    const demo = await stage.intentwatch(['demo', '--for', '6'], { TMPDIR: await stage.folder() });
    expect(await demo.ending(), demo.said()).toEqual({ code: 0, signal: null });
    expect(demo.stdout.at(-1)).toBe('It all adds up.');
    const made = count(demo, 'transitions made');
    const events = count(demo, 'events');
    expect(made).toBeGreaterThan(10);
    expect(count(demo, 'merged') + count(demo, 'shown')).toBe(made);
    expect(events).toBeGreaterThanOrEqual(count(demo, 'shown'));
    expect(count(demo, 'webhooks delivered')).toBe(events);
    expect(count(demo, 'signature verified')).toBe(events);
    expect(count(demo, 'mails due')).toBeGreaterThan(0);
    expect(count(demo, 'mails ')).toBe(count(demo, 'mails due'));
  });

  test('serves metrics until Ctrl-C, and then leaves nothing behind', async ({ onTestFinished }) => {
    const stage = new Stage(onTestFinished);
    const folder = await stage.folder();
    const demo = await stage.intentwatch(['demo'], { TMPDIR: folder });
    const [, url = ''] = await demo.line(/^metrics +(http:\S+)/);
    await demo.line(/signature ok$/);
    const answer = await fetch(url);
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('intentwatch_');
    const [dataDir = ''] = await readdir(folder);
    const server = await redisPid(join(folder, dataDir, 'data', 'redis.sock'));
    expect(await isRunning(server)).toBe(true);

    const { code, tookMs } = await demo.end('SIGINT');
    expect(code, demo.said()).toBe(0);
    expect(tookMs).toBeLessThan(20_000);
    expect(await isRunning(server)).toBe(false);
    expect(await readdir(folder)).toEqual([]);
  });
});
