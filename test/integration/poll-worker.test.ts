import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { POLL_JOB } from '../../src/queues/polls/poll-queues.ts';
import { Keys } from '../../src/store/keys.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const { later, started } = opening();

/** As many polls as a process claims at first. They come in at least 40 jobs. */
const MANY = 400;

test('behind a Redis that is far away, polls begin while others are still fetched from the queue', async () => {
  const prefix = testPrefix();
  const { hostname, port } = new URL(inject('redisUrl'));
  const proxy = await started(new TcpProxy({ host: hostname, port: Number(port) }));
  proxy.delayMs = 50;
  const redis = new Redis(inject('redisUrl'));
  const queue = new Queue('status', { connection: redis, prefix: new Keys(prefix).queues });
  later(async () => {
    await queue.close();
    redis.disconnect();
  });
  // The number of jobs that a worker has fetched and not begun, at every request.
  const waiting: number[] = [];
  const requested = new Set<string>();
  const upstream = await started(
    new ScriptedUpstream(async ({ query }) => {
      requested.add(`intent:${query.intentHash}`);
      const jobs = (await queue.getActive()).map(({ data }) => POLL_JOB.parse(data).polls);
      waiting.push(jobs.filter((polls) => !polls.some(({ member }) => requested.has(member))).length);
      return { records: [intentRecord(query.intentHash ?? '', 'pending', 1_700_000_000)] };
    }),
  );
  const hook = await started(new TestReceiver());
  const { daemon } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: proxy.url,
    prefix,
    receivers: { hook: { url: hook.url } },
    subscriptions: [
      { name: 's', intents: Array.from({ length: MANY }, (_, at) => hashOf(at)), receivers: ['hook'] },
    ],
    more: { upstream: { baseUrl: upstream.url, apiKey: 'sandbox-key', requestsPerSecond: 5_000 } },
  });
  later(() => daemon.close());
  await hook.until((events) => events.length === MANY);
  expect(Math.max(...waiting)).toBeLessThan(20);
});
