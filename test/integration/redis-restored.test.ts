import { expect, test } from 'vitest';
import { RedisProcess } from '../support/redis-process.ts';
import { idsByState, placesAreUnique, RestoredStage } from '../support/restored-stage.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const [STAYS, LEAVES, JOINS] = [1, 2, 3].map((number) => `0x${String(number).repeat(40)}`) as [
  string,
  string,
  string,
];

async function redisServer(onTestFinished: (cleanUp: () => Promise<void>) => unknown): Promise<RedisProcess> {
  const redis = await RedisProcess.create();
  onTestFinished(() => redis.close());
  return redis;
}

test('a dump that predates a reload: the reload is applied again, and states keep their ids in a new epoch', async ({
  onTestFinished,
}) => {
  const redis = await redisServer(onTestFinished);
  const stage = await RestoredStage.of(onTestFinished, redis.url);
  const { upstream } = stage;
  const [old, left, early] = [hashOf(1), hashOf(2), hashOf(3)];
  await stage.write({ wallets: [STAYS, LEAVES] });
  const daemon = await stage.daemon();
  upstream.set(STAYS, old, 'pending');
  upstream.set(LEAVES, left, 'pending');
  await Promise.all([stage.came(old, 'pending'), stage.came(left, 'pending')]);
  const dump = await redis.backUp();

  await stage.write({ wallets: [STAYS, JOINS] });
  daemon.send('SIGHUP');
  await daemon.line(/"msg":"config.reloaded"/);
  upstream.set(STAYS, old, 'filled');
  upstream.set(JOINS, early, 'pending');
  await Promise.all([stage.came(old, 'filled'), stage.came(early, 'pending')]);

  await redis.restore(dump);
  const [report] = await stage.reports('intentwatch.storage_restored');
  const joined = [11, 12, 13, 14, 15].map(hashOf);
  for (const hash of joined) upstream.set(JOINS, hash, 'pending');
  upstream.set(LEAVES, left, 'filled');
  upstream.set(STAYS, old, 'settled');
  await Promise.all([...joined.map((hash) => stage.came(hash, 'pending')), stage.came(old, 'settled')]);

  const { events } = stage;
  const ofLeft = events.filter(({ data }) => data.subject.id === `intent:${left}`);
  expect(ofLeft.map(({ type }) => type)).not.toContain('intent.filled');
  for (const ids of Object.values(idsByState(events))) expect(ids).toHaveLength(1);
  expect(placesAreUnique(events)).toBe(true);
  expect(report?.data).toMatchObject({ epoch: 2, record: { epoch: 2 } });
  const { lostFrom, lostUntil } = report?.data.record ?? {};
  expect(Date.parse(String(lostFrom))).toBeLessThan(Date.parse(String(lostUntil)));
  expect(events.find(({ type }) => type === 'intent.settled')?.data.epoch).toBe(2);
  expect(stage.operator.ids).toHaveLength(1);
});
