import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cannedServer } from '../support/canned-server.ts';
import { eventually } from '../support/eventually.ts';
import type { Program } from '../support/program.ts';
import { guardOf, redisServersIn } from '../support/redis-group.ts';
import { isRunning, redisPid } from '../support/redis-pid.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';

const STOPPED = /an earlier redis-server \(pid \d+\) has its files open and is stopped; continue it with/;

type OnTestFinished = (cleanUp: () => Promise<void>) => unknown;

/** A folder, a config with its Redis in it, and an upstream without transfers. */
async function ground(
  onTestFinished: OnTestFinished,
): Promise<{ stage: Stage; dataDir: string; socket: string; file: string }> {
  const upstream = await cannedServer(() => ({ status: 503, body: '' }));
  onTestFinished(() => upstream.close());
  const stage = new Stage(onTestFinished);
  const dataDir = await stage.folder();
  const file = await stage.config({
    upstreamUrl: upstream.url,
    dataDir,
    receiver: { url: 'http://127.0.0.1:9/', secret: `whsec_${Buffer.alloc(32, 7).toString('base64')}` },
    subscriptions: [{ name: 'orders', intents: [hashOf(1)], receivers: [RECEIVER_NAME] }],
  });
  return { stage, dataDir, socket: join(dataDir, 'redis.sock'), file };
}

async function readiness(daemon: Program): Promise<{ status: number; body: string }> {
  const [, url = ''] = await daemon.line(/"url":"(http[^"]+)".*"msg":"server.listening"/);
  const response = await fetch(`${url}/readyz`);
  return { status: response.status, body: await response.text() };
}

/** A daemon that is cut off during its shutdown leaves its redis-server to the guard, which ends it shortly after. */
async function expectNoServerIn(dataDir: string): Promise<void> {
  await eventually('no redis-server remains', async () => (await redisServersIn(dataDir)).length === 0);
}

test('no second redis-server starts while a stopped one of this daemon lives, and one does when that has ended', async ({
  onTestFinished,
}) => {
  const { stage, dataDir, socket, file } = await ground(onTestFinished);
  const daemon = await stage.daemon(file);
  const server = await redisPid(socket);
  onTestFinished(async () => void ((await isRunning(server)) && process.kill(server, 'SIGKILL')));
  const { guard } = await guardOf(server);
  process.kill(server, 'SIGSTOP');
  process.kill(guard, 'SIGKILL');

  await daemon.line(STOPPED);
  expect(await redisServersIn(dataDir)).toEqual([server]);
  expect(await readiness(daemon)).toEqual({
    status: 503,
    body: expect.stringContaining('an earlier redis-server has its files open and does not end'),
  });

  process.kill(server, 'SIGCONT');
  await eventually('another one runs', async () =>
    (await redisServersIn(dataDir)).some((pid) => pid !== server),
  );
  await eventually('its socket answers', async () => (await stat(socket).catch(() => null)) !== null);
  const next = await redisPid(socket);
  expect(next).not.toBe(server);
  expect(await redisServersIn(dataDir)).toEqual([next]);
  expect(await daemon.end('SIGTERM')).toMatchObject({ code: 0 });
  await expectNoServerIn(dataDir);
});

test('a daemon waits for the stopped redis-server of one that was killed, and starts when it has ended', async ({
  onTestFinished,
}) => {
  const { stage, dataDir, socket, file } = await ground(onTestFinished);
  const first = await stage.daemon(file);
  const server = await redisPid(socket);
  onTestFinished(async () => void ((await isRunning(server)) && process.kill(server, 'SIGKILL')));
  const { guard } = await guardOf(server);
  process.kill(server, 'SIGSTOP');
  process.kill(guard, 'SIGKILL');
  await first.end('SIGKILL');

  const second = await stage.intentwatch(['start', '--config', file]);
  await second.line(STOPPED);
  expect((await readiness(second)).status).toBe(503);
  expect(await second.end('SIGTERM')).toMatchObject({ code: 0 });
  expect(await redisServersIn(dataDir)).toEqual([server]);

  const third = await stage.intentwatch(['start', '--config', file]);
  await third.line(/"msg":"server.listening"/);
  process.kill(server, 'SIGCONT');
  await third.line(/"msg":"daemon.started"/);
  expect(await isRunning(server)).toBe(false);
  expect(await redisServersIn(dataDir)).toEqual([await redisPid(socket)]);
  expect(await third.end('SIGTERM')).toMatchObject({ code: 0 });
});

test('a redis-server whose guard was killed with all its helpers is ended before another one starts', async ({
  onTestFinished,
}) => {
  const { stage, dataDir, socket, file } = await ground(onTestFinished);
  const daemon = await stage.daemon(file);
  const server = await redisPid(socket);
  const { guard, helpers } = await guardOf(server);
  process.kill(guard, 'SIGKILL');
  for (const pid of helpers) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      // A helper is short-lived, and may have exited by itself.
      if (await isRunning(pid)) throw error;
    }
  }
  await daemon.line(/"reason":"the embedded redis-server or its guard was killed; starting it again"/);
  await eventually('another one runs, alone', async () => {
    const servers = await redisServersIn(dataDir);
    return servers.length === 1 && servers[0] !== server;
  });
  await eventually('it answers', async () => {
    const answering = await redisPid(socket).catch(() => null);
    return answering !== null && (await redisServersIn(dataDir)).join() === String(answering);
  });
  expect(await daemon.end('SIGTERM')).toMatchObject({ code: 0 });
  await expectNoServerIn(dataDir);
});
