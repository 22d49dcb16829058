import { execFile } from 'node:child_process';
import { cp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { cannedServer } from '../support/canned-server.ts';
import { eventually } from '../support/eventually.ts';
import { limitFiles, rewriteFile, writeAgain, writeUntilRefused } from '../support/limited-redis.ts';
import type { Program } from '../support/program.ts';
import type { ReceiverProcess } from '../support/receiver-process.ts';
import { isRunning, redisPid } from '../support/redis-pid.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';

const WRITES = 'appendonlydir/appendonly.aof.1.incr.aof';
const REWRITTEN = 'appendonlydir/appendonly.aof.2.incr.aof';
const MANIFEST = 'appendonlydir/appendonly.aof.manifest';

type OnTestFinished = (cleanUp: () => Promise<void>) => unknown;
type Ground = { stage: Stage; receiver: ReceiverProcess; dataDir: string; file: string };

/** A folder, a config with its Redis in it, and a receiver of the daemon's own events. */
async function ground(onTestFinished: OnTestFinished): Promise<Ground> {
  const upstream = await cannedServer(() => ({ status: 503, body: '' }));
  onTestFinished(() => upstream.close());
  const stage = new Stage(onTestFinished);
  const [receiver, dataDir] = await Promise.all([stage.receiver(), stage.folder()]);
  const file = await stage.config({
    upstreamUrl: upstream.url,
    dataDir,
    receiver,
    receiverEvents: ['intentwatch.*'],
    subscriptions: [{ name: 'orders', intents: [hashOf(1)], receivers: [RECEIVER_NAME] }],
  });
  return { stage, receiver, dataDir, file };
}

/** Runs a daemon until it exits by itself; one that takes too long to exit is cut off, and records no size. */
async function runToItsEnd(stage: Stage, file: string): Promise<void> {
  await eventually('a daemon has ended by itself', async () => {
    const daemon = await stage.daemon(file);
    expect(await daemon.end('SIGTERM')).toMatchObject({ code: 0 });
    return daemon.stdout.some((line) => JSON.parse(line).msg === 'daemon.stopped');
  });
}

function truncationsOf(daemon: Program): unknown[] {
  return daemon.stdout.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'redis.truncated');
}

function isoTime(after: number): unknown {
  return expect.toSatisfy((text: string) => Date.parse(text) >= after && Date.parse(text) <= Date.now());
}

test('an append-only file that is cut to half is a log line and an operator event, once, with the lost part', async ({
  onTestFinished,
}) => {
  const { stage, receiver, dataDir, file } = await ground(onTestFinished);
  const beganMs = Math.floor(Date.now() / 1_000) * 1_000;
  const first = await stage.daemon(file);
  const server = await redisPid(join(dataDir, 'redis.sock'));
  await first.end('SIGKILL');
  await eventually('its redis-server has ended', async () => !(await isRunning(server)));
  const whole = await readFile(join(dataDir, WRITES));
  let left = Math.floor(whole.length / 2);
  while (whole[left - 1] === 0x0a) left += 1;
  await truncate(join(dataDir, WRITES), left);

  const second = await stage.daemon(file);
  const events = await eventually('the operator events have come', () => {
    const came = receiver.events();
    return new Set(came.map(({ type }) => type)).size === 2 ? came : null;
  });
  const lost = { lostFrom: isoTime(beganMs), lostUntil: isoTime(beganMs), lostBytes: expect.any(Number) };
  const [logged] = truncationsOf(second);
  expect(logged).toMatchObject({ level: 50, file: 'appendonly.aof.1.incr.aof', ...lost });
  const event = events.find(({ type }) => type === 'intentwatch.storage_truncated');
  expect(event).toMatchObject({
    type: 'intentwatch.storage_truncated',
    data: { subject: { kind: 'intentwatch', id: 'intentwatch:storage' }, record: lost },
  });
  // The bytes that Redis cuts off an incomplete command, and the earlier cuts as far as the first had recorded them.
  const { lostBytes } = event?.data.record ?? {};
  expect(lostBytes).toBeGreaterThan(0);
  expect(lostBytes).toBeLessThanOrEqual(whole.length);

  // The cut counts as a restore.
  expect(events.find(({ type }) => type === 'intentwatch.storage_restored')?.data).toMatchObject({
    epoch: 2,
    record: { epoch: 2, reason: expect.stringContaining('append-only file') },
  });

  await second.end('SIGTERM');
  const third = await stage.daemon(file);
  expect(truncationsOf(third)).toEqual([]);
  await third.end('SIGTERM');
  expect(new Set(receiver.events().map(({ id }) => id)).size).toBe(2);
});

test('an append-only file that lost all its writes between two runs is an operator event with their bytes', async ({
  onTestFinished,
}) => {
  const { stage, receiver, dataDir, file } = await ground(onTestFinished);
  await runToItsEnd(stage, file);
  const lostBytes = (await readFile(join(dataDir, WRITES))).length;
  await truncate(join(dataDir, WRITES), 0);
  const second = await stage.daemon(file);
  const event = await eventually(
    'the operator event has come',
    () => receiver.events().find(({ type }) => type === 'intentwatch.storage_truncated') ?? null,
  );
  expect(event.data.record).toMatchObject({ lostBytes, lostFrom: null });
  await second.end('SIGTERM');
});

test('a start with damaged files is refused with the reason alone and the way to repair a copy', async ({
  onTestFinished,
}) => {
  const { stage, dataDir, file } = await ground(onTestFinished);
  await runToItsEnd(stage, file);
  const copy = await stage.folder();
  await cp(join(dataDir, 'appendonlydir'), copy, { recursive: true });
  const bytes = await readFile(join(dataDir, WRITES));
  const middle = Math.floor(bytes.length / 2);

  const damages: [string, () => Promise<unknown>, RegExp][] = [
    [
      'no manifest',
      () => rm(join(dataDir, MANIFEST)),
      /found appendonly\.aof\.1\.incr\.aof with data but no appendonly\.aof\.manifest/,
    ],
    [
      'zeros in the middle',
      // Longer than any value: zeros within a value would be read as valid.
      () => writeFile(join(dataDir, WRITES), Buffer.from(bytes).fill(0, middle, middle + 2_000)),
      // By the content there: the head of a command, or a part of a value.
      /ended with 1: (Bad file format|Unrecoverable error|Unknown command '.*') reading the append only file/,
    ],
    [
      'no writes',
      () => rm(join(dataDir, WRITES)),
      /ended with 1: .*appendonly\.aof\.1\.incr\.aof.*No such file/,
    ],
  ];
  for (const [damage, make, reason] of damages) {
    await make();
    const daemon = await stage.intentwatch(['start', '--config', file]);
    const { code } = await daemon.ending();
    const reported = daemon.stderr.join('\n');
    expect([damage, code, reported]).toEqual([damage, 1, expect.stringMatching(reason)]);
    expect(reported).toContain('redis-check-aof --fix');
    expect(reported).not.toMatch(/WARNING|overcommit|Server initialized/);
    await rm(join(dataDir, 'appendonlydir'), { recursive: true, maxRetries: 5 });
    await cp(copy, join(dataDir, 'appendonlydir'), { recursive: true });
  }
});

/** A daemon whose redis-server has rewritten its file, and whose files can be limited; and a client of that server. */
async function limited(
  onTestFinished: OnTestFinished,
): Promise<Ground & { first: Program; server: number; redis: RedisClient; path: string }> {
  const made = await ground(onTestFinished);
  const { stage, dataDir, file } = made;
  const folder = await stage.folder();
  const redisServer = join(folder, 'redis-server');
  const found = (await promisify(execFile)('which', ['redis-server'])).stdout.trim();
  await writeFile(redisServer, `#!/bin/sh\ntrap '' XFSZ\nexec ${found} "$@"\n`, { mode: 0o700 });
  const first = await stage.daemon(file, { PATH: `${folder}:${process.env.PATH}` });
  const socket = join(dataDir, 'redis.sock');
  const redis = connect({ kind: 'socket', path: socket });
  onTestFinished(async () => redis.disconnect());
  await rewriteFile(redis);
  return { ...made, first, server: await redisPid(socket), redis, path: join(dataDir, REWRITTEN) };
}

/** Fills the disk, frees space and writes. The daemon is stopped meanwhile, as it would have the file rewritten. */
async function fillOnce(
  { redis, server, path }: { redis: RedisClient; server: number; path: string },
  name: string,
): Promise<string[]> {
  await limitFiles(server, (await stat(path)).size + 20_000);
  const written = await writeUntilRefused(redis, `${name}-before`);
  await limitFiles(server, 'unlimited');
  await writeAgain(redis, [`${name}-behind`, `${name}-last`]);
  return [...written, `${name}-behind`, `${name}-last`];
}

test('a kill before a full disk is mended loses nothing: the gap is logged, and no epoch begins', async ({
  onTestFinished,
}) => {
  const { stage, receiver, dataDir, file, first, server, redis, path } = await limited(onTestFinished);
  first.send('SIGSTOP');
  const written = await fillOnce({ redis, server, path }, 'one');
  process.kill(server, 'SIGKILL');
  await first.end('SIGKILL');

  const second = await stage.daemon(file);
  const logged = second.stdout.map((line) => JSON.parse(line));
  expect(logged.filter(({ msg }) => msg === 'redis.gaps_removed')).toEqual([
    expect.objectContaining({ level: 40, file: basename(path), gaps: 1, gapBytes: expect.any(Number) }),
  ]);
  expect(truncationsOf(second)).toEqual([]);
  expect(logged.some(({ msg }) => msg === 'redis.restored')).toBe(false);
  const again = connect({ kind: 'socket', path: join(dataDir, 'redis.sock') });
  onTestFinished(async () => again.disconnect());
  expect(await again.exists(...written)).toBe(written.length);
  await second.end('SIGTERM');
  expect(receiver.events()).toEqual([]);
});

test('a kill after a second full disk begins an epoch: commands before its gap are lost', async ({
  onTestFinished,
}) => {
  const { stage, receiver, file, first, server, redis, path } = await limited(onTestFinished);
  // A write that waits for the end of an `fsync` is written with others, and gaps have any length.
  await redis.config('SET', 'appendfsync', 'no');
  first.send('SIGSTOP');
  await fillOnce({ redis, server, path }, 'one');
  await fillOnce({ redis, server, path }, 'two');
  process.kill(server, 'SIGKILL');
  await first.end('SIGKILL');

  const second = await stage.daemon(file);
  expect(truncationsOf(second)).toEqual([
    expect.objectContaining({ file: basename(path), lostBytes: expect.any(Number) }),
  ]);
  const events = await eventually('the operator events have come', () => {
    const came = receiver.events();
    return new Set(came.map(({ type }) => type)).size === 2 ? came : null;
  });
  const restored = events.find(({ type }) => type === 'intentwatch.storage_restored');
  expect(restored?.data).toMatchObject({
    epoch: 2,
    record: { reason: expect.stringContaining('append-only file') },
  });
  await second.end('SIGTERM');
});
