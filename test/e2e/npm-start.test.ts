import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeClone } from '../support/clone.ts';
import { expectNothingLeft, npmStart } from '../support/npm-start.ts';
import { isRunning } from '../support/redis-pid.ts';
import { Stage } from '../support/stage.ts';

test('SIGTERM to npm start ends the daemon, and no process holds its folder', async ({ onTestFinished }) => {
  const started = await npmStart(onTestFinished);
  started.npm.send('SIGTERM');
  expect(await started.npm.ending()).toMatchObject({ code: 0 });
  await expectNothingLeft(started);
});

test('the launcher is the daemon: a signal to it ends it with its own exit code', async ({
  onTestFinished,
}) => {
  const stage = new Stage(onTestFinished);
  const clone = await stage.folder();
  await makeClone(clone);
  const program = await stage.command([
    join(clone, 'intentwatch'),
    'sandbox',
    '--port=0',
    '--control-port=0',
  ]);
  await program.line(/^upstream:/);
  expect(await program.end('SIGTERM')).toEqual({ code: 0, signal: null, tookMs: expect.any(Number) });
  expect(await isRunning(program.pid)).toBe(false);
});
