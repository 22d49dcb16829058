import { expect, test } from 'vitest';
import type { Program } from '../support/program.ts';
import { Stage } from '../support/stage.ts';

function count(demo: Program, name: string): number {
  const line = demo.stdout.find((one) => one.trimStart().startsWith(name));
  return Number(/^ *\D+?(\d+) /.exec(`${line} `)?.[1]);
}

test('the demo ends by itself with a summary that adds up', async ({ onTestFinished }) => {
  const stage = new Stage(onTestFinished);
  const demo = await stage.intentwatch(['demo', '--for', '6'], { TMPDIR: await stage.folder() });
  expect(await demo.ending(), demo.output()).toEqual({ code: 0, signal: null });
  expect(demo.stdout.at(-1)).toBe('It all adds up.');
  const made = count(demo, 'transitions made');
  const events = count(demo, 'events');
  expect(made).toBeGreaterThan(10);
  expect(count(demo, 'merged') + count(demo, 'shown')).toBe(made);
  expect(events).toBeGreaterThanOrEqual(count(demo, 'shown'));
  expect(count(demo, 'webhooks delivered')).toBe(events);
  // A webhook and a mail may come twice.
  expect(count(demo, 'signature verified')).toBeGreaterThanOrEqual(events);
  expect(count(demo, 'mails due')).toBeGreaterThan(0);
  expect(count(demo, 'mails ')).toBeGreaterThanOrEqual(count(demo, 'mails due'));
});
