import { expect, test } from 'vitest';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { type TestConfig, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

test('a reload that Redis refuses amid it changes nothing, and the next one succeeds', async () => {
  const [ONE, TWO, BOTH] = [hashOf(1), hashOf(2), hashOf(3)];
  const statuses = new Map([ONE, TWO].map((hash) => [hash, 'pending']));
  const upstream = await started(
    new ScriptedUpstream(({ query }) => {
      const hash = query.intentHash ?? '';
      return { records: [intentRecord(hash, statuses.get(hash) ?? 'unknown', 1_763_638_259)] };
    }),
  );
  const hook = await started(new Hook());
  const server = await RedisProcess.create();
  later(() => server.close());
  const redis = connect({ kind: 'server', url: server.url });
  later(() => disconnect(redis));
  const config: TestConfig = {
    baseUrl: upstream.url,
    redisUrl: server.url,
    prefix: testPrefix(),
    receivers: { backend: { url: hook.url } },
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [ONE, BOTH] }],
  };
  const keys = new Keys(config.prefix);
  const { daemon, write } = await reloadable(config, { later });
  await hook.until((came) => came.length === 1);
  const digest = await redis.hget(keys.config, 'digest');

  const next = {
    ...config,
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [TWO, BOTH] }],
  };
  await write(next);
  // Removed subjects are removed before this command, and new ones are written after it.
  await redis.acl('SETUSER', 'default', '-hincrby');
  // The check of its files reads it as well: each read is refused.
  const refused = { ok: false, error: expect.stringMatching(/NOPERM|can't run this command/) };
  expect(await daemon.reload()).toMatchObject(refused);
  expect(await redis.hget(keys.config, 'digest')).toBe(digest);
  // Otherwise the refused file would be tried again.
  await write(config);
  await redis.acl('SETUSER', 'default', '+hincrby');
  await eventually('Redis holds what the old config wants', async () => {
    const wanted = await redis.hkeys(keys.wanted);
    const isOld = wanted.sort().join() === [ONE, BOTH].map((hash) => `orders|intent:${hash}`).join();
    return isOld && (await redis.hget(keys.config, 'digest')) === digest;
  });
  statuses.set(ONE, 'filled');
  await hook.until((came) => came.length === 2);

  await write(next);
  expect(await daemon.reload()).toMatchObject({ ok: true });
  await hook.until((came) => came.length === 3);
  expect(hook.came.map(({ event }) => [event.type, event.data.subject.id])).toEqual([
    ['intent.pending', `intent:${ONE}`],
    ['intent.filled', `intent:${ONE}`],
    ['intent.pending', `intent:${TWO}`],
  ]);
});
