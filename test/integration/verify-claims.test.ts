import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { VERIFIED_PAYMENTS } from '../../src/commands/verified-payment.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { type CannedServer, cannedServer } from '../support/canned-server.ts';
import { CHAIN, ChecksStage, delivery, PAYEE, SOLVER, TOKEN, txOf } from '../support/checks-stage.ts';
import { runCommand } from '../support/command.ts';
import { type RpcServer, rpcServer } from '../support/json-rpc-server.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const INTENT = hashOf(2);
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const BLOCK = `0x${'b1'.repeat(32)}`;

let folder: string;
let upstream: CannedServer;
let node: RpcServer;
let redis: RedisClient;
let stage: ChecksStage;
/** Further members of the upstream's record. */
let stated: object;

/** A node on which the solver paid 1,000 in the first log of the transaction, in a final block. */
function node8453() {
  const word = (address: string): string => `0x${address.slice(2).padStart(64, '0')}`;
  const block = { number: '0x64', hash: BLOCK, timestamp: '0x6b49d200' };
  const log = {
    address: TOKEN,
    topics: [TRANSFER, word(SOLVER), word(PAYEE)],
    data: `0x${(1000).toString(16).padStart(64, '0')}`,
    logIndex: '0x0',
    transactionHash: txOf(1),
    blockHash: BLOCK,
  };
  const receipt = { transactionHash: txOf(1), blockHash: BLOCK, blockNumber: '0x64', status: '0x1' };
  const answers: Record<string, unknown> = {
    eth_chainId: '0x2105',
    eth_syncing: false,
    eth_getBlockByNumber: block,
    eth_getTransactionReceipt: { ...receipt, logs: [log] },
  };
  return rpcServer(({ method }) => ({ result: answers[method] ?? null }));
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'intentwatch-claims-'));
  node = await node8453();
  upstream = await cannedServer(() => ({
    status: 200,
    body: {
      nextCursor: null,
      results: [
        {
          id: `intent:${INTENT}`,
          type: 'intent',
          status: 'filled',
          updatedAt: 1_800_000_000,
          destinationTx: delivery({ amount: '999' }),
          ...stated,
        },
      ],
    },
  }));
});

beforeEach(async () => {
  stated = {};
  redis = connect({ kind: 'server', url: inject('redisUrl') });
  stage = new ChecksStage(redis);
  await stage.begin();
});

afterEach(async () => {
  await stage.close();
  redis.disconnect();
});

afterAll(async () => {
  await Promise.all([upstream.close(), node.close()]);
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

async function verify(redisUrl: string, args: string[] = []) {
  const rpc = ['127.0.0.1', 'localhost'].map((host, index) => ({
    name: `rpc-${index}`,
    url: `http://${host}:${node.port}`,
  }));
  const config = {
    upstream: { baseUrl: upstream.url, apiKey: 'sk-test-0123456789' },
    redis: { url: redisUrl, prefix: stage.prefix },
    // Nobody listens there.
    server: { port: 9 },
    chains: { [CHAIN]: { rpc } },
    receivers: [{ name: 'nobody', type: 'email', to: ['nobody@example.com'] }],
    smtp: { url: 'smtp://127.0.0.1:9', from: 'a@example.com' },
    subscriptions: [{ name: 'one', intents: [INTENT], receivers: ['nobody'] }],
  };
  const file = join(folder, 'intentwatch.yaml');
  await writeFile(file, JSON.stringify(config));
  const { code, out, err } = await runCommand(['verify', INTENT, '--config', file, ...args]);
  expect(err).toBe('');
  return { code, out };
}

test('a log that the daemon has as proof of another transfer proves no second one by hand', async () => {
  stage.start();
  const first = await stage.report(hashOf(1), 'filled', { destinationTx: delivery() });
  await stage.until(first, 'verified');

  const verified = await verify(inject('redisUrl'), ['--json']);
  const reported = VERIFIED_PAYMENTS.strict().parse(JSON.parse(verified.out));
  // The first states the exact amount that moved.
  expect(reported).toMatchObject({
    outcome: 'disputed',
    otherTransfers: { checked: true },
    payments: [{ verdict: { outcome: 'disputed', proof: { reason: 'other-intent' } } }],
  });
  expect(Object.keys(reported.payments[0]?.verdict ?? {})).toEqual(['outcome', 'proof']);
  expect(verified.code).toBe(1);
  expect((await verify(inject('redisUrl'))).out).toMatch(/^other transfers: checked/m);
});

test('where the Redis of the config does not answer, it reports that it was not checked', async () => {
  const away = await verify('redis://127.0.0.1:9');
  expect(away.out).toMatch(/^other transfers: NOT CHECKED.*Redis cannot be reached/m);
  expect(away.out).toMatch(/found +VERIFIED/);
  expect(away.code).toBe(0);
  const { otherTransfers } = VERIFIED_PAYMENTS.parse(
    JSON.parse((await verify('redis://127.0.0.1:9', ['--json'])).out),
  );
  expect(otherTransfers).toMatchObject({ checked: false, reason: expect.stringContaining('Redis') });
});

test.each([
  [75, 'not reported', '999'],
  [1, 'disputed', '2000'],
] as const)('with a side on a chain without endpoints it ends with %i, %s', async (exit, outcome, amount) => {
  stated = { destinationTx: delivery({ amount }), sourceTx: { ...delivery(), chainId: '42161' } };
  const { code, out } = await verify(inject('redisUrl'), ['--json']);
  const reported = VERIFIED_PAYMENTS.parse(JSON.parse(out));
  expect(reported).toMatchObject({ outcome, payments: [{}, { responses: null }] });
  expect(code).toBe(exit);
  expect((await verify(inject('redisUrl'))).out).toContain('not checked: the config has no endpoints');
});
