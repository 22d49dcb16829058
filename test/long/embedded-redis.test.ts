import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { RECEIVER_SECRET } from '../support/at-work.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { isRunning, redisPid } from '../support/redis-pid.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';

/** An upstream, a receiver, and the config of a daemon with its Redis in a folder. */
async function ground(onTestFinished: (cleanUp: () => Promise<void>) => unknown, seed: number) {
  const stage = new Stage(onTestFinished);
  const sandbox = new Sandbox({ seed, timeScale: 20, wallets: 2, transfersPerSecond: 0 });
  const hook = new Hook();
  const [dataDir] = await Promise.all([stage.folder(), sandbox.start(), hook.start()]);
  onTestFinished(() => sandbox.close());
  onTestFinished(() => hook.close());
  const { wallets, intents, vaults } = sandbox.subjects();
  const file = await stage.config({
    upstreamUrl: sandbox.url,
    dataDir,
    receiver: { url: hook.url, secret: RECEIVER_SECRET },
    subscriptions: [{ name: 'orders', wallets, intents, vaults, receivers: [RECEIVER_NAME] }],
  });
  return { stage, sandbox, hook, dataDir, socket: join(dataDir, 'redis.sock'), file };
}

describe.concurrent('a daemon with its embedded Redis', () => {
  test('refuses a dataDir that another one uses, with exit code 75, and does not touch that one', async ({
    onTestFinished,
  }) => {
    const { stage, sandbox, hook, dataDir, socket, file } = await ground(onTestFinished, 5);
    const first = await stage.daemon(file);
    const second = await stage.intentwatch(['start', '--config', file]);
    expect(await second.ending()).toEqual({ code: 75, signal: null });
    expect(second.stderr.join('\n')).toContain(
      `dataDir ${dataDir} is in use by the daemon with pid ${first.pid}`,
    );
    const before = hook.came.length;
    sandbox.setPace(5);
    await eventually('the first daemon goes on', () => hook.came.length > before);
    const pid = await redisPid(socket);
    expect(await first.end('SIGTERM')).toMatchObject({ code: 0 });
    await eventually('its redis-server has ended', async () => !(await isRunning(pid)));
  });

  test('ends its Redis when it is killed, and the next start goes on from the last state', async ({
    onTestFinished,
  }) => {
    const { stage, sandbox, hook, socket, file } = await ground(onTestFinished, 6);
    const first = await stage.daemon(file);
    await eventually('a webhook', () => hook.came.length > 0);
    const before = await redisPid(socket);
    await first.end('SIGKILL');
    const sent = hook.came.length;
    const second = await stage.daemon(file);
    expect(await redisPid(socket)).not.toBe(before);
    await eventually('the first redis-server has ended', async () => !(await isRunning(before)));
    // Transfers announced at the start may have ended before the first daemon ran.
    sandbox.setPace(5);
    await eventually('webhooks go on', () => hook.came.length > sent);
    sandbox.setPace(0);
    // The deliveries in flight at the kill come when their place in the queue is known to be free.
    const missing = (): string[] => {
      const sequences = new Map<string, Set<number>>();
      for (const { event } of hook.came) {
        const { subject, sequence } = event.data;
        const found = sequences.get(subject.id) ?? new Set();
        sequences.set(subject.id, found.add(sequence));
      }
      return [...sequences].flatMap(([subject, found]) => (Math.max(...found) === found.size ? [] : subject));
    };
    await eventually('every event up to the last of its subject', () => missing().length === 0);
    expect(await second.end('SIGTERM')).toMatchObject({ code: 0 });
  });
});
