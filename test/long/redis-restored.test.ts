import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { Keys } from '../../src/store/keys.ts';
import { eventually } from '../support/eventually.ts';
import { redisFront } from '../support/redis-front.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { idsByState, placesAreUnique, RestoredStage } from '../support/restored-stage.ts';
import { hashOf } from '../support/scripted-upstream.ts';

type OnTestFinished = (cleanUp: () => Promise<void>) => unknown;

const WALLET = `0x${'1'.repeat(40)}`;
const OTHER = `0x${'2'.repeat(40)}`;
const JOINS = `0x${'3'.repeat(40)}`;
const [FIRST, SECOND, THIRD, TIMELESS] = [1, 2, 3, 4].map(hashOf) as [string, string, string, string];

async function server(onTestFinished: OnTestFinished): Promise<RedisProcess> {
  const redis = await RedisProcess.create();
  onTestFinished(() => redis.close());
  return redis;
}

function client(redis: RedisProcess, onTestFinished: OnTestFinished): Redis {
  const made = new Redis(redis.url);
  onTestFinished(async () => made.disconnect());
  return made;
}

test('a replica that was behind is promoted while two processes run: both go on in one new epoch', async ({
  onTestFinished,
}) => {
  const [master, replica] = await Promise.all([server(onTestFinished), server(onTestFinished)]);
  const front = await redisFront(master);
  onTestFinished(async () => void (await front.close()));
  const stage = await RestoredStage.of(onTestFinished, front.url);
  const { upstream } = stage;
  for (const process of [0, 1]) await stage.write({ wallets: [WALLET] }, process);
  const daemons = await Promise.all([stage.daemon(0), stage.daemon(1)]);
  upstream.set(WALLET, FIRST, 'pending');
  await stage.came(FIRST, 'pending');
  const behind = client(replica, onTestFinished);
  const { port } = new URL(master.url);
  await behind.replicaof('127.0.0.1', port);
  await eventually('the replica has all', async () =>
    (await behind.info('replication')).includes('link_status:up'),
  );
  await behind.replicaof('NO', 'ONE');
  upstream.set(WALLET, FIRST, 'filled');
  upstream.set(WALLET, SECOND, 'pending');
  await Promise.all([stage.came(FIRST, 'filled'), stage.came(SECOND, 'pending')]);

  front.lead(replica);
  await stage.reports('intentwatch.storage_restored');
  upstream.set(WALLET, SECOND, 'filled');
  upstream.set(WALLET, THIRD, 'pending');
  await Promise.all([stage.came(SECOND, 'filled'), stage.came(THIRD, 'pending')]);
  const [filled] = stage.events.filter(({ type }) => type === 'intent.filled').slice(-1);
  expect(filled?.data.epoch).toBe(2);
  for (const ids of Object.values(idsByState(stage.events))) expect(ids).toHaveLength(1);
  expect(placesAreUnique(stage.events)).toBe(true);
  expect(new Set(stage.operator.ids).size).toBe(1);
  await Promise.all(daemons.map((daemon) => daemon.end('SIGTERM')));
});

test('Redis is emptied while a process runs: the last change is reported, in a new epoch, and old states retain their ids', async ({
  onTestFinished,
}) => {
  const redis = await server(onTestFinished);
  const stage = await RestoredStage.of(onTestFinished, redis.url);
  const { upstream } = stage;
  await stage.write({ wallets: [WALLET], intents: [SECOND] });
  upstream.set(OTHER, SECOND, 'pending');
  const daemon = await stage.daemon();
  upstream.set(WALLET, FIRST, 'pending');
  await Promise.all([stage.came(FIRST, 'pending'), stage.came(SECOND, 'pending')]);
  await client(redis, onTestFinished).flushall();
  upstream.set(WALLET, FIRST, 'filled');
  await stage.reports('intentwatch.storage_restored');
  await daemon.line(/"msg":"redis.emptied"/);
  await stage.came(FIRST, 'filled');
  await stage.backend.until(
    () => stage.events.filter(({ data }) => data.subject.id.endsWith(SECOND)).length >= 2,
  );
  for (const ids of Object.values(idsByState(stage.events))) expect(ids).toHaveLength(1);
  expect(stage.events.find(({ type }) => type === 'intent.filled')?.data.epoch).toBe(2);
});

test('a dump is restored while no process runs: found at the start, and the first event of each subject is marked', async ({
  onTestFinished,
}) => {
  const redis = await server(onTestFinished);
  const stage = await RestoredStage.of(onTestFinished, redis.url);
  const { upstream } = stage;
  await stage.write({ wallets: [WALLET], intents: [TIMELESS] });
  const daemon = await stage.daemon();
  upstream.set(WALLET, FIRST, 'pending');
  upstream.setTimeless(TIMELESS, 'pending');
  await Promise.all([stage.came(FIRST, 'pending'), stage.came(TIMELESS, 'pending')]);
  const dump = await redis.backUp();
  upstream.set(WALLET, FIRST, 'filled');
  upstream.setTimeless(TIMELESS, 'filled');
  // Redis does not have this one when it is back.
  upstream.set(WALLET, SECOND, 'pending');
  await Promise.all([
    stage.came(FIRST, 'filled'),
    stage.came(TIMELESS, 'filled'),
    stage.came(SECOND, 'pending'),
  ]);
  await daemon.end('SIGTERM');
  await redis.restore(dump);
  await stage.write({ wallets: [WALLET, OTHER], intents: [TIMELESS] });
  const again = await stage.daemon();
  await stage.reports('intentwatch.storage_restored');
  const filled = () => stage.events.filter(({ type }) => type === 'intent.filled');
  await stage.backend.until(() => filled().length === 4);
  const [first] = Object.entries(idsByState(filled())).filter(([state]) => state.includes(FIRST));
  expect(first?.[1]).toHaveLength(1);
  const timed = filled().filter(({ data }) => data.subject.id.endsWith(FIRST));
  expect(timed.map(({ data }) => [data.epoch, data.afterRestore])).toEqual([
    [1, undefined],
    [2, true],
  ]);
  const born = () => stage.events.filter(({ data }) => data.subject.id.endsWith(SECOND));
  await stage.backend.until(() => born().length >= 2);
  expect(born().map(({ data }) => [data.epoch, data.afterRestore])).toEqual([
    [1, undefined],
    [2, true],
  ]);
  const timeless = filled().filter(({ data }) => data.subject.id.endsWith(TIMELESS));
  expect(timeless.map(({ data }) => [data.epoch, data.afterRestore])).toEqual([
    [1, undefined],
    [2, true],
  ]);
  expect(new Set(timeless.map(({ id }) => id)).size).toBe(2);
  // A genuine move after it does not mention that.
  upstream.setTimeless(TIMELESS, 'settled');
  const [settled] = (await stage.came(TIMELESS, 'settled')).slice(-1);
  expect(settled?.data).not.toHaveProperty('afterRestore');
  await again.end('SIGTERM');

  // A second restore of the same dump, of an epoch before the last.
  await redis.restore(dump);
  await stage.daemon();
  const reports = await stage.reports('intentwatch.storage_restored', 2);
  expect(reports.map(({ data }) => data.epoch)).toEqual([2, 3]);
});

test('of two processes with different files the one with the newest config that was seen writes it again', async ({
  onTestFinished,
}) => {
  const redis = await server(onTestFinished);
  const stage = await RestoredStage.of(onTestFinished, redis.url);
  const { upstream } = stage;
  await stage.write({ wallets: [WALLET] }, 0);
  const old = await stage.daemon(0);
  upstream.set(WALLET, FIRST, 'pending');
  await stage.came(FIRST, 'pending');
  const dump = await redis.backUp();
  await stage.write({ wallets: [WALLET, OTHER] }, 1);
  const newer = await stage.daemon(1);
  upstream.set(OTHER, SECOND, 'pending');
  await stage.came(SECOND, 'pending');
  await old.line(/"msg":"config.differs"/);
  await redis.restore(dump);
  await stage.reports('intentwatch.storage_restored');
  upstream.set(OTHER, THIRD, 'pending');
  await stage.came(THIRD, 'pending');
  const digest = async (): Promise<string | null> =>
    client(redis, onTestFinished).hget(new Keys(stage.prefix).config, 'digest');
  const digestNow = await digest();

  // No process with that config remains: the holder of the relay's lease writes its own.
  await newer.end('SIGTERM');
  await redis.restore(dump);
  await stage.reports('intentwatch.storage_restored', 2);
  upstream.set(WALLET, FIRST, 'filled');
  await stage.came(FIRST, 'filled');
  expect(await digest()).not.toBe(digestNow);
});

test('a requested reload synchronises where the file has not changed', async ({ onTestFinished }) => {
  const redis = await server(onTestFinished);
  const stage = await RestoredStage.of(onTestFinished, redis.url);
  await stage.write({ wallets: [WALLET] }, 0);
  await stage.write({ wallets: [OTHER] }, 1);
  const first = await stage.daemon(0);
  await stage.daemon(1);
  await first.line(/"msg":"config.differs"/);
  first.send('SIGHUP');
  await first.line(/"msg":"config.unchanged"/);
  stage.upstream.set(WALLET, FIRST, 'pending');
  await stage.came(FIRST, 'pending');
  // The wallets that were removed from the newest config are suspended.
  const [stored, keys] = [client(redis, onTestFinished), new Keys(stage.prefix)];
  const [wanted, suspended] = [await stored.hkeys(keys.wanted), await stored.hkeys(keys.suspended)];
  expect(wanted.toSorted()).toEqual([WALLET, OTHER].map((wallet) => `all|wallet:${wallet}`).toSorted());
  expect(suspended).toEqual([`all|wallet:${OTHER}`]);
});

test('a dump that predates a reload: the reload is applied again, and states retain their ids in a new epoch', async ({
  onTestFinished,
}) => {
  const redis = await server(onTestFinished);
  const stage = await RestoredStage.of(onTestFinished, redis.url);
  const { upstream } = stage;
  const [old, left, early] = [hashOf(1), hashOf(2), hashOf(3)];
  await stage.write({ wallets: [WALLET, OTHER] });
  const daemon = await stage.daemon();
  upstream.set(WALLET, old, 'pending');
  upstream.set(OTHER, left, 'pending');
  await Promise.all([stage.came(old, 'pending'), stage.came(left, 'pending')]);
  const dump = await redis.backUp();

  await stage.write({ wallets: [WALLET, JOINS] });
  daemon.send('SIGHUP');
  await daemon.line(/"msg":"config.reloaded"/);
  upstream.set(WALLET, old, 'filled');
  upstream.set(JOINS, early, 'pending');
  await Promise.all([stage.came(old, 'filled'), stage.came(early, 'pending')]);

  await redis.restore(dump);
  const [report] = await stage.reports('intentwatch.storage_restored');
  const joined = [11, 12, 13, 14, 15].map(hashOf);
  for (const hash of joined) upstream.set(JOINS, hash, 'pending');
  upstream.set(OTHER, left, 'filled');
  upstream.set(WALLET, old, 'settled');
  await Promise.all([...joined.map((hash) => stage.came(hash, 'pending')), stage.came(old, 'settled')]);

  const { events } = stage;
  const ofLeft = events.filter(({ data }) => data.subject.id === `intent:${left}`);
  expect(ofLeft.map(({ type }) => type)).not.toContain('intent.filled');
  for (const ids of Object.values(idsByState(events))) expect(ids).toHaveLength(1);
  expect(placesAreUnique(events)).toBe(true);
  expect(report?.data).toMatchObject({ epoch: 2, record: { epoch: 2 } });
  const { lostFrom, lostUntil, resumedAt } = report?.data.record ?? {};
  expect(Date.parse(String(lostFrom))).toBeLessThan(Date.parse(String(lostUntil)));
  expect(Date.parse(String(resumedAt))).toBeGreaterThanOrEqual(Date.parse(String(lostUntil)));
  expect(events.find(({ type }) => type === 'intent.settled')?.data.epoch).toBe(2);
  expect(stage.operator.ids).toHaveLength(1);
});
