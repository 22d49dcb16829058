import { inspect } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import { Secret } from '../../src/secret.ts';
import { eventually } from '../support/eventually.ts';
import type { RpcAnswer } from '../support/json-rpc-server.ts';
import { ALICE, SOLVER, TOKEN, TX } from '../support/proof.ts';
import { type ReaderOptions, type RpcAnswers, type RpcReader, rpcReader } from '../support/rpc-reader.ts';

const KEY = 'Zkey-of-the-node-0123456789';
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const hex = (value: number): string => `0x${value.toString(16)}`;
const blockHash = (number: number): string => `0x${number.toString(16).padStart(64, 'b')}`;
const blockOf = (number: number) => ({
  number: hex(number),
  hash: blockHash(number),
  timestamp: hex(1_795_000_000 + number),
});
const word = (address: string): string => `0x${address.slice(2).padStart(64, '0')}`;

function log(fields: Record<string, unknown> = {}) {
  return {
    address: TOKEN.toUpperCase().replace('0X', '0x'),
    topics: [TRANSFER, word(SOLVER), word(ALICE)],
    data: `0x${(1000).toString(16).padStart(64, '0')}`,
    logIndex: '0x3',
    transactionHash: TX,
    blockHash: blockHash(100),
    removed: false,
    ...fields,
  };
}

function receipt(fields: Record<string, unknown> = {}) {
  return {
    transactionHash: TX,
    blockHash: blockHash(100),
    blockNumber: hex(100),
    status: '0x1',
    logs: [log()],
    ...fields,
  };
}

const NODE: RpcAnswers = {
  eth_chainId: () => ({ result: '0x2105' }),
  eth_syncing: () => ({ result: false }),
  eth_blockNumber: () => ({ result: hex(120) }),
  eth_getBlockByNumber: ({ params: [tag] }) => ({
    result: blockOf(tag === 'finalized' ? 110 : tag === 'safe' ? 115 : Number(tag)),
  }),
  eth_getBlockByHash: () => ({ result: blockOf(100) }),
  eth_getTransactionReceipt: () => ({ result: receipt() }),
};

async function startReader(answers: RpcAnswers, fields: ReaderOptions = {}): Promise<RpcReader> {
  const requests = { path: `/v2/${KEY}`, txHash: TX, token: TOKEN };
  const started = await rpcReader({ ...NODE, ...answers }, requests, fields);
  cleanups.push(() => started.close());
  return started;
}

test('a receipt in a final block is found with its moves', async () => {
  const { read, calls, server } = await startReader({});
  expect(await read()).toEqual({
    endpoint: 'own',
    host: 'own',
    outcome: 'found',
    block: { number: '100', hash: blockHash(100), timestamp: 1_795_000_100 },
    head: { number: '110', hash: blockHash(110), timestamp: 1_795_000_110 },
    isFinal: true,
    succeeded: true,
    moves: [{ token: TOKEN, from: SOLVER, to: ALICE, amount: '1000', index: 3 }],
    fulfilled: null,
  });
  expect(calls.map(({ method, outcome }) => `${method} ${outcome}`)).toEqual([
    'eth_chainId ok',
    'eth_getBlockByNumber ok',
    'eth_getTransactionReceipt ok',
    'eth_getBlockByNumber ok',
  ]);
  expect(server.seen.every(({ path }) => path === `/v2/${KEY}`)).toBe(true);
});

test('logs of amount 0 are no moves, however many there are', async () => {
  const nothing = (index: number) => log({ data: `0x${'0'.repeat(64)}`, logIndex: hex(index) });
  const many = Array.from({ length: 600 }, (_, index) => nothing(index + 10));
  const { read } = await startReader({
    eth_getTransactionReceipt: () => ({ result: receipt({ logs: [log(), ...many] }) }),
  });
  const found = await read();
  expect(found).toMatchObject({ outcome: 'found', moves: [{ amount: '1000', index: 3 }] });
  expect(found).not.toHaveProperty('isPartial');
});

test('collectibles and numbers longer than an amount are no moves, and hex may be in capitals', async () => {
  const capitals = (text: string): string => `0x${text.slice(2).toUpperCase()}`;
  const loud = log({
    address: capitals(TOKEN),
    topics: [TRANSFER, word(SOLVER), word(ALICE)].map(capitals),
    transactionHash: capitals(TX),
    blockHash: capitals(blockHash(100)),
    logIndex: '0xA',
  });
  const logs = [
    log({ topics: [TRANSFER, word(SOLVER), word(ALICE), word(ALICE)], data: '0x' }),
    log({ data: `0x${'0'.repeat(63)}1${'0'.repeat(64)}`, logIndex: '0x4' }),
    loud,
  ];
  const { read } = await startReader({ eth_getTransactionReceipt: () => ({ result: receipt({ logs }) }) });
  expect(await read()).toMatchObject({
    outcome: 'found',
    moves: [{ token: TOKEN, from: SOLVER, to: ALICE, amount: '1000', index: 10 }],
  });
});

test('a thousand fills cost at most three calls each, and those of one block share it', async () => {
  const { reader, calls } = await startReader({
    eth_getTransactionReceipt: ({ params: [txHash] }) => ({
      result: receipt({ transactionHash: txHash, logs: [log({ transactionHash: txHash })] }),
    }),
  });
  for (let index = 0; index < 1_000; index += 1) {
    const [found] = await reader.read(`0x${index.toString(16).padStart(64, '7')}`, { token: TOKEN });
    expect(found).toMatchObject({ outcome: 'found' });
  }
  const receipts = calls.filter(({ method }) => method === 'eth_getTransactionReceipt');
  expect(receipts).toHaveLength(1_000);
  expect(calls.length).toBeLessThan(1_100);
});

describe('finality', () => {
  test.each([
    ['finalized' as const, 110],
    ['safe' as const, 115],
    [{ confirmations: 12 }, 108],
    [{ confirmations: 1_000 }, 0],
  ])('%j', async (finality, head) => {
    const { read } = await startReader({}, { finality });
    expect(await read()).toMatchObject({ head: { number: String(head) }, isFinal: head >= 100 });
  });

  test.each<[string, RpcAnswer]>([
    ['an error', { error: { code: -32602, message: 'invalid argument 0: hex string without 0x prefix' } }],
    ['null', { result: null }],
  ])('an endpoint that answers %s for the tag is reported by its name', async (_, answer) => {
    const { read } = await startReader({ eth_getBlockByNumber: () => answer });
    const responses = await read();
    expect(responses).toMatchObject({ outcome: 'failed' });
    expect(responses.outcome === 'failed' && responses.reason).toMatch(
      /^own: found an endpoint that knows no "finalized" block.*expected one that does, or another finality/,
    );
  });

  test('a receipt in a block that is not final is found as such', async () => {
    const late = {
      blockNumber: hex(112),
      blockHash: blockHash(112),
      logs: [log({ blockHash: blockHash(112) })],
    };
    const { read } = await startReader({
      eth_getTransactionReceipt: () => ({ result: receipt(late) }),
      eth_getBlockByHash: () => ({ result: blockOf(112) }),
    });
    expect(await read()).toMatchObject({
      outcome: 'found',
      isFinal: false,
      block: { timestamp: 1_795_000_112 },
    });
  });
});

test('a block that was confirmed and reorganised all the same is read anew', async () => {
  let fork = 'b';
  const hashNow = (number: number): string => `0x${number.toString(16).padStart(64, fork)}`;
  const { read } = await startReader(
    {
      eth_getBlockByNumber: ({ params: [number] }) => ({
        result: { ...blockOf(Number(number)), hash: hashNow(Number(number)) },
      }),
      eth_getTransactionReceipt: () => ({
        result: receipt({ blockHash: hashNow(100), logs: [log({ blockHash: hashNow(100) })] }),
      }),
    },
    { finality: { confirmations: 1 } },
  );
  expect(await read()).toMatchObject({ outcome: 'found', block: { hash: hashNow(100) } });
  fork = 'c';
  expect(await read()).toMatchObject({ outcome: 'found', block: { hash: hashNow(100) } });
});

describe('an endpoint that makes no sense has failed, and nothing else', () => {
  const html = '<html>busy</html>';
  test.each<[string, RpcAnswers, RegExp]>([
    [
      'another chain',
      { eth_chainId: () => ({ result: '0x1' }) },
      /found an endpoint of chain 1, expected one of chain 8453/,
    ],
    [
      'a receipt of another transaction',
      { eth_getTransactionReceipt: () => ({ result: receipt({ transactionHash: blockHash(1) }) }) },
      /the receipt is of another transaction/,
    ],
    [
      'logs of another block',
      {
        eth_getTransactionReceipt: () => ({ result: receipt({ logs: [log({ blockHash: blockHash(99) })] }) }),
      },
      /logs of another block/,
    ],
    [
      'one log twice',
      { eth_getTransactionReceipt: () => ({ result: receipt({ logs: [log(), log()] }) }) },
      /one log index twice/,
    ],
    [
      'logs of another transaction',
      {
        eth_getTransactionReceipt: () => ({
          result: receipt({ logs: [log({ transactionHash: blockHash(7) })] }),
        }),
      },
      /logs of another block or transaction/,
    ],
    [
      'logs that were removed',
      { eth_getTransactionReceipt: () => ({ result: receipt({ logs: [log({ removed: true })] }) }) },
      /logs of another block or transaction/,
    ],
    [
      'a log at a place that no block has',
      {
        eth_getTransactionReceipt: () => ({
          result: receipt({ logs: [log({ logIndex: `0x${'f'.repeat(64)}` })] }),
        }),
      },
      /result\.logs\.0\.logIndex cannot be read, expected a place in a block/,
    ],
    [
      'a topic that is none',
      { eth_getTransactionReceipt: () => ({ result: receipt({ logs: [log({ topics: ['0xddf2'] })] }) }) },
      /result\.logs\.0\.topics\.0 cannot be read, expected a hash/,
    ],
    [
      'the answer to another question',
      {
        eth_getTransactionReceipt: () => ({ status: 200, body: '{"jsonrpc":"2.0","id":7,"result":null}' }),
      },
      /found HTTP 200 and .*, expected an answer of JSON-RPC/,
    ],
    [
      'a list of answers',
      {
        eth_getTransactionReceipt: () => ({ status: 200, body: '[{"jsonrpc":"2.0","id":1,"result":null}]' }),
      },
      /found HTTP 200 and .*, expected an answer of JSON-RPC/,
    ],
    [
      'another block of that number',
      {
        eth_getBlockByNumber: ({ params: [tag] }) => ({
          result: tag === 'finalized' ? blockOf(110) : { ...blockOf(100), hash: blockHash(7) },
        }),
      },
      /its block 100 is another one/,
    ],
    [
      'a block that is not known',
      {
        eth_getBlockByNumber: ({ params: [tag] }) => ({ result: tag === 'finalized' ? blockOf(110) : null }),
      },
      /it does not know the block of the receipt/,
    ],
    [
      'a receipt without status',
      { eth_getTransactionReceipt: () => ({ result: receipt({ status: undefined }) }) },
      /result\.status cannot be read/,
    ],
    [
      'a page',
      { eth_getTransactionReceipt: () => ({ status: 200, body: html }) },
      /found HTTP 200 and <html>busy<\/html>, expected an answer of JSON-RPC/,
    ],
    [
      'a server error',
      { eth_getTransactionReceipt: () => ({ status: 502, body: '' }) },
      /found HTTP 502 and nothing/,
    ],
    [
      'an error',
      { eth_getTransactionReceipt: () => ({ error: { code: -32000, message: 'header\n not found' } }) },
      /error -32000, header not found/,
    ],
    [
      'an error in no shape of JSON-RPC beside a result of null',
      {
        eth_getTransactionReceipt: () => ({
          status: 200,
          body: '{"jsonrpc":"2.0","id":1,"result":null,"error":"quota exceeded"}',
        }),
      },
      /found HTTP 200 and .*quota exceeded.*, expected an answer of JSON-RPC/,
    ],
    [
      'lists without end',
      { eth_getTransactionReceipt: () => ({ status: 200, body: `[${'[],'.repeat(1_300_000)}[]]` }) },
      /found HTTP 200 and \[\[\],.*, expected an answer of JSON-RPC/,
    ],
    [
      'a result of many digits',
      {
        eth_getTransactionReceipt: () => ({
          status: 200,
          body: `{"jsonrpc":"2.0","id":1,"result":${'9'.repeat(1_000_000)}}`,
        }),
      },
      /found HTTP 200 and .*, expected an answer of JSON-RPC/,
    ],
    [
      'more than it may be',
      { eth_getTransactionReceipt: () => ({ status: 200, body: 'x'.repeat(5_000_000) }) },
      /the answer is too large/,
    ],
  ])('%s', async (_, answers, reason) => {
    const { read } = await startReader(answers);
    const responses = await read();
    expect(responses.outcome === 'failed' ? responses.reason : responses).toMatch(reason);
  });

  test('one that does not answer', async () => {
    const { read, calls } = await startReader(
      { eth_getTransactionReceipt: () => 'nothing' },
      { endpoint: { timeoutMs: 1_000 } },
    );
    // The receipt is the request without an answer; where this machine stalled, an earlier request may time out instead.
    const responses = await eventually('the others were answered in time', async () => {
      const failure = await read();
      return failure.outcome === 'failed' && failure.reason.includes('eth_getTransactionReceipt')
        ? failure
        : null;
    });
    expect(responses).toMatchObject({
      outcome: 'failed',
      reason: 'own: eth_getTransactionReceipt: no answer within 1000 ms',
    });
    expect(calls.at(-1)).toMatchObject({ method: 'eth_getTransactionReceipt', outcome: 'timeout' });
  });

  test('each caller that gives up gets its own reason', async () => {
    const { reader, server } = await startReader({ eth_getTransactionReceipt: () => 'nothing' });
    const giving = new AbortController();
    const pending = reader.read(TX, { signal: giving.signal });
    const gaveUp = expect(pending).rejects.toThrow('enough');
    await expect.poll(() => server.seen.length).toBe(3);
    giving.abort(new Error('enough'));
    await gaveUp;
  });
});

describe('a missing item', () => {
  test.each([
    ['caught up', { result: false }, true],
    ['catching up', { result: { startingBlock: '0x0', currentBlock: '0x1' } }, false],
    ['not stating whether it has', { error: { code: -32601, message: 'not supported' } }, true],
  ])('at an endpoint that is %s', async (_, syncing, isSynced) => {
    const { read } = await startReader({
      eth_getTransactionReceipt: () => ({ result: null }),
      eth_syncing: () => syncing,
    });
    expect(await read()).toMatchObject({ outcome: 'absent', isSynced, head: { number: '110' } });
  });
});

describe('a rate-limited endpoint', () => {
  test.each<[string, RpcAnswer]>([
    ['reports it with 429', { status: 429, body: '{}', headers: { 'retry-after': '3600' } }],
    [
      'reports it with 429 and an error',
      { status: 429, body: '{"error":{"code":-32005,"message":"slow"}}', headers: { 'retry-after': '60' } },
    ],
  ])('and %s gets no request for the stated time', async (_, answer) => {
    const { read, server, calls } = await startReader({ eth_getTransactionReceipt: () => answer });
    expect(await read()).toMatchObject({
      outcome: 'failed',
      reason: expect.stringContaining('too many requests'),
    });
    const before = server.seen.length;
    expect(await read()).toMatchObject({
      outcome: 'failed',
      reason: 'own: requested a pause that is not over',
    });
    expect(server.seen).toHaveLength(before);
    expect(calls.at(-1)?.outcome).toBe('rate-limited');
  });

  test('gets no more requests than its budget allows', async () => {
    const { reader, server } = await startReader({}, { endpoint: { requestsPerSecond: 10 } });
    const startedAt = performance.now();
    await Promise.all(
      Array.from({ length: 15 }, (_, index) => reader.read(`0x${String(index).padStart(64, '0')}`)),
    );
    const tookMs = performance.now() - startedAt;
    // A budget of ten per second allows ten at once.
    expect(tookMs).toBeGreaterThanOrEqual((server.seen.length - 10) * 100 - 50);
  });
});

test('the fulfilled intents of the pinned event are read, and of no other event', async () => {
  const address = `0x${'f0'.repeat(20)}`;
  const event = 'event Filled(bytes32 indexed intent, address solver)';
  const { toEventSelector } = await import('viem');
  const filled = (intent: string, fields = {}) => ({
    ...log({ address, topics: [toEventSelector('Filled(bytes32,address)'), intent], data: word(SOLVER) }),
    ...fields,
  });
  const logs = [
    log(),
    filled(blockHash(1), { logIndex: '0x4' }),
    filled(blockHash(2), { logIndex: '0x5', address: SOLVER }),
    filled(blockHash(3), { logIndex: '0x6', data: '0x' }),
  ];
  const { read } = await startReader(
    { eth_getTransactionReceipt: () => ({ result: receipt({ logs }) }) },
    { fulfilments: { address, event, hash: 'intent' } },
  );
  expect(await read()).toMatchObject({ fulfilled: [blockHash(1)] });
});

test('the URL of an endpoint and the values of its headers are in no output', async () => {
  const echoes: RpcAnswers[] = [
    { eth_getTransactionReceipt: ({ path }) => ({ status: 401, body: `no such key: ${path}` }) },
    {
      eth_getTransactionReceipt: ({ path }) => ({
        error: { code: -32000, message: `http://localhost${path} is suspended` },
      }),
    },
    {
      eth_getTransactionReceipt: ({ headers }) => ({
        error: { code: -32000, message: `bad ${headers.authorization}` },
      }),
    },
    { eth_chainId: ({ path }) => ({ status: 200, body: encodeURIComponent(path) }) },
    { eth_getTransactionReceipt: () => 'nothing' },
  ];
  const responses: unknown[] = [];
  for (const answers of echoes) {
    const headers = { Authorization: new Secret('Bearer Zheader-of-the-node-42') };
    // The last one never answers.
    const timeoutMs = answers === echoes.at(-1) ? 1_000 : 60_000;
    const { reader, read, calls, server } = await startReader(answers, { endpoint: { headers, timeoutMs } });
    responses.push(await read(), calls, reader);
    expect(server.seen[0]?.headers.authorization).toBe('Bearer Zheader-of-the-node-42');
    await server.close();
    responses.push(await read());
  }
  const gone = await startReader({}, { endpoint: { url: new Secret(`http://${KEY}.invalid/`) } });
  responses.push(await gone.read());
  const text = `${inspect(responses, { depth: null, showHidden: true, getters: true })}${JSON.stringify(responses)}`;
  expect(text).toContain('[secret]');
  expect(text).not.toMatch(/Zkey|Zheader|zkey/i);
});
