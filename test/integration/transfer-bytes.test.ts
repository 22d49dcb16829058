import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { startDaemon, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const TRANSFERS = 40;
const WALLET = `0x${'a1'.repeat(20)}`;
const TOKENS = ['0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', '0xaf88d065e77c8cC2239327C5EDb3A432268e5831'];
const STATUSES = ['pending', 'pending', 'filled', 'settled'];

function hash(of: string): string {
  return `0x${createHash('sha256').update(of).digest('hex')}`;
}

/** A transfer in its first to fourth state, with the hashes of a chain, which do not shrink. */
function transfer(intent: string, step: number, updatedAt: number): JsonObject {
  const leg = (at: number): JsonObject => ({
    chainId: at === 0 ? 8453 : 42161,
    txHash: hash(`${intent} ${at}`),
    token: TOKENS[at] ?? '',
    amount: '1250000000',
  });
  return intentRecord(intent, STATUSES[step - 1] ?? '', updatedAt, {
    ...(step > 1 ? { sourceTx: leg(0) } : {}),
    ...(step > 2 ? { destinationTx: leg(1) } : {}),
  });
}

async function bytesOf(redis: Redis, prefix: string): Promise<number> {
  let sum = 0;
  for await (const keys of redis.scanStream({ match: `${prefix}:*`, count: 1_000 }))
    for (const key of keys) sum += Number(await redis.memory('USAGE', key, 'SAMPLES', 0));
  return sum;
}

test('a transfer with four events and two receivers takes at most 5.5 kB of Redis, and 3.5 kB after the first', async () => {
  const intents = Array.from({ length: TRANSFERS }, (_, index) => hash(`intent ${index}`));
  // Transfers from before the start of the subscription would be history.
  let [step, changedAt] = [0, 0];
  const upstream = await started(
    new ScriptedUpstream(({ query: { wallet, intentHash, status } }) => {
      const shown = intents.filter((intent) => wallet === WALLET || intent === intentHash);
      const records = step === 0 ? [] : shown.map((intent) => transfer(intent, step, changedAt));
      return { records: records.filter((record) => status === undefined || status === record.status) };
    }),
  );
  const hooks = [await started(new Hook()), await started(new Hook())];
  const keys = new Keys(testPrefix());
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  if (!(redis instanceof Redis)) throw new Error('expected one server');
  const { daemon } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: keys.prefix.slice(1, -1),
    receivers: { backend: { url: hooks[0]?.url ?? '' }, accounting: { url: hooks[1]?.url ?? '' } },
    subscriptions: [{ name: 'treasury', wallets: [WALLET], receivers: ['backend', 'accounting'] }],
  });
  later(() => daemon.close());
  const delivered = async (): Promise<number> => {
    for (const hook of hooks) await hook.until(({ length }) => length >= TRANSFERS * step);
    await eventually('all deliveries have ended', async () => {
      const open = ['backend', 'accounting'].map((name) => redis.zcard(keys.pending(name)));
      return (await Promise.all(open)).every((count) => count === 0);
    });
    return bytesOf(redis, keys.prefix);
  };
  const before = await bytesOf(redis, keys.prefix);
  const found: number[] = [];
  while (step < 4) {
    changedAt = Math.floor(Date.now() / 1_000);
    step += 1;
    found.push(((await delivered()) - before) / TRANSFERS);
  }
  expect(found[0]).toBeLessThan(3_500);
  expect(found[3]).toBeLessThan(5_500);
});
