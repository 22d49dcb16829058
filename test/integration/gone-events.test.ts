import { expect, inject, test } from 'vitest';
import { redisTimeMs } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { type TestConfig, testPrefix } from '../support/daemon.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, upstreamOfStatuses } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const HASH = hashOf(9);

test('a state whose event has left the log is reported to receivers that track its transfer later, once', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const statuses = new Map([[HASH, 'pending']]);
  const upstream = await started(upstreamOfStatuses(statuses));
  const [first, second, third] = [
    await started(new Hook()),
    await started(new Hook()),
    await started(new Hook()),
  ];
  const keys = new Keys(testPrefix());
  const config: TestConfig = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: keys.prefix.slice(1, -1),
    receivers: { first: { url: first.url }, second: { url: second.url }, third: { url: third.url } },
    subscriptions: [{ name: 's', intents: [HASH], receivers: ['first'] }],
    more: { polling: { shortestWait: '1s', longestWait: '1s' } },
  };
  const run = await reloadable(config, { later });
  await first.until((came) => came.length === 1);
  await new EventLog(redis, keys).trim((await redisTimeMs(redis)) + 1, ['first', 'second', 'third']);
  const answer = await fetch(`${run.daemon.url}/api/v1/subjects`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'intent', id: HASH, receivers: ['second'] }),
  });
  expect(answer.status).toBe(201);
  await second.until((came) => came.length === 1);
  const joining = { name: 't', intents: [HASH], receivers: ['third'] };
  await run.write({ ...config, subscriptions: [...config.subscriptions, joining] });
  await run.daemon.reload();
  await third.until((came) => came.length === 1);
  statuses.set(HASH, 'filled');
  for (const hook of [first, second, third]) await hook.until((came) => came.length === 2);
  const received = [first, second, third].map(({ came }) =>
    came.map(({ event }) => `${event.id} ${event.type} ${event.data.sequence}`),
  );
  expect(new Set(received.map((some) => some.join())).size).toBe(1);
  expect(first.came.map(({ event }) => [event.type, event.data.sequence])).toEqual([
    ['intent.pending', 1],
    ['intent.filled', 2],
  ]);
});
