import { describe, expect, test } from 'vitest';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { RedisNode } from '../support/redis-node.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

async function firstEvent(redisUrl: string): Promise<string | undefined> {
  const upstream = new ScriptedUpstream(({ query }) => ({
    records: query.intentHash ? [intentRecord(query.intentHash, 'filled', 1_700_000_000)] : [],
  }));
  await started(upstream);
  const hook = await started(new TestReceiver());
  const { daemon } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl,
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url } },
    subscriptions: [{ name: 's', intents: [hashOf(1)], receivers: ['hook'] }],
  });
  later(() => daemon.close());
  const [event] = await hook.until((events) => events.length > 0);
  return event?.type;
}

describe('redis.url', () => {
  test('may name a Cluster: every key has one hash tag', async () => {
    const node = await RedisNode.startClusterNode();
    later(() => node.close());
    await node.client.cluster('ADDSLOTSRANGE', 0, 16_383);
    await eventually('the Cluster is whole', async () =>
      String(await node.client.cluster('INFO')).includes('cluster_state:ok'),
    );
    expect(await firstEvent(`redis+cluster://127.0.0.1:${node.port}`)).toBe('intent.filled');
  });

  test('may name a Sentinel group', async () => {
    const master = await RedisNode.start();
    later(() => master.close());
    const sentinel = await RedisNode.startSentinel('watched', master, 30_000);
    later(() => sentinel.close());
    expect(await firstEvent(`redis+sentinel://127.0.0.1:${sentinel.port}/watched`)).toBe('intent.filled');
  });
});
