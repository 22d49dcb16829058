import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import type { SubjectId } from '../../src/domain/subjects/subject.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { OLD, PROBE_MS, underOutage, upTo } from '../support/checks-outage.ts';
import { CHAIN, ChecksStage, found, txOf } from '../support/checks-stage.ts';
import { eventually } from '../support/eventually.ts';
import { hashOfBlock, RpcNodes } from '../support/rpc-nodes.ts';

let redis: RedisClient;
let stage: ChecksStage;
let nodes: RpcNodes;

beforeEach(async () => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
  stage = new ChecksStage(redis);
  await stage.begin();
  nodes = new RpcNodes();
  stage.newReader = () => nodes.reader();
});

afterEach(async () => {
  await stage.close();
  await nodes.close();
  redis.disconnect();
});

async function countOf(state: string): Promise<number> {
  return (await stage.store.counts()).find((one) => one.state === state)?.count ?? 0;
}

async function one(number: number): Promise<SubjectId> {
  const [subject] = await stage.state([number], OLD);
  if (subject === undefined) throw new Error('nothing was stated');
  return subject;
}

describe('endpoints that were down', () => {
  test('are probed now and then, and have all checks judged once they answer, each read once', async () => {
    await underOutage({ stage, nodes, checks: 100, requestsPerSecond: 250 });
  });

  test('and were removed from the config are waited for no more', async () => {
    await nodes.start();
    nodes.isDown = true;
    await one(1);
    const verifier = stage.start();
    await eventually('it waits', async () => (await stage.waitingFor('own', 'failed')) === 1);
    await verifier.close();
    const others = { endpoints: new Map([[CHAIN, ['another']]]) };
    const { claimed } = await stage.store.claim('token', new Map([[CHAIN, 10]]), others);
    expect(claimed).toHaveLength(1);
  });
});

test('a check that fails where others are answered is read ever more rarely', async () => {
  await nodes.start();
  nodes.unreadable.add(txOf(1));
  await one(1);
  const { checks } = stage.start();
  await eventually('it has failed', async () => (await stage.waitingFor('own', 'failed')) === 1);
  const reads: number[] = [];
  for (const number of upTo(40)) {
    await stage.pass(PROBE_MS);
    const good = await one(number + 1);
    checks.wake();
    await stage.until(good, 'verified');
    // All checks that became due have been read.
    await eventually('it waits', async () => (await stage.waitingFor('own', 'failed')) === 1);
    reads.push(nodes.receipts(txOf(1)));
  }
  // In the first 100 s it may be read every time. Its longest wait is several passes then; the usual ones are two at most. How
  // many reads there are is no law: on a slow machine it may fail thrice before another answer comes, and begins anew.
  expect(reads.at(9)).toBeGreaterThan(3);
  const waits = Map.groupBy(reads, (count) => count);
  expect(Math.max(...[...waits.values()].map(({ length }) => length))).toBeGreaterThanOrEqual(5);
});

describe('a payment whose block is not final', () => {
  /** Lets time pass ten times as fast, until a condition holds. */
  async function watched(what: string, isSo: () => Promise<boolean>): Promise<void> {
    await eventually(what, async () => {
      await stage.pass(500);
      return isSo();
    });
  }

  const heads = (): number =>
    nodes.seen.filter(({ method, params: [tag] }) => method === 'eth_getBlockByNumber' && tag === 'finalized')
      .length;

  test('is read again when the final head has come so far, and not before', async () => {
    await nodes.start();
    nodes.finalHead = 50;
    await stage.state(upTo(20), OLD);
    stage.start();
    await eventually(
      'all wait for the final head',
      async () => (await stage.waitingFor('own', 'until')) === 20,
    );
    expect(nodes.receipts()).toBe(20);
    nodes.finalHead = 99;
    const before = heads();
    await watched('the head was read', async () => heads() > before + 1);
    expect(nodes.receipts()).toBe(20);
    nodes.finalHead = 100;
    await watched('all are judged', async () => (await countOf('verified')) === 20);
    // Once more, or twice where the heads of the two nodes were not read at the same time.
    expect(nodes.receipts()).toBeLessThanOrEqual(60);
  });

  test('and that a reorganisation puts into another block is judged once that is final', async () => {
    await nodes.start();
    nodes.finalHead = 50;
    const subject = await one(1);
    stage.start();
    await eventually('it waits', async () => (await stage.waitingFor('own', 'until')) === 1);
    nodes.places.set(txOf(1), null);
    nodes.finalHead = 100;
    await watched(
      'it is in no block',
      async () => (await stage.store.of(subject))[0]?.because === 'not-found',
    );
    expect(await stage.dueInMs(subject)).toBeLessThanOrEqual(15_000);
    nodes.places.set(txOf(1), 103);
    await watched('it waits for its block', async () => (await stage.waitingFor('own', 'until')) === 1);
    nodes.finalHead = 103;
    await watched('it is judged', async () => (await countOf('verified')) === 1);
    expect((await stage.store.of(subject))[0]?.proof?.block).toMatchObject({ hash: hashOfBlock(103) });
  });
});

describe('a check that waits for another', () => {
  async function claimedTwo(payments: readonly ('source' | 'destination' | 'refund')[]) {
    await one(1);
    const [claimed] = (await stage.store.claim('token', new Map([[CHAIN, 10]]))).claimed;
    if (claimed === undefined) throw new Error('nothing was claimed');
    return payments.map((payment) => ({ ...claimed, id: `${claimed.statement.subject}|${payment}` }));
  }

  test('is read when the check of its funding ends', async () => {
    await nodes.start();
    const [source, destination] = await claimedTwo(['source', 'destination']);
    if (source === undefined || destination === undefined) throw new Error('expected two');
    // The check of the funding is like that of the delivery.
    const of = (id: string): string => `${stage.keys.checks}:of:${id}`;
    await redis.copy(of(destination.id), of(source.id));
    await stage.store.postpone(destination, {
      inMs: 900_000,
      because: 'funding',
      responses: [],
      endpoints: [],
    });
    expect(await stage.dueInMs(source.statement.subject)).toBeGreaterThan(800_000);
    const nothing = { proof: null, responses: [], endpoints: [], logs: [], from: [], isHeld: false };
    expect(await stage.store.end(source, { state: 'unchecked', because: 'ambiguous', ...nothing })).toBe(
      'ended',
    );
    expect(await stage.dueInMs(source.statement.subject)).toBeLessThanOrEqual(0);
  });

  test('is read when the check that holds its log ends', async () => {
    await nodes.start();
    const [waiting, holder] = await claimedTwo(['destination', 'refund']);
    if (waiting === undefined || holder === undefined) throw new Error('expected two');
    const of = (id: string): string => `${stage.keys.checks}:of:${id}`;
    await redis.copy(of(waiting.id), of(holder.id));
    await stage.store.postpone(waiting, { inMs: 900_000, because: 'claimed', responses: [], endpoints: [] });
    const nothing = { proof: null, responses: [], endpoints: [], logs: [], from: [], isHeld: false };
    await stage.store.end(holder, { state: 'unchecked', because: 'ambiguous', ...nothing });
    expect(await stage.dueInMs(holder.statement.subject)).toBeLessThanOrEqual(0);
  });
});

test('an error of many checks ends with the first that ends without one', async () => {
  stage.newReader = null;
  let isBroken = true;
  stage.script = () => {
    if (isBroken) throw new Error('an error of our own');
    return [found('own'), found('other')];
  };
  await stage.state(upTo(50), OLD);
  const { checks } = stage.start();
  await eventually('all have failed', async () => (await stage.waitingFor('', 'failed')) === 50);
  isBroken = false;
  await stage.pass(PROBE_MS);
  checks.wake();
  await eventually('all are judged', async () => (await countOf('verified')) === 50);
});
