import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { expect, inject, test, vi } from 'vitest';
import { Heartbeat } from '../../src/queues/heartbeat.ts';
import { redisTimeMs } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { receiverText } from '../../src/store/definitions.ts';
import { DeliveryStore } from '../../src/store/deliveries.ts';
import { DirectoryStore } from '../../src/store/directory.ts';
import { FencedLease } from '../../src/store/lease.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { type ProcessInstance, readSystemProcess } from '../../src/store/process-instance.ts';
import { Registry } from '../../src/store/registry.ts';
import { SenderStore } from '../../src/store/senders.ts';
import { CHAIN, ChecksStage } from '../support/checks-stage.ts';
import { CLAIM_KEY } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { intents, PlanStage } from '../support/plan-stage.ts';
import { RedisProcess } from '../support/redis-process.ts';

const { later } = opening();

/** The lease of a heartbeat, as the product has it. */
const LEASE_MS = 9_300;

const EVERYTHING = { wallets: null, chains: null, minAmount: null };

const ONE = { most: 1, intervalMs: null, isTogether: false, held: [] };

const UNKNOWN: ProcessInstance = { connection: null, system: null };

/** A Redis prefix with a delivery, a poll, a check and the leases, which `claimAll` claims for a process. */
async function stage() {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const checked = new ChecksStage(redis);
  const { keys, store: checks, subjects } = checked;
  const deliveries = new DeliveryStore(redis, keys);
  const plan = new PlanStore(redis, keys);
  const registry = new Registry(redis, keys, subjects);
  const senders = new SenderStore(redis, keys);
  const name = 'hook';
  await redis.hset(
    keys.receivers,
    name,
    receiverText({ name, type: 'webhook', events: ['*'], filter: EVERYTHING, ordering: 'none' }),
  );
  await plan.setBudgets({ status: 100 });
  await plan.track(intents(1));
  await checked.begin();
  await checked.state([1], { agoMs: 0 });
  const leaseKeys = [
    { lease: keys.relayLease, fence: keys.relayFence },
    { lease: keys.checksLease, fence: keys.checksFence },
    { lease: keys.booksLease, fence: keys.booksFence },
    { lease: keys.configLease, fence: keys.configFence },
  ];
  /** Claims all that is free. Returns the number of claims of each kind. */
  const claimAll = async (process: string) => {
    const holders = leaseKeys.map((keys) => new FencedLease(redis, keys, process));
    const tokens = await Promise.all(holders.map((lease) => lease.hold()));
    const claimed = await deliveries.claim(name, { process, order: ONE });
    const { polls } = await plan.claim('status', { process, most: 1, aheadMs: 100, sent: [] });
    const hasTurn = await new DirectoryStore(redis, keys, { process }).claimTurn(60_000);
    const found = await checks.claim(`${process} 1`, new Map([[CHAIN, 1]]));
    return {
      leases: tokens.filter((token) => token !== null).length,
      deliveries: claimed.claimed.length,
      polls: polls.length,
      checks: found.claimed.length,
      turns: hasTurn ? 1 : 0,
    };
  };
  const opener = new FencedLease(redis, { lease: keys.relayLease, fence: keys.relayFence });
  await deliveries.open((await opener.hold()) ?? '', {
    receiver: name,
    deliveries: [{ id: 'evt_1', entry: '1-0', claimKeys: [CLAIM_KEY], subject: null }],
    replay: null,
    cursor: null,
    process: '',
  });
  await opener.release();
  const begin = async (id: string) => {
    const log = pino({ level: 'silent' });
    const heartbeat = new Heartbeat({ id, senders, registry, deliveries, plan, checks, log });
    await heartbeat.start();
    later(() => heartbeat.close());
    return heartbeat;
  };
  return { redis, keys, senders, epoch: subjects.epoch, claimAll, begin };
}

const ALL = { leases: 4, deliveries: 1, polls: 1, checks: 1, turns: 1 };
const NOTHING = { leases: 0, deliveries: 0, polls: 0, checks: 0, turns: 0 };

/** A program that does nothing, as another process sees it. */
async function idleProgram() {
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  later(async () => child.kill('SIGKILL'));
  const own = await readSystemProcess();
  if (own === null || child.pid === undefined) throw new Error('expected a program and /proc');
  const text = await readFile(`/proc/${child.pid}/stat`, 'utf8');
  const started = text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  return { child, instance: { connection: null, system: { ...own, pid: child.pid, started } } };
}

test('takes over at once all that a killed process had claimed', async () => {
  const { senders, claimAll, begin } = await stage();
  const { child, instance } = await idleProgram();
  await senders.heartbeat('p', { leaseMs: LEASE_MS, instance });
  expect(await claimAll('p')).toEqual(ALL);
  child.kill('SIGKILL');
  await once(child, 'exit');
  await begin('q');
  expect(await claimAll('q')).toEqual(ALL);
});

test('takes over at once from a process that has ended itself', async () => {
  const { senders, claimAll, begin } = await stage();
  await senders.heartbeat('p', { leaseMs: LEASE_MS, instance: UNKNOWN });
  expect(await claimAll('p')).toEqual(ALL);
  await senders.end('p');
  await begin('q');
  expect(await claimAll('q')).toEqual(ALL);
});

test('takes nothing from a process that is stopped, nor from one of which nothing is shown', async () => {
  const { redis, keys, senders, claimAll, begin } = await stage();
  const { child, instance } = await idleProgram();
  child.kill('SIGSTOP');
  const hour = { leaseMs: 3_600_000 };
  const leaseOf = async (process: string) => Number(await redis.zscore(keys.senders, process));
  await senders.heartbeat('p', { ...hour, instance });
  await senders.heartbeat('other', { ...hour, instance: UNKNOWN });
  expect(await claimAll('p')).toEqual(ALL);
  const heartbeat = await begin('q');
  await heartbeat.beat();
  expect(await claimAll('q')).toEqual(NOTHING);
  for (const process of ['p', 'other']) expect(await leaseOf(process)).toBeGreaterThan(0);
});

test('an open connection is a sign of life, and its absence one of death after a while', async () => {
  await eventually('a machine that is quick enough for heartbeats in time', async () => {
    const { redis, keys, senders, claimAll, begin } = await stage();
    const connections = ['p', 'r'].map((process) => {
      const connection = `test:${keys.prefix}:${process}`;
      const client = new Redis(inject('redisUrl'), { connectionName: connection });
      later(async () => client.disconnect());
      return { process, client, instance: { connection, system: null } };
    });
    for (const { process, client, instance } of connections) {
      await client.ping();
      await senders.heartbeat(process, { leaseMs: LEASE_MS, instance });
    }
    expect(await claimAll('p')).toMatchObject({ deliveries: 1, leases: 4 });
    const lease = Number(await redis.zscore(keys.senders, 'p'));
    connections[0]?.client.disconnect();
    const heartbeat = await begin('q');
    let [beatMs, gapMs] = [performance.now(), 0];
    while ((await redis.hexists(keys.instances, 'p')) === 1) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      await heartbeat.beat();
      gapMs = Math.max(gapMs, performance.now() - beatMs);
      beatMs = performance.now();
    }
    if (gapMs > 900) return false;
    expect(await redisTimeMs(redis)).toBeLessThan(lease);
    expect(await redis.hexists(keys.instances, 'r')).toBe(1);
    expect(await claimAll('q')).toMatchObject({ deliveries: 1, leases: 4 });
    return true;
  });
});

test('a process whose claims others have begins none of them once it sends a heartbeat', async () => {
  const { redis, keys, senders, begin } = await stage();
  const heartbeat = await begin('p');
  const { life } = heartbeat;
  expect(heartbeat.isSure(life)).toBe(true);
  const lease = String(await redis.zscore(keys.senders, 'p'));
  // A proof from before a heartbeat is none.
  expect(await senders.declareGone([{ process: 'p', lease: '1', instance: null }])).toEqual([]);
  await eventually('it is declared gone between two heartbeats', async () => {
    const lease = String(await redis.zscore(keys.senders, 'p'));
    return (await senders.declareGone([{ process: 'p', lease, instance: null }])).length === 1;
  });
  await heartbeat.beat();
  expect(heartbeat.isSure(life)).toBe(false);
  expect(heartbeat.isSure(heartbeat.life)).toBe(true);
  expect(Number(await redis.zscore(keys.senders, 'p'))).toBeGreaterThanOrEqual(Number(lease));
});

test('a heartbeat that is sent again, since its reply was lost, ends a life and declares nobody gone', async () => {
  const { redis, keys, senders, begin } = await stage();
  const heartbeat = await begin('p');
  // Its lease ends, and it sends only the heartbeats of the test.
  await heartbeat.close();
  const { life } = heartbeat;
  expect(heartbeat.isSure(life)).toBe(true);
  await senders.heartbeat('q', { leaseMs: LEASE_MS, instance: UNKNOWN });
  await redis.zincrby(keys.senders, -LEASE_MS - 1_000, 'q');
  const beforeMs = await redisTimeMs(redis);
  await eventually('a later time', async () => (await redisTimeMs(redis)) > beforeMs);
  const lost = await senders.heartbeat('p', { leaseMs: LEASE_MS, instance: UNKNOWN });
  expect(lost).toMatchObject({ isVoid: true, gone: [] });
  await heartbeat.beat();
  expect(heartbeat.isSure(life)).toBe(false);
  expect(heartbeat.isSure(heartbeat.life)).toBe(true);
  expect(await redis.hexists(keys.instances, 'q')).toBe(1);
  await heartbeat.beat();
  expect(await redis.hexists(keys.instances, 'q')).toBe(0);
});

test('a Redis that has lost a heartbeat has lost what a process wrote after it: the next epoch begins', async () => {
  const { redis, keys, epoch, begin } = await stage();
  await epoch.check();
  const heartbeat = await begin('one');
  const [senders, instances] = await Promise.all([
    redis.dumpBuffer(keys.senders),
    redis.dumpBuffer(keys.instances),
  ]);
  await heartbeat.beat();
  await epoch.check();
  expect(epoch.begun.epoch).toBe(1);
  await redis.restore(keys.senders, 0, senders, 'REPLACE');
  await redis.restore(keys.instances, 0, instances, 'REPLACE');
  await heartbeat.beat();
  await epoch.check();
  expect(epoch.begun.epoch).toBe(2);
  expect(epoch.behind?.reason).toContain('lost a heartbeat');
  await heartbeat.beat();
  await epoch.check();
  expect(epoch.begun.epoch).toBe(2);
});

test('a process declared gone, or a clock that was set back, is no lost heartbeat', async () => {
  const { redis, keys, senders, epoch, begin } = await stage();
  await epoch.check();
  const heartbeat = await begin('one');
  await senders.end('one');
  await heartbeat.beat();
  await senders.end('one');
  await senders.remove(['one']);
  await heartbeat.beat();
  // The heartbeat of another process, right after a step back, has cut the lease.
  await redis.zincrby(keys.senders, -200, 'one');
  await heartbeat.beat();
  await epoch.check();
  expect(epoch.begun.epoch).toBe(1);
});

test('a heartbeat comes once a second while there is no other process, and more often beside one', async () => {
  const { redis, keys, senders, begin } = await stage();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  later(async () => void vi.useRealTimers());
  const beats = vi.spyOn(senders, 'heartbeat');
  await begin('q');
  const beatsIn = async (ms: number): Promise<number> => {
    await vi.advanceTimersByTimeAsync(ms);
    await Promise.all(beats.mock.results.map(({ value }) => value));
    // The wait for the next one begins in the turns after a reply.
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    return beats.mock.calls.length;
  };
  expect(await beatsIn(300)).toBe(2);
  expect(await beatsIn(699)).toBe(2);
  expect(await beatsIn(1)).toBe(3);
  await new SenderStore(redis, keys).heartbeat('p', { leaseMs: LEASE_MS, instance: UNKNOWN });
  expect(await beatsIn(999)).toBe(3);
  expect(await beatsIn(1)).toBe(4);
  expect(await beatsIn(299)).toBe(4);
  expect(await beatsIn(1)).toBe(5);
});

test('connections are unknown where the ACL forbids their list', async () => {
  const server = await RedisProcess.create();
  later(() => server.close());
  const admin = connect({ kind: 'server', url: server.url });
  later(() => disconnect(admin));
  await admin.acl('SETUSER', 'limited', 'on', '>pass', '~*', '&*', '+@all', '-client|list');
  const redis = connect({ kind: 'server', url: server.url.replace('//', '//limited:pass@') });
  later(() => disconnect(redis));
  const { keys } = new ChecksStage(redis);
  expect(await new SenderStore(redis, keys).connections()).toBe(null);
  expect(await new SenderStore(admin, keys).connections()).not.toBe(null);
});

test('a poll of a gone process returns at once, though a gap gives all leases their time again', async () => {
  const plan = new PlanStage();
  later(async () => plan.redis.disconnect());
  await plan.budget(100);
  await plan.name(intents(2));
  const { polls: before } = await plan.claim(2, 'p', 100);
  for (const poll of before) expect(await plan.take(poll, 'p')).not.toBe(null);
  expect(before).toHaveLength(2);
  plan.nowMs += 30_000;
  await plan.plan.returnClaims(['other']);
  expect((await plan.claim(2, 'q', 100)).polls).toHaveLength(0);
  await plan.plan.returnClaims(['p']);
  const { polls, returned, crashed } = await plan.claim(2, 'q', 100);
  expect({ polls: polls.length, returned, crashed }).toEqual({ polls: 2, returned: 2, crashed: [] });
});

test('a check that was under way at the end of three processes waits for the end of its lease', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const stage = new ChecksStage(redis);
  await stage.begin();
  await stage.state([1], { agoMs: 0 });
  const claim = async (process: string) =>
    (await stage.store.claim(`${process} 1`, new Map([[CHAIN, 1]]))).claimed.length;
  for (const process of ['p', 'q', 'r']) {
    expect(await claim(process)).toBe(1);
    await stage.store.returnClaims([process]);
  }
  expect(await claim('s')).toBe(0);
  await stage.pass(60_000);
  expect(await claim('s')).toBe(1);
});
