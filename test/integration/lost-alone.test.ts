import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { Keys } from '../../src/store/keys.ts';
import { type TestConfig, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, intentRecord, ScriptedUpstream, upstreamOfStatuses } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const HASH = hashOf(9);
const QUICK = { polling: { shortestWait: '1s', longestWait: '1s' } };

/** The config of a daemon with one receiver. */
function configOf(baseUrl: string, hook: Hook, subscriptions: TestConfig['subscriptions']): TestConfig {
  const redisUrl = inject('redisUrl');
  const receivers = { hook: { url: hook.url } };
  return { baseUrl, redisUrl, prefix: testPrefix(), receivers, subscriptions, more: QUICK };
}

/** A daemon that has reported one transfer; `tracks`: it is tracked through the API, and no subscription names it. */
async function stage({ tracks = false } = {}) {
  const redis = new Redis(inject('redisUrl'));
  later(async () => redis.disconnect());
  const statuses = new Map([[HASH, 'pending']]);
  const upstream = await started(upstreamOfStatuses(statuses));
  const hook = await started(new Hook());
  const named = [{ name: 's', intents: [HASH], receivers: ['hook'] }];
  const config = configOf(upstream.url, hook, tracks ? [] : named);
  const run = await reloadable(config, { later });
  const post = async (path: string, body?: object): Promise<number> => {
    const sent =
      body === undefined
        ? {}
        : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    return (await fetch(`${run.daemon.url}/api/v1${path}`, { method: 'POST', ...sent })).status;
  };
  if (tracks) await post('/subjects', { kind: 'intent', id: HASH, receivers: ['hook'] });
  await hook.until((came) => came.length === 1);
  return { redis, keys: new Keys(config.prefix), statuses, hook, config, run, post };
}

describe('the next change is delivered', () => {
  test.each([
    'subscriptions',
    'receivers',
  ] as const)('where %s are lost alone, while it runs', async (name) => {
    const { redis, keys, statuses, hook } = await stage();
    await redis.del(keys[name]);
    statuses.set(HASH, 'filled');
    await hook.until((came) => came.length === 2);
  });

  test('where the wanted subjects are lost alone, and all are tracked through the API', async () => {
    const { redis, keys, statuses, hook } = await stage({ tracks: true });
    await redis.del(keys.wanted);
    statuses.set(HASH, 'filled');
    await hook.until((came) => came.length === 2);
  });

  test('where the cursors are lost alone while its receiver is paused, and the config changes', async () => {
    const { redis, keys, statuses, hook, config, run, post } = await stage();
    expect(await post('/receivers/hook/pause')).toBe(200);
    const before = await redis.xlen(keys.events);
    statuses.set(HASH, 'filled');
    await eventually('the change is logged', async () => (await redis.xlen(keys.events)) > before);
    await redis.del(keys.cursors);
    await run.write({ ...config, more: { polling: { shortestWait: '1s', longestWait: '2s' } } });
    await run.daemon.reload();
    expect(await post('/receivers/hook/resume')).toBe(200);
    await hook.until((came) => came.length === 2);
  });

  test('where the wanted subjects are lost alone while it is down: a transfer of that time is no history', async () => {
    const redis = new Redis(inject('redisUrl'));
    later(async () => redis.disconnect());
    const records = new Map<string, JsonObject>();
    const add = (number: number): void => {
      const hash = hashOf(number);
      records.set(hash, intentRecord(hash, 'settled', Math.floor(Date.now() / 1_000)));
    };
    const upstream = await started(new ScriptedUpstream(() => ({ records: [...records.values()] })));
    const hook = await started(new Hook());
    const wallets = [`0x${'5'.repeat(40)}`];
    const config = configOf(upstream.url, hook, [{ name: 's', wallets, receivers: ['hook'] }]);
    const run = await reloadable(config, { later });
    const startedAt = Math.floor(Date.now() / 1_000);
    const passes = (seconds: number) => (): boolean => Date.now() / 1_000 > startedAt + seconds;
    await eventually('it has begun before', passes(3));
    add(11);
    await hook.until((came) => came.length === 1);
    await run.daemon.close();
    await redis.del(new Keys(config.prefix).wanted);
    add(12);
    await eventually('the transfer is older than the next start', passes(9));
    await reloadable(config, { later, file: run.file });
    await hook.until((came) => came.some(({ event }) => event.data.subject.id === `intent:${hashOf(12)}`));
  });
});
