import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { REDIS_FOLDER, type RemovedGaps, type Truncation, writeRecord } from '../../src/store/append-only.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { EmbeddedRedis } from '../../src/store/embedded.ts';
import { LimitedRedis, rewriteFile, writeAgain, writeUntilRefused } from '../support/limited-redis.ts';
import { opening } from '../support/opening.ts';
import { freePort } from '../support/port.ts';

const { later } = opening();

const FILE = 'appendonly.aof.2.incr.aof';

/** A folder with a redis-server that has rewritten its file. */
async function rewritten(): Promise<{ folder: string; server: LimitedRedis; redis: RedisClient }> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-test-gaps-'));
  later(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const port = await freePort();
  const server = new LimitedRedis(folder, port);
  server.start();
  later(() => server.end('SIGKILL'));
  const redis = connect({ kind: 'server', url: `redis://127.0.0.1:${port}` });
  later(async () => redis.disconnect());
  await rewriteFile(redis);
  return { folder, server, redis };
}

type Start = { embedded: EmbeddedRedis; keys: string[]; gaps: RemovedGaps[]; losses: Truncation[] };

async function startEmbedded(dataDir: string): Promise<Start> {
  const [gaps, losses]: [RemovedGaps[], Truncation[]] = [[], []];
  const embedded = new EmbeddedRedis({
    dataDir,
    onTrouble: () => undefined,
    onTruncated: (truncation) => losses.push(truncation),
    onGaps: (removed) => gaps.push(removed),
  });
  later(() => embedded.close());
  await embedded.takeFolder();
  await embedded.start();
  const redis = connect(embedded.target);
  const keys = await redis.keys('*');
  redis.disconnect();
  return { embedded, keys, gaps, losses };
}

test('a gap that a full disk left is removed at the next start, and nothing is lost', async () => {
  const { folder, server, redis } = await rewritten();
  await server.limit(20_000);
  const written = await writeUntilRefused(redis, 'before');
  await server.limit('unlimited');
  await writeAgain(redis, ['behind', 'last']);
  await server.end('SIGKILL');
  const path = join(folder, REDIS_FOLDER, FILE);
  const damaged = await readFile(path);
  expect(damaged.includes(0)).toBe(true);
  // As a daemon records it once a minute.
  await writeRecord(folder, { file: FILE, bytes: damaged.length, unreported: [] });

  const first = await startEmbedded(folder);
  expect(first.keys).toEqual(expect.arrayContaining([...written, 'behind', 'last']));
  const zeros = damaged.filter((byte) => byte === 0).length;
  expect(first.gaps).toEqual([{ file: FILE, gaps: 1, bytes: zeros, lost: null }]);
  expect([first.losses, first.embedded.unreported]).toEqual([[], []]);
  expect((await stat(path)).size).toBe(damaged.length - zeros);
  await first.embedded.close();

  const second = await startEmbedded(folder);
  expect([second.keys.length, second.gaps, second.losses]).toEqual([first.keys.length, [], []]);
});

test('what a second full disk cut off before its gap is a loss, and nothing behind the gap is', async () => {
  const { folder, server, redis } = await rewritten();
  const written: string[] = [];
  for (const bytes of [20_000, 40_000]) {
    await server.limit(bytes);
    written.push(...(await writeUntilRefused(redis, `before-${bytes}`)));
    await server.limit('unlimited');
    await writeAgain(redis, [`behind-${bytes}`, `last-${bytes}`]);
    written.push(`behind-${bytes}`, `last-${bytes}`);
  }
  await server.end('SIGKILL');
  await writeRecord(folder, { file: FILE, bytes: 0, unreported: [] });

  const { keys, gaps, losses, embedded } = await startEmbedded(folder);
  const lostKeys = written.filter((key) => !keys.includes(key));
  expect(lostKeys.length).toBeGreaterThan(0);
  expect(lostKeys.every((key) => key.startsWith('before-40000'))).toBe(true);
  const loss = { file: FILE, bytes: expect.any(Number), changedAtMs: expect.any(Number) };
  expect(losses).toEqual([{ ...loss, lastWriteMs: expect.any(Number) }]);
  expect(gaps).toEqual([{ file: FILE, gaps: 2, bytes: expect.any(Number), lost: losses[0] }]);
  expect(embedded.unreported).toEqual(losses);
});
