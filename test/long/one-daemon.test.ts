import { mkdir, readlink, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { cannedServer } from '../support/canned-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/port.ts';
import type { Program } from '../support/program.ts';
import { redisPid } from '../support/redis-pid.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';

const LOCK_PROGRAM = join(import.meta.dirname, '../support/lock-program.ts');

const REFUSAL = /^intentwatch: dataDir \S+ is in use by (the daemon with pid \d+|another daemon); end it, or/;

type OnTestFinished = (cleanUp: () => Promise<void>) => unknown;

/** A config with an embedded Redis in `dataDir`, and an upstream without transfers. */
async function config(
  onTestFinished: OnTestFinished,
  more: { dataDir: string; port?: number },
): Promise<string> {
  const upstream = await cannedServer(() => ({ status: 503, body: '' }));
  onTestFinished(() => upstream.close());
  return new Stage(onTestFinished).config({
    ...more,
    upstreamUrl: upstream.url,
    receiver: { url: 'http://127.0.0.1:9/', secret: `whsec_${Buffer.alloc(32, 7).toString('base64')}` },
    subscriptions: [{ name: 'orders', intents: [hashOf(1)], receivers: [RECEIVER_NAME] }],
  });
}

test('of 25 processes that lock a folder at once exactly one has it, also after a killed owner', async ({
  onTestFinished,
}) => {
  const stage = new Stage(onTestFinished);
  const folder = await stage.folder();
  for (let round = 0; round < 4; round += 1) {
    const all = await Promise.all(Array.from({ length: 25 }, () => stage.program(LOCK_PROGRAM, [folder])));
    await eventually('all have answered', () => all.every((one) => one.stdout.length > 0));
    const held = all.filter((one) => one.stdout[0] === 'held');
    expect([round, held.length]).toEqual([round, 1]);
    await held[0]?.end('SIGKILL');
  }
});

test('of daemons that start at once on one dataDir and port one lives, the others end with 75 and one sentence', async ({
  onTestFinished,
}) => {
  const stage = new Stage(onTestFinished);
  const dataDir = await stage.folder();
  const file = await config(onTestFinished, { dataDir, port: await freePort() });
  const all = await Promise.all(
    Array.from({ length: 6 }, () => stage.intentwatch(['start', '--config', file])),
  );
  const ended: { daemon: Program; code: number | null }[] = [];
  for (const daemon of all) void daemon.ending().then(({ code }) => ended.push({ daemon, code }));
  await eventually('all but one have ended', () => ended.length >= all.length - 1);
  expect(ended.map(({ code }) => code)).toEqual(Array(all.length - 1).fill(75));
  for (const { daemon } of ended) {
    expect(daemon.stderr).toEqual([expect.stringMatching(REFUSAL)]);
  }
  const living = all.find((one) => !ended.some(({ daemon }) => daemon === one));
  await living?.line(/"msg":"daemon.started"/);
  expect(await living?.end('SIGTERM')).toMatchObject({ code: 0 });
});

test('a dataDir of a long path has its Redis on a socket that only the owner can reach', async ({
  onTestFinished,
}) => {
  const stage = new Stage(onTestFinished);
  const dataDir = join(await stage.folder(), 'a-folder-with-a-long-name'.repeat(4));
  await mkdir(dataDir);
  const file = await config(onTestFinished, { dataDir });
  const first = await stage.daemon(file);
  const socket = await readlink(join(dataDir, 'redis.sock'));
  expect((await stat(dirname(socket))).mode & 0o777).toBe(0o700);
  await redisPid(socket);
  await first.end('SIGKILL');
  const second = await stage.daemon(file);
  const next = await readlink(join(dataDir, 'redis.sock'));
  expect(next).not.toBe(socket);
  const quarantine = await stage.intentwatch(['quarantine', '--config', file]);
  expect(await quarantine.ending()).toMatchObject({ code: 0 });
  expect(quarantine.stdout).toEqual(['nothing is quarantined']);
  expect(await second.end('SIGTERM')).toMatchObject({ code: 0 });
  await expect(stat(dirname(next))).rejects.toThrow('ENOENT');
  await expect(stat(dirname(socket))).rejects.toThrow('ENOENT');
});
