import { afterEach, describe, expect, test } from 'vitest';
import { judge } from '../../src/domain/proof/verdict.ts';
import type { RpcAnswer } from '../support/json-rpc-server.ts';
import { rules, STATED_AT, statement } from '../support/proof.ts';
import { type ReaderOptions, type RpcAnswers, type RpcReader, rpcReader } from '../support/rpc-reader.ts';

const CHAIN = '1399811149';
const GENESIS = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d';
const USDC = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const TOKEN_2022 = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';
const SIGNATURE = '5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnbJLgp8uirBgmQpjKhoR4tjF3ZpRzrFmBV6UjKdiSZkQUW';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Balance = { accountIndex: number; owner: string; amount: string; programId?: string };

const balances = (held: readonly Balance[]) =>
  held.map(({ amount, ...more }) => ({ mint: USDC, uiTokenAmount: { amount, decimals: 6 }, ...more }));

const SOLVER_PAID: readonly Balance[] = [{ accountIndex: 1, owner: 'solver', amount: '4000' }];
const SOLVER_HAD: readonly Balance[] = [{ accountIndex: 1, owner: 'solver', amount: '5000' }];
const ALICE_HAS: readonly Balance[] = [...SOLVER_PAID, { accountIndex: 3, owner: 'alice', amount: '1000' }];

/** A transaction of version 0 by which the solver paid Alice 1,000 to an account from a lookup table. */
function transaction(meta: Record<string, unknown> = {}, more: Record<string, unknown> = {}) {
  return {
    slot: 300,
    blockTime: STATED_AT,
    version: 0,
    transaction: { signatures: [SIGNATURE], message: { accountKeys: ['payer', 'of-solver', 'program'] } },
    meta: {
      err: null,
      preTokenBalances: balances(SOLVER_HAD),
      postTokenBalances: balances(ALICE_HAS),
      loadedAddresses: { writable: ['of-alice'], readonly: [] },
      ...meta,
    },
    ...more,
  };
}

const NODE: RpcAnswers = {
  getGenesisHash: () => ({ result: GENESIS }),
  getSlot: () => ({ result: 310 }),
  getBlockTime: () => ({ result: STATED_AT + 4 }),
  getBlock: () => ({ result: { blockhash: 'hash-of-300', blockTime: STATED_AT } }),
  getTransaction: () => ({ result: transaction() }),
};

async function startReader(answers: RpcAnswers, fields: ReaderOptions = {}): Promise<RpcReader> {
  const requests = { path: '/', txHash: SIGNATURE, token: USDC };
  const started = await rpcReader({ ...NODE, ...answers }, requests, { chainId: CHAIN, ...fields });
  cleanups.push(() => started.close());
  return started;
}

/** The verdict about a payment of 1,000 to Alice when two hosts give the same response. */
async function verdictOf(result: unknown) {
  const { read } = await startReader({ getTransaction: () => ({ result }) });
  const responses = await read();
  const stated = statement({ chainId: CHAIN, txHash: SIGNATURE, token: USDC, recipients: ['alice'] });
  const both = ['own', 'other'].map((endpoint) => ({ ...responses, endpoint, host: endpoint }));
  return judge(stated, both, rules({ isListed: (token) => token === USDC }));
}

test('a finalized transaction of version 0 is found with the gains of its owners', async () => {
  const { read, calls, server } = await startReader({});
  expect(await read()).toEqual({
    endpoint: 'own',
    host: 'own',
    outcome: 'found',
    block: { number: '300', hash: 'hash-of-300', timestamp: STATED_AT },
    head: { number: '310', hash: '', timestamp: STATED_AT + 4 },
    isFinal: true,
    succeeded: true,
    moves: [{ token: USDC, from: null, to: 'alice', amount: '1000', index: 3, account: 'of-alice' }],
    fulfilled: null,
  });
  expect(calls.map(({ method, outcome }) => `${method} ${outcome}`)).toEqual([
    'getGenesisHash ok',
    'getSlot ok',
    'getBlockTime ok',
    'getTransaction ok',
    'getBlock ok',
  ]);
  const options = server.seen.flatMap(({ method, params }) => (method === 'getTransaction' ? params : []));
  expect(options).toEqual([
    SIGNATURE,
    { commitment: 'finalized', encoding: 'json', maxSupportedTransactionVersion: 0 },
  ]);
  expect(await read()).toMatchObject({ outcome: 'found' });
  expect(calls.filter(({ method }) => method === 'getBlock')).toHaveLength(1);
});

test('null is not there, never no', async () => {
  const { read } = await startReader({ getTransaction: () => ({ result: null }) });
  expect(await read()).toMatchObject({ outcome: 'absent', isSynced: true, head: { number: '310' } });
});

test('one that failed is found, and moved nothing', async () => {
  const err = { InstructionError: [2, { Custom: 1 }] };
  const { read } = await startReader({ getTransaction: () => ({ result: transaction({ err }) }) });
  expect(await read()).toMatchObject({ outcome: 'found', succeeded: false, moves: [] });
});

describe('an endpoint that makes no sense has failed, and nothing else', () => {
  const found = (meta: Record<string, unknown>, more: Record<string, unknown> = {}): RpcAnswers => ({
    getTransaction: () => ({ result: transaction(meta, more) }),
  });
  test.each<[string, RpcAnswers, RegExp]>([
    [
      'another genesis',
      { getGenesisHash: () => ({ result: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG' }) },
      /of genesis EtWTRABZaYq6.*expected one of chain 1399811149/,
    ],
    [
      'a genesis that is no hash',
      { getGenesisHash: ({ path }) => ({ result: `no such path: ${path}` }) },
      /result cannot be read, expected a hash/,
    ],
    [
      'a block of no hash',
      { getBlock: () => ({ result: { blockhash: 'x'.repeat(1_000_000), blockTime: STATED_AT } }) },
      /result\.blockhash cannot be read, expected a hash/,
    ],
    [
      'an owner that is none',
      found({
        postTokenBalances: balances([{ accountIndex: 3, owner: 'x'.repeat(1_000_000), amount: '1000' }]),
      }),
      /postTokenBalances\.0\.owner cannot be read, expected an address/,
    ],
    [
      'an error',
      { getTransaction: () => ({ error: { code: -32011, message: 'history is not available' } }) },
      /getTransaction: error -32011, history is not available/,
    ],
    [
      'a version that was not requested',
      { getTransaction: () => ({ error: { code: -32015, message: 'Transaction version (1)' } }) },
      /error -32015/,
    ],
    ['a cut connection', { getTransaction: () => 'cut' }, /getTransaction: the answer is truncated/],
    [
      'no time of its head',
      { getBlockTime: () => ({ result: null }) },
      /found no time of its final slot 310/,
    ],
    ['no block of the transaction', { getBlock: () => ({ result: null }) }, /does not know the block.*300/],
    [
      'another transaction',
      found({}, { transaction: { signatures: ['x'], message: { accountKeys: [] } } }),
      /of another transaction/,
    ],
    ['no meta', found({}, { meta: null }), /has no meta/],
    ['no balances before', found({ preTokenBalances: null }), /no token balances/],
    ['no balances after', found({ postTokenBalances: undefined }), /no token balances/],
    [
      'balances of nobody',
      found({ postTokenBalances: [{ ...balances(ALICE_HAS)[0], owner: undefined }] }),
      /does not name the owners/,
    ],
    [
      'an amount that is none',
      found({ postTokenBalances: [{ ...balances(ALICE_HAS)[0], uiTokenAmount: { amount: '1.5' } }] }),
      /expected a whole number/,
    ],
  ])('%s', async (_, answers, reason) => {
    const { read } = await startReader(answers);
    const responses = await read();
    expect(responses.outcome === 'failed' ? responses.reason : responses).toMatch(reason);
  });

  test.each<[string, RpcAnswer]>([
    ['by 429', { status: 429, body: '{}', headers: { 'retry-after': '3600' } }],
    ['by an error', { error: { code: 429, message: 'Too many requests for a specific RPC call' } }],
  ])('and a rate limit reported %s pauses the endpoint', async (_, answer) => {
    const { read, calls, server } = await startReader({ getTransaction: () => answer });
    expect(await read()).toMatchObject({ outcome: 'failed' });
    expect(calls.at(-1)).toMatchObject({ method: 'getTransaction', outcome: 'rate-limited' });
    if ('status' in (answer as object)) {
      const before = server.seen.length;
      expect(await read()).toMatchObject({ reason: 'own: requested a pause that is not over' });
      expect(server.seen).toHaveLength(before);
    }
  });
});

describe('the judgement', () => {
  test('a payment as stated is verified', async () => {
    expect(await verdictOf(transaction())).toMatchObject({ outcome: 'verified' });
  });

  test('less of a token with a possible fee cannot be judged, and of any other is short', async () => {
    const less = (programId?: string) => {
      const fee = { accountIndex: 3, owner: 'alice', amount: '990' };
      const after = [...SOLVER_PAID, programId === undefined ? fee : { ...fee, programId }];
      return transaction({ postTokenBalances: balances(after) });
    };
    expect(await verdictOf(less(TOKEN_2022))).toMatchObject({
      outcome: 'unchecked',
      because: 'token-not-checkable',
    });
    expect(await verdictOf(less())).toMatchObject({ outcome: 'disputed', proof: { reason: 'short' } });
  });
});
