import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Epoch, type Restore } from '../../src/store/epoch.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { SeenFile } from '../../src/store/seen-file.ts';
import { testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { appendOperatorEvent, operatorEvent } from '../support/operator-event.ts';

const { later } = opening();

/** Dumps the Redis data of one prefix, so that a test can restore it. */
async function dumpOf(redis: RedisClient, keys: Keys): Promise<() => Promise<void>> {
  const names = async (): Promise<string[]> => redis.keys(`${keys.prefix}:*`);
  const stored = await Promise.all(
    (await names()).map(async (name) => [name, await redis.dumpBuffer(name)] as const),
  );
  return async () => {
    const present = await names();
    if (present.length > 0) await redis.del(...present);
    for (const [name, dump] of stored) await redis.restore(name, 0, dump);
  };
}

async function stage() {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const prefix = testPrefix();
  const keys = new Keys(prefix);
  const log = new EventLog(redis, keys);
  const noticed: Restore[] = [];
  /** A process with a folder of its own, or with the folder of an earlier one. */
  const process = async (folder?: string) => {
    const dataDir = folder ?? (await mkdtemp(join(tmpdir(), 'intentwatch-epoch-')));
    later(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
    const epoch = new Epoch({
      redis,
      keys,
      file: new SeenFile(dataDir, prefix),
      onRestored: (restore) => noticed.push(restore),
      onChecked: () => undefined,
      onFile: (error) => {
        if (error !== null) throw error;
      },
    });
    await epoch.open({ isTruncated: false });
    return { epoch, dataDir };
  };
  const reports = async (): Promise<unknown[]> =>
    (await log.after('0-0', 100)).entries.flatMap((entry) =>
      entry.kind === 'operator' ? [entry.event] : [],
    );
  return { redis, keys, log, noticed, process, reports };
}

test('the first epoch is 1, and a poll that finds no less begins no other', async () => {
  const { process, noticed } = await stage();
  const { epoch, dataDir } = await process();
  expect(epoch.begun).toEqual({ epoch: 1, atMs: null });
  for (let checks = 0; checks < 3; checks += 1) expect(await epoch.check()).toMatchObject({ behind: null });
  expect((await process(dataDir)).epoch.begun.epoch).toBe(1);
  expect(noticed).toEqual([]);
});

test('of two processes that notice at once one begins the epoch, and both work in it', async () => {
  const { redis, keys, process, noticed, reports } = await stage();
  const one = await process();
  const restore = await dumpOf(redis, keys);
  const other = await process();
  await Promise.all([one.epoch.check(), other.epoch.check()]);
  await restore();
  await Promise.all([one.epoch.check(), other.epoch.check()]);
  expect([one, other].map(({ epoch }) => epoch.begun.epoch)).toEqual([2, 2]);
  expect(noticed).toHaveLength(2);
  await Promise.all([one.epoch.synchronised(), other.epoch.synchronised()]);
  expect(await one.epoch.check()).toMatchObject({ behind: null });
  expect(await reports()).toEqual([
    expect.objectContaining({
      type: 'intentwatch.storage_restored',
      data: expect.objectContaining({
        epoch: 2,
        record: expect.objectContaining({ epoch: 2, resumedAt: expect.stringMatching(/^\d{4}-.*Z$/) }),
      }),
    }),
  ]);
});

test('the dump of an older epoch, restored twice, begins a new epoch each time', async () => {
  const { redis, keys, process } = await stage();
  const { epoch } = await process();
  const restore = await dumpOf(redis, keys);
  for (const next of [2, 3, 4]) {
    await epoch.check();
    await restore();
    await epoch.check();
    expect(epoch.begun.epoch).toBe(next);
    await epoch.synchronised();
  }
});

test.each([
  'an older dump',
  'nothing',
])('Redis has %s while no process runs: the file beside it shows it', async (what) => {
  const { redis, keys, process } = await stage();
  const first = await process();
  const restore = await dumpOf(redis, keys);
  await first.epoch.check();
  await first.epoch.check();
  if (what === 'nothing') await redis.del(...(await redis.keys(`${keys.prefix}:*`)));
  else await restore();
  const second = await process(first.dataDir);
  expect(second.epoch.begun.epoch).toBe(2);
  expect(second.epoch.behind).toMatchObject({
    fromMs: what === 'nothing' ? null : expect.any(Number),
    untilMs: expect.any(Number),
  });
  // A start that ends before it has written its config's subjects leaves that to the next one, in the same epoch.
  const third = await process(first.dataDir);
  expect(third.epoch.begun.epoch).toBe(2);
  expect(third.epoch.behind).not.toBeNull();
});

test('no epoch is used twice by processes with folders of their own', async () => {
  const { redis, keys, process } = await stage();
  const [one, other] = [await process(), await process()];
  const restore = await dumpOf(redis, keys);
  await one.epoch.check();
  await restore();
  await one.epoch.check();
  // It has not called `check` since, and continues the epoch that the other began.
  await other.epoch.check();
  expect(other.epoch.begun.epoch).toBe(2);
  await restore();
  const alone = await process(other.dataDir);
  expect(alone.epoch.begun.epoch).toBe(3);
});

test('a cut of the file begins an epoch by itself, once', async () => {
  const { process, noticed } = await stage();
  const { epoch } = await process();
  epoch.noteTruncated();
  await epoch.check();
  await epoch.check();
  expect(noticed.map((restore) => restore.epoch)).toEqual([2]);
  expect(epoch.behind?.reason).toContain('append-only file');
});

test('a start after the machine and its Redis stopped without notice begins an epoch, since nobody saw the last writes', async () => {
  const { process, noticed } = await stage();
  const { epoch, dataDir } = await process();
  const [name = ''] = (await readdir(dataDir)).filter((one) => one.startsWith('redis-seen.'));
  const file = join(dataDir, name);
  const startAfter = async (run: { boot?: string; server?: string; isClosed?: boolean }): Promise<number> => {
    const stored = JSON.parse(await readFile(file, 'utf8'));
    await writeFile(file, JSON.stringify({ ...stored, run: { ...stored.run, ...run } }));
    return (await process(dataDir)).epoch.begun.epoch;
  };
  expect(JSON.parse(await readFile(file, 'utf8')).run).toEqual({
    boot: expect.stringMatching(/^[0-9a-f-]{36}$/),
    server: expect.stringMatching(/^[0-9a-f]{40}$/),
    isClosed: false,
  });
  expect(await startAfter({})).toBe(1);
  // Redis ran on, or was started again beside a machine that ran on: it has all that it acknowledged.
  expect(await startAfter({ boot: 'other' })).toBe(1);
  expect(await startAfter({ server: 'other' })).toBe(1);
  expect(await startAfter({ boot: 'other', server: 'other', isClosed: true })).toBe(1);
  expect(noticed).toEqual([]);
  expect(await startAfter({ boot: 'other', server: 'other' })).toBe(2);
  expect(noticed[0]?.reason).toContain('the machine stopped without notice');
  await epoch.close();
  const { run } = JSON.parse(await readFile(file, 'utf8'));
  expect(run.isClosed).toBe(false);
});

test('of several processes with folders of their own, a stop of the machine begins one epoch', async () => {
  const { process } = await stage();
  const folders = [(await process()).dataDir, (await process()).dataDir];
  for (const folder of folders) {
    const [name = ''] = (await readdir(folder)).filter((one) => one.startsWith('redis-seen.'));
    const stored = JSON.parse(await readFile(join(folder, name), 'utf8'));
    await writeFile(
      join(folder, name),
      JSON.stringify({ ...stored, run: { ...stored.run, boot: 'o', server: 'o' } }),
    );
  }
  for (const folder of folders) {
    const { epoch } = await process(folder);
    expect(epoch.begun.epoch).toBe(2);
    await epoch.synchronised();
  }
});

test('an ordered end is in the file', async () => {
  const { process } = await stage();
  const { epoch, dataDir } = await process();
  await epoch.close();
  const [name = ''] = (await readdir(dataDir)).filter((one) => one.startsWith('redis-seen.'));
  expect(JSON.parse(await readFile(join(dataDir, name), 'utf8')).run.isClosed).toBe(true);
});

test('a copy from before the first commit is behind, although it has the epoch', async () => {
  const { redis, keys, process } = await stage();
  const { epoch } = await process();
  const restore = await dumpOf(redis, keys);
  await redis.incr(keys.commit);
  epoch.noteCommit(1, { commits: 1, entry: '' });
  await restore();
  await epoch.check();
  expect(epoch.begun.epoch).toBe(2);
});

test('the lost time ends no earlier than it begins, and than the newest entry that was seen', async () => {
  const { redis, keys, log, process } = await stage();
  const [one, other] = [await process(), await process()];
  await other.epoch.check();
  const restore = await dumpOf(redis, keys);
  await appendOperatorEvent(redis, keys, operatorEvent('upstream.unreachable', 1));
  const [entry = ''] = (await log.after('0-0', 10)).entries.map(({ id }) => id);
  one.epoch.noteCommit(1, { commits: 0, entry });
  await restore();
  await one.epoch.check();
  const { fromMs, untilMs } = one.epoch.behind ?? {};
  expect(untilMs).toBeGreaterThanOrEqual(Number(fromMs));
  expect(untilMs).toBeGreaterThanOrEqual(Number(entry.split('-')[0]));
});

test('later entries of the log have later places than any that was seen, also where the clock of Redis is behind', async () => {
  const { redis, keys, log, process } = await stage();
  const { epoch } = await process();
  await appendOperatorEvent(redis, keys, operatorEvent('upstream.unreachable', 1));
  const restore = await dumpOf(redis, keys);
  const ahead = `${Date.now() + 60_000}-7`;
  await redis.xadd(keys.events, ahead, 'kind', 'none');
  await epoch.check();
  await restore();
  await epoch.check();
  await epoch.synchronised();
  const [place = ''] = (await log.after(ahead, 10)).entries.map(({ id }) => id);
  expect(place).toBe(`${ahead.split('-')[0]}-8`);
});

test('the file is replaced in one step, and stays where another process on the folder has seen more', async () => {
  const { process } = await stage();
  const { dataDir, epoch } = await process();
  const other = await process(dataDir);
  await other.epoch.check();
  const [name = '', ...more] = (await readdir(dataDir)).filter((one) => one.startsWith('redis-seen.'));
  expect(more).toEqual([]);
  const stored = async () => JSON.parse(await readFile(join(dataDir, name), 'utf8'));
  const { ticks } = await stored();
  await epoch.check();
  expect(await stored()).toMatchObject({ epoch: 1, ticks: ticks + 1 });
});
