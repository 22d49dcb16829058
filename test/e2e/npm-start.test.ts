import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cannedServer } from '../support/canned-server.ts';
import { makeClone } from '../support/clone.ts';
import { eventually } from '../support/eventually.ts';
import { npmEnvironment } from '../support/npm.ts';
import type { Program } from '../support/program.ts';
import { isRunning, redisPid } from '../support/redis-pid.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';

const LOCK_PROGRAM = join(import.meta.dirname, '../support/lock-program.ts');

/** `npm start` as typed in a clone, with an embedded Redis in `dataDir`, and the pids that it came to. */
type Started = { npm: Program; stage: Stage; dataDir: string; daemon: number; redis: number };

async function npmStart(onTestFinished: (cleanUp: () => Promise<void>) => unknown): Promise<Started> {
  const stage = new Stage(onTestFinished);
  const upstream = await cannedServer(() => ({ status: 503, body: '' }));
  onTestFinished(() => upstream.close());
  const dataDir = await stage.folder();
  const config = await stage.config({
    dataDir,
    upstreamUrl: upstream.url,
    receiver: { url: 'http://127.0.0.1:9/', secret: `whsec_${'A'.repeat(32)}` },
    subscriptions: [{ name: 'orders', intents: [hashOf(1)], receivers: [RECEIVER_NAME] }],
  });
  const clone = await stage.folder();
  await makeClone(clone);
  const npm = await stage.command(
    ['npm', '--prefix', clone, 'start', '--', '--config', config],
    npmEnvironment(),
  );
  await npm.line(/"msg":"daemon.started"/);
  const daemon = Number(await readFile(join(dataDir, 'daemon.pid'), 'utf8'));
  // Where it is left behind, it must not outlive the test.
  onTestFinished(async () => {
    if (await isRunning(daemon)) process.kill(daemon, 'SIGKILL');
  });
  return { npm, stage, dataDir, daemon, redis: await redisPid(join(dataDir, 'redis.sock')) };
}

/** All that runs below a process, itself included. */
async function treeOf(root: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const parents = new Map<number, number>();
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    parents.set(Number(pid), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
  }
  const tree = [root];
  for (const parent of tree) {
    for (const [pid, its] of parents) if (its === parent) tree.push(pid);
  }
  return tree;
}

async function expectNothingLeft({ stage, dataDir, daemon, redis }: Started): Promise<void> {
  await eventually('the daemon has ended', async () => !(await isRunning(daemon)));
  await eventually('its Redis has ended', async () => !(await isRunning(redis)));
  const next = await stage.program(LOCK_PROGRAM, [dataDir]);
  await next.line(/^held$/);
}

test('SIGTERM to npm start ends the daemon, and nobody holds its folder', async ({ onTestFinished }) => {
  const started = await npmStart(onTestFinished);
  started.npm.send('SIGTERM');
  expect(await started.npm.ending()).toMatchObject({ code: 0 });
  await expectNothingLeft(started);
});

test('SIGTERM to everything below npm start does the same', async ({ onTestFinished }) => {
  const started = await npmStart(onTestFinished);
  for (const pid of await treeOf(started.npm.pid)) process.kill(pid, 'SIGTERM');
  await started.npm.ending();
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
