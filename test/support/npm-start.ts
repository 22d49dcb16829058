import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cannedServer } from './canned-server.ts';
import { makeClone } from './clone.ts';
import { eventually } from './eventually.ts';
import { npmEnvironment } from './npm.ts';
import type { Program } from './program.ts';
import { isRunning, redisPid } from './redis-pid.ts';
import { hashOf } from './scripted-upstream.ts';
import { RECEIVER_NAME, Stage } from './stage.ts';

const LOCK_PROGRAM = join(import.meta.dirname, 'lock-program.ts');

/** `npm start` as typed in a clone, with an embedded Redis in `dataDir`, and the pids of the daemon and its Redis. */
type Started = { npm: Program; stage: Stage; dataDir: string; daemon: number; redis: number };

/** Runs `npm start` in a clone, and waits until the daemon has started. */
export async function npmStart(onTestFinished: (cleanUp: () => Promise<void>) => unknown): Promise<Started> {
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
  // A daemon that npm leaves behind must not outlive the test.
  onTestFinished(async () => {
    if (await isRunning(daemon)) process.kill(daemon, 'SIGKILL');
  });
  return { npm, stage, dataDir, daemon, redis: await redisPid(join(dataDir, 'redis.sock')) };
}

/** Waits until the daemon and its Redis have ended; then another process can take the lock of their folder. */
export async function expectNothingLeft({ stage, dataDir, daemon, redis }: Started): Promise<void> {
  await eventually('the daemon has ended', async () => !(await isRunning(daemon)));
  await eventually('its Redis has ended', async () => !(await isRunning(redis)));
  const next = await stage.program(LOCK_PROGRAM, [dataDir]);
  await next.line(/^held$/);
}
