import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { scripts } from '../../src/store/scripts.ts';
import { deliveryStage, happen, happening } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const open = opening();
const CONCURRENCY = 5;

/** The name under which Redis knows a script, by the begin of its file's name. */
function shaOf(file: string): string {
  const redis = new Redis({ lazyConnect: true });
  const found: string[] = [];
  redis.defineCommand = (name, { lua }) => {
    if (name.startsWith(`iw:${file}-`)) found.push(createHash('sha1').update(lua).digest('hex'));
  };
  for (const script of Object.values(scripts)) script.define(redis);
  redis.disconnect();
  if (found[0] === undefined) throw new Error(`found no script ${file}`);
  return found[0];
}

test('a lost reply of the script that records ends and claims the next loses none of them, and repeats none', async () => {
  const EVENTS = 120;
  const hook = await open.started(new Hook());
  const stage = await deliveryStage(open, { hook: { hook, more: { concurrency: CONCURRENCY } } });
  const { hostname: host, port } = new URL(inject('redisUrl'));
  const proxy = await open.started(new TcpProxy({ host, port: Number(port) }));
  let cuts = 0;
  // A reply with the outcome of an attempt and a claimed delivery: the script was executed, and its process does not learn so.
  proxy.onReply = (bytes) => {
    if (cuts === 4 || !bytes.includes('delivered') || !bytes.includes('claimKeys')) return 'pass';
    if (hook.came.length < 20 * (cuts + 1)) return 'pass';
    cuts += 1;
    return 'cut';
  };
  stage.config.redisUrl = proxy.url;
  await stage.start();
  await happen(stage, EVENTS);
  await stage.drained('hook');
  expect(cuts).toBe(4);
  expect(new Set(hook.ids).size).toBe(EVENTS);
  expect(hook.ids.length).toBe(EVENTS);
  await eventually(
    'nothing is claimed',
    async () => (await stage.redis.hlen(`${stage.keys.queue('hook')}:sending`)) === 0,
  );
});

test('a process alone writes no wake-ups; a second one is woken, and gets its share', async () => {
  const released = Promise.withResolvers<void>();
  const hook = await open.started(new Hook());
  const stage = await deliveryStage(open, { hook: { hook, more: { concurrency: CONCURRENCY } } });
  const more = happening(stage, 6 * CONCURRENCY);
  await stage.start();
  await more(6 * CONCURRENCY);
  await hook.until((came) => came.length === 6 * CONCURRENCY);
  await stage.drained('hook');
  expect(await stage.redis.xlen(stage.keys.wakes)).toBe(0);
  await stage.start();
  hook.answer = async () => {
    await released.promise;
    return 204;
  };
  const made = await more(6 * CONCURRENCY);
  const sending = `${stage.keys.queue('hook')}:sending`;
  await eventually('both processes send what they may', async () => {
    const senders = Map.groupBy(await stage.redis.hvals(sending), (value) => value.replace(/:\d+$/, ''));
    return [...senders.values()].filter(({ length }) => length === CONCURRENCY).length === 2;
  });
  expect(await stage.redis.xlen(stage.keys.wakes)).toBeGreaterThan(0);
  released.resolve();
  await stage.drained('hook');
  expect(hook.ids.length).toBe(6 * CONCURRENCY + made.length);
  expect(new Set(hook.ids).size).toBe(hook.ids.length);
});

test('no empty claim follows a delivery', async () => {
  const EVENTS = 20;
  const hook = await open.started(new Hook());
  const stage = await deliveryStage(open, { hook: { hook, more: { concurrency: CONCURRENCY } } });
  const { hostname: host, port } = new URL(inject('redisUrl'));
  const proxy = await open.started(new TcpProxy({ host, port: Number(port) }));
  const calls = { claim: 0, record: 0 };
  const shas = [
    [shaOf('claim-deliveries'), 'claim'],
    [shaOf('record-attempts'), 'record'],
  ] as const;
  proxy.onRequest = (bytes) => {
    for (const [sha, call] of shas) calls[call] += bytes.toString('latin1').split(sha).length - 1;
    return 'pass';
  };
  stage.config.redisUrl = proxy.url;
  const more = happening(stage, EVENTS);
  await stage.start();
  for (let number = 1; number <= EVENTS; number += 1) {
    await more(1);
    await hook.until((came) => came.length === number);
    await stage.drained('hook');
  }
  // The first call of a script sends its text.
  expect(calls.record).toBeGreaterThan(EVENTS / 2);
  // An event that comes while the last record is under way is claimed by itself; the start claims too. None follows in vain.
  expect(calls.claim).toBeLessThan(1.5 * EVENTS);
});
