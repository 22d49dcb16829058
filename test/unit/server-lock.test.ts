import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { EmbeddedRedis } from '../../src/store/embedded.ts';
import { describeServer, isServerAlive, PID_NAME, serverLock } from '../../src/store/embedded-files.ts';
import { EmbeddedRedisError } from '../../src/store/start-failure.ts';
import { eventually } from '../support/eventually.ts';

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-server-lock-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A process with the pipe of a folder open, like a redis-server; its pid, and the promise of its end. */
async function holder(folder: string): Promise<{ pid: number; ended: Promise<unknown> }> {
  const script = 'mkfifo "$1"; exec 4<>"$1"; echo open; exec sleep 600';
  const child = spawn('sh', ['-c', script, 'sh', serverLock(folder)], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(child, 'exit');
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  if (child.pid === undefined) throw new Error('the process was not started');
  return { pid: child.pid, ended };
}

test('a server is alive as long as its process, stopped or not', async () => {
  const folder = await newFolder();
  expect(await isServerAlive(folder)).toBe(false);
  const { pid, ended } = await holder(folder);
  expect(await isServerAlive(folder)).toBe(true);
  process.kill(pid, 'SIGSTOP');
  expect(await isServerAlive(folder)).toBe(true);
  process.kill(pid, 'SIGKILL');
  await ended;
  expect(await isServerAlive(folder)).toBe(false);
});

test('a file in the place of the pipe, as a copy of the folder may have, is no server', async () => {
  const folder = await newFolder();
  await writeFile(serverLock(folder), '');
  expect(await isServerAlive(folder)).toBe(false);
});

test('a pid is named only of the process that has the pipe open, not of a later owner of that pid', async () => {
  const folder = await newFolder();
  const { pid } = await holder(folder);
  for (const written of [`${process.pid}\n`, '', '999999999\n']) {
    await writeFile(join(folder, PID_NAME), written);
    expect(await describeServer(folder)).toBe(
      `an earlier redis-server has its files open; \`lsof ${serverLock(folder)}\` names it; end it`,
    );
  }
  await writeFile(join(folder, PID_NAME), `${pid}\n`);
  expect(await describeServer(folder)).toBe(
    `an earlier redis-server (pid ${pid}) has its files open; end it with \`kill ${pid}\``,
  );
  process.kill(pid, 'SIGSTOP');
  await eventually('it is described as stopped', async () =>
    (await describeServer(folder)).includes(`is stopped; continue it with \`kill -CONT ${pid}\``),
  );
});

test('a pipe that cannot be opened is named as the reason that makes the folder unusable', async () => {
  const folder = await newFolder();
  await mkdir(serverLock(folder));
  const redis = new EmbeddedRedis({
    dataDir: folder,
    onTrouble: () => undefined,
    onTruncated: () => undefined,
    onGaps: () => undefined,
  });
  onTestFinished(() => redis.close());
  await redis.takeFolder();
  const failure = await redis.start().catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(EmbeddedRedisError);
  expect(String(failure)).toContain('redis-server.lock');
  expect(String(failure)).toContain('give it to them, or choose another dataDir');
});
