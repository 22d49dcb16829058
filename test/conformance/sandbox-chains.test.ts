import {
  createPublicClient,
  erc20Abi,
  http,
  isHex,
  parseAbiItem,
  parseEventLogs,
  toEventSelector,
} from 'viem';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { StatedPayment } from '../../sandbox/chains/chains.ts';
import type { Lie } from '../../sandbox/chains/lies.ts';
import { FULFILMENT_EVENT, PORTAL_ADDRESS } from '../../sandbox/contracts/portal.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { eventually } from '../support/eventually.ts';
import { orderAt, type SandboxOrder } from '../support/sandbox-order.ts';

const EVM = [1, 10, 8453, 42161];
const SOLANA = 1399811149;
const SOLANA_WALLET = '7EYnhQoR9YM3N7UoaKRoA44Uy8JeaZV3qyouov87awMs';

/** Transfers live 300 times faster than usual, and a block of now is final in 3 s. */
let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = new Sandbox({
    transfersPerSecond: 0,
    timeScale: 300,
    finalitySeconds: 900,
    pastTransfers: 40,
  });
  await sandbox.start();
  await eventually('the end of all transfers', () => sandbox.pace().livingTransfers === 0);
});

afterEach(async () => {
  await fetch(`${sandbox.controlUrl}/faults`, { method: 'DELETE' });
});

afterAll(async () => {
  await sandbox.close();
});

const clientOf = (chainId: number, endpoint = 'own') =>
  createPublicClient({ transport: http(sandbox.rpcUrl(chainId, endpoint), { retryCount: 0 }) });

async function control(path: string, body: object): Promise<void> {
  const response = await fetch(sandbox.controlUrl + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (response.status > 201) throw new Error(await response.text());
}

const fault = (body: object) => control('/faults', body);

function hex(text: string): `0x${string}` {
  if (!isHex(text)) throw new Error(`${text} is no hex`);
  return text;
}

const receiptAt = (payment: StatedPayment, endpoint = 'own') =>
  clientOf(payment.chainId, endpoint).getTransactionReceipt({ hash: hex(payment.txHash) });

/** Moves in a receipt, in the terms of the token's contract. */
async function movesOf(payment: StatedPayment, endpoint = 'own') {
  const { logs } = await receiptAt(payment, endpoint);
  return parseEventLogs({ abi: erc20Abi, eventName: 'Transfer', logs }).map(({ address, args }) => ({
    token: address,
    to: args.to.toLowerCase(),
    amount: args.value,
  }));
}

async function paid(order: SandboxOrder, kind = 'destination'): Promise<StatedPayment> {
  const { intentHash } = await orderAt(sandbox, order);
  const find = () =>
    sandbox.payments().find((payment) => payment.intentHash === intentHash && payment.payment === kind);
  await eventually('its payment', () => find() !== undefined);
  const found = find();
  if (found === undefined) throw new Error('gone again');
  return found;
}

const exactly = ({ token, recipient, amount }: StatedPayment) => ({
  token: token.toLowerCase(),
  to: recipient.toLowerCase(),
  amount: BigInt(amount),
});

describe('an EVM chain', () => {
  test.each(EVM)('%d states its chain id, and links its blocks', async (chainId) => {
    const client = clientOf(chainId);
    expect(await client.getChainId()).toBe(chainId);
    const head = await client.getBlock();
    const parent = await client.getBlock({ blockHash: head.parentHash });
    expect(parent.number).toBe(head.number - 1n);
    expect(parent.timestamp).toBeLessThanOrEqual(head.timestamp);
    expect(await client.getBlock({ blockNumber: parent.number })).toEqual(parent);
    expect(Number(head.timestamp)).toBeLessThanOrEqual(Date.now() / 1_000);
    await expect(client.getBlock({ blockNumber: head.number + 10_000_000n })).rejects.toThrow(
      'could not be found',
    );
  });

  test('states the safe and the final block, as far behind as reported', async () => {
    const client = clientOf(10);
    await control('/chains', { chainId: 10, finality: { blocks: 64 } });
    const [final, safe, latest] = [
      await client.getBlock({ blockTag: 'finalized' }),
      await client.getBlock({ blockTag: 'safe' }),
      await client.getBlock(),
    ];
    expect(latest.number - final.number).toBeGreaterThanOrEqual(64n);
    expect(safe.number).toBeGreaterThan(final.number);
    expect(safe.number).toBeLessThan(latest.number);
    await control('/chains', { chainId: 10, finality: { seconds: 600 } });
    expect((await client.getBlock({ blockTag: 'finalized' })).number).toBeLessThan(final.number);
    await control('/chains', { chainId: 10, finality: { seconds: 3 } });
  });

  test('shows every payment that was stated, to the unit, in a block from before it was stated', async () => {
    const stated = sandbox.payments().filter(({ chainId }) => EVM.includes(chainId));
    expect(stated.length).toBeGreaterThan(15);
    expect(new Set(stated.map(({ payment }) => payment))).toEqual(
      new Set(['source', 'destination', 'refund']),
    );
    for (const payment of stated) {
      const receipt = await receiptAt(payment);
      expect(receipt.status).toBe('success');
      expect((await movesOf(payment)).filter(({ amount }) => amount >= BigInt(payment.amount))).toEqual([
        exactly(payment),
      ]);
      const client = clientOf(payment.chainId);
      const block = await client.getBlock({ blockHash: receipt.blockHash });
      expect(block.transactions[receipt.transactionIndex]).toBe(payment.txHash);
      expect(Number(block.timestamp)).toBeLessThanOrEqual(payment.at / 1_000);
      expect(Number(block.timestamp)).toBeGreaterThan(payment.at / 1_000 - 3);
      const transaction = await client.getTransaction({ hash: hex(payment.txHash) });
      expect(transaction.blockHash).toBe(receipt.blockHash);
      const logs = await client.getLogs({ blockHash: receipt.blockHash });
      expect(logs.filter(({ transactionHash }) => transactionHash === payment.txHash)).toEqual(receipt.logs);
    }
  });

  test('logs which intent a payment fulfils', async () => {
    const payment = await paid({});
    const { blockNumber } = await receiptAt(payment);
    const [log] = await clientOf(10).getLogs({
      address: PORTAL_ADDRESS,
      event: parseAbiItem(FULFILMENT_EVENT),
      fromBlock: blockNumber,
      toBlock: blockNumber,
    });
    expect(log?.args).toMatchObject({ intentHash: payment.intentHash });
    const lying = await paid({ lie: 'other-intent' });
    const { logs } = await receiptAt(lying);
    const named = logs.find(({ address }) => address === PORTAL_ADDRESS)?.topics[1];
    expect(named).toMatch(/^0x[0-9a-f]{64}$/);
    expect(named).not.toBe(lying.intentHash);
  });
});

describe('a lie about a payment', () => {
  test('reverted, with nothing logged', async () => {
    const receipt = await receiptAt(await paid({ lie: 'reverted' }));
    expect(receipt).toMatchObject({ status: 'reverted', logs: [] });
  });

  test('no-log moves nothing', async () => {
    const payment = await paid({ lie: 'no-log' });
    expect((await receiptAt(payment)).status).toBe('success');
    expect(await movesOf(payment)).toEqual([]);
  });

  test('short moves less', async () => {
    const payment = await paid({ lie: 'short' });
    const { amount, ...rest } = exactly(payment);
    expect(await movesOf(payment)).toContainEqual({ ...rest, amount: amount - amount / 100n });
  });

  test('other-recipient pays another address', async () => {
    const payment = await paid({ lie: 'other-recipient' });
    const moved = (await movesOf(payment)).find(({ amount }) => amount === BigInt(payment.amount));
    expect(moved?.token).toBe(payment.token.toLowerCase());
    expect(moved?.to).not.toBe(payment.recipient.toLowerCase());
  });

  test('worthless-token moves nothing of the token that is stated', async () => {
    const payment = await paid({ lie: 'worthless-token' });
    const moves = await movesOf(payment);
    expect(moves.map(({ amount }) => amount)).toContain(BigInt(payment.amount));
    expect(moves.map(({ token }) => token)).not.toContain(payment.token.toLowerCase());
  });

  test('two-logs pays twice', async () => {
    const payment = await paid({ lie: 'two-logs' });
    expect((await movesOf(payment)).filter(({ amount }) => amount === BigInt(payment.amount))).toEqual([
      exactly(payment),
      exactly(payment),
    ]);
  });

  test('reused states the payment of another intent, to the unit', async () => {
    const first = await paid({ amount: '70000000' });
    const second = await paid({ amount: '90000000', lie: 'reused' });
    expect(second.intentHash).not.toBe(first.intentHash);
    expect(exactly(second)).toEqual(exactly(first));
    expect(second.txHash).toBe(first.txHash);
    expect((await movesOf(second)).filter(({ amount }) => amount === BigInt(first.amount))).toHaveLength(1);
  });

  test('reused as a refund states the delivery of another intent', async () => {
    const first = await paid({ to: 8453, from: 10, amount: '71000000' });
    const back = await paid({ from: 8453, fate: 'refunded', lie: 'reused' }, 'refund');
    expect(back.intentHash).not.toBe(first.intentHash);
    expect(back.txHash).toBe(first.txHash);
  });

  test('funding states the funding transaction as the refund', async () => {
    const back = await paid({ fate: 'refunded', lie: 'funding' }, 'refund');
    const funding = sandbox
      .payments()
      .find((one) => one.intentHash === back.intentHash && one.payment === 'source');
    expect(back.txHash).toBe(funding?.txHash);
    expect((await receiptAt(back)).status).toBe('success');
  });

  test('stale is in a block that is a day older than the transfer', async () => {
    const payment = await paid({ lie: 'stale' });
    const { blockHash } = await receiptAt(payment);
    const { timestamp } = await clientOf(payment.chainId).getBlock({ blockHash });
    const ageSeconds = payment.at / 1_000 - Number(timestamp);
    expect(ageSeconds).toBeGreaterThan(86_000);
    expect(ageSeconds).toBeLessThan(87_000);
    expect(await movesOf(payment)).toContainEqual(exactly(payment));
  });

  test('to-itself moves all of it from the recipient to the recipient', async () => {
    const payment = await paid({ lie: 'to-itself' });
    const { logs } = await receiptAt(payment);
    const [moved, ...others] = parseEventLogs({ abi: erc20Abi, eventName: 'Transfer', logs });
    expect(others).toEqual([]);
    expect(moved?.args.from).toBe(moved?.args.to);
    expect(await movesOf(payment)).toEqual([exactly(payment)]);
  });

  test('in-parts moves two halves', async () => {
    const payment = await paid({ lie: 'in-parts' });
    const { amount, to } = exactly(payment);
    const parts = (await movesOf(payment)).filter((move) => move.to === to);
    expect(parts).toHaveLength(2);
    expect(parts.reduce((sum, part) => sum + part.amount, 0n)).toBe(amount);
    expect(parts.every((part) => part.amount < amount)).toBe(true);
  });

  test('forged has another contract log the fulfilment, unlogged has none', async () => {
    const named = async (payment: StatedPayment) =>
      (await receiptAt(payment)).logs
        .filter(({ topics }) => topics[0] === toEventSelector(FULFILMENT_EVENT))
        .map(({ address, topics }) => ({
          isPinned: address === PORTAL_ADDRESS,
          isOwn: topics[1] === payment.intentHash,
        }));
    expect(await named(await paid({ lie: 'forged' }))).toEqual([
      { isPinned: true, isOwn: false },
      { isPinned: false, isOwn: true },
    ]);
    expect(await named(await paid({ lie: 'unlogged' }))).toEqual([]);
  });

  test('absent has no transaction', async () => {
    await expect(receiptAt(await paid({ lie: 'absent' }))).rejects.toThrow('could not be found');
  });

  test('it can concern the refund', async () => {
    const payment = await paid({ fate: 'refunded', lie: 'reverted' }, 'refund');
    expect((await receiptAt(payment)).status).toBe('reverted');
  });

  const isGone = (chainId: number, blockHash: `0x${string}`): Promise<boolean> =>
    clientOf(chainId)
      .getBlock({ blockHash })
      .then(
        () => false,
        (error: Error) => /could not be found/.test(error.message),
      );

  /** A payment whose block was observed, and reorganised after that: a slow machine may observe it too late. */
  async function reorganised(order: SandboxOrder): Promise<{ payment: StatedPayment; block: bigint }> {
    for (;;) {
      const payment = await paid(order);
      const seen = await receiptAt(payment).catch(() => null);
      if (seen === null) continue;
      const isFinal = async (): Promise<boolean> =>
        (await clientOf(payment.chainId).getBlock({ blockTag: 'finalized' })).number >= seen.blockNumber;
      await eventually(
        'the block to be reorganised, or final',
        async () => (await isGone(payment.chainId, seen.blockHash)) || isFinal(),
      );
      if (await isGone(payment.chainId, seen.blockHash)) return { payment, block: seen.blockNumber };
    }
  }

  test('moved ends in another block', async () => {
    const { payment, block } = await reorganised({ lie: 'moved' });
    await eventually('the move', async () => (await receiptAt(payment).catch(() => null)) !== null);
    expect((await receiptAt(payment)).blockNumber).not.toBe(block);
    expect(await movesOf(payment)).toContainEqual(exactly(payment));
  });

  test('dropped ends in no block', async () => {
    const { payment } = await reorganised({ to: 42161, lie: 'dropped' });
    await expect(receiptAt(payment)).rejects.toThrow('could not be found');
  });

  test('a fault makes a share of the generated transfers lie, and the same seed gives the same lies', async () => {
    const faults = [{ type: 'payment', lie: 'short', rate: 0.4, path: '/' }] as const;
    const liars = await Promise.all(
      [1, 1, 2].map(async (seed) => {
        const other = new Sandbox({ seed, transfersPerSecond: 0, timeScale: 5_000, faults });
        await other.start();
        await eventually('the end of all transfers', () => other.pace().livingTransfers === 0);
        const stated = other.payments().filter(({ payment }) => payment !== 'source');
        await other.close();
        return stated
          .filter(({ lie }) => lie === 'short')
          .map(({ txHash }) => txHash)
          .sort();
      }),
    );
    expect(liars[0]?.length).toBeGreaterThan(0);
    expect(liars[0]).toEqual(liars[1]);
    expect(liars[0]).not.toEqual(liars[2]);
  });
});

describe('a chain that is reorganised', () => {
  test('has other blocks from there on, with the same payments; final ones stay', async () => {
    // No new payment is final, on a busy machine too.
    await control('/chains', { chainId: 8453, finality: { seconds: 600 } });
    const payment = await paid({ to: 8453, from: 10 });
    const before = await receiptAt(payment);
    const final = await clientOf(8453).getBlock({ blockTag: 'finalized' });
    await control('/chains', { chainId: 8453, reorganise: 1_000_000 });
    const after = await receiptAt(payment);
    expect(after.blockNumber).toBe(before.blockNumber);
    expect(after.blockHash).not.toBe(before.blockHash);
    expect((await clientOf(8453).getBlock({ blockNumber: final.number })).hash).toBe(final.hash);
    const next = await clientOf(8453).getBlock({ blockNumber: after.blockNumber + 1n });
    expect(next.parentHash).toBe(after.blockHash);
    await control('/chains', { chainId: 8453, finality: { seconds: 3 } });
  });
});

describe('a fault of one endpoint', () => {
  let payment: StatedPayment;
  beforeAll(async () => {
    payment = await paid({});
  });
  const path = '/chains/10/bad';
  const bad = () => clientOf(10, 'bad');

  afterEach(async () => {
    expect(await clientOf(10, 'good').getChainId()).toBe(10);
    expect(await movesOf(payment, 'good')).toContainEqual(exactly(payment));
  });

  test('null-answers has no transaction', async () => {
    await fault({ type: 'null-answers', path });
    await expect(receiptAt(payment, 'bad')).rejects.toThrow('could not be found');
  });

  test('lagging-head has an old head, and lacks the newer blocks', async () => {
    await fault({ type: 'lagging-head', seconds: 3_600, path });
    await expect(receiptAt(payment, 'bad')).rejects.toThrow('could not be found');
    expect(Number((await bad().getBlock()).timestamp)).toBeLessThan(Date.now() / 1_000 - 3_500);
  });

  test.each(['amount', 'block'] as const)('%s-disagreement contradicts the others', async (about) => {
    await fault({ type: `${about}-disagreement`, path });
    if (about === 'amount') expect(await movesOf(payment, 'bad')).not.toContainEqual(exactly(payment));
    else {
      const { blockHash, blockNumber } = await receiptAt(payment, 'bad');
      expect(blockHash).not.toBe((await receiptAt(payment)).blockHash);
      expect((await bad().getBlock({ blockNumber })).hash).toBe(blockHash);
      expect((await bad().getBlock({ blockHash })).number).toBe(blockNumber);
      await expect(clientOf(10).getBlock({ blockHash })).rejects.toThrow('could not be found');
    }
  });

  test('receipt-disagreement names a block that the endpoint itself does not have', async () => {
    await fault({ type: 'receipt-disagreement', path });
    const { blockHash, blockNumber, logs } = await receiptAt(payment, 'bad');
    expect(logs.map((log) => log.blockHash)).toEqual(logs.map(() => blockHash));
    expect(blockNumber).toBe((await receiptAt(payment)).blockNumber);
    expect((await bad().getBlock({ blockNumber })).hash).not.toBe(blockHash);
    await expect(bad().getBlock({ blockHash })).rejects.toThrow('could not be found');
  });

  test('other-chain is another chain', async () => {
    await fault({ type: 'other-chain', path });
    expect(await bad().getChainId()).toBe(31337);
  });

  test('unknown-tags does not know the final block', async () => {
    await fault({ type: 'unknown-tags', path });
    await expect(bad().getBlock({ blockTag: 'finalized' })).rejects.toThrow('unknown block tag finalized');
    expect((await bad().getBlock()).number).toBeGreaterThan(0n);
  });

  test('rpc-error answers an error with 200', async () => {
    await fault({ type: 'rpc-error', code: -32000, path });
    await expect(bad().getBlockNumber()).rejects.toThrow('the node could not answer');
  });

  test.each([{ retryAfterSeconds: 7 }, {}])('429 with %j', async (more) => {
    await fault({ type: 'error', code: 'rate-limit-exceeded', ...more, path });
    const response = await rpc(10, 'eth_chainId', [], 'bad');
    expect(response.status).toBe(429);
    expect(response.headers.get('retry-after')).toBe('retryAfterSeconds' in more ? '7' : null);
  });

  test.each([
    { type: 'bare-error', status: 503 },
    { type: 'html' },
    { type: 'truncated-body' },
  ])('%j is no answer', async (body) => {
    await fault({ ...body, path });
    await expect(bad().getChainId()).rejects.toThrow();
  });
});

const answer = z.looseObject({
  result: z.unknown().optional(),
  error: z.object({ code: z.number() }).optional(),
});

function rpc(chainId: number, method: string, params: unknown[], endpoint = 'own'): Promise<Response> {
  return fetch(sandbox.rpcUrl(chainId, endpoint), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
}

async function request(chainId: number, method: string, params: unknown[] = []): Promise<unknown> {
  const parsed = answer.parse(await (await rpc(chainId, method, params)).json());
  return parsed.error?.code ?? parsed.result;
}

const balances = z.array(
  z.looseObject({
    owner: z.string(),
    mint: z.string(),
    uiTokenAmount: z.looseObject({ amount: z.string() }),
  }),
);
const solanaTransaction = z.looseObject({
  slot: z.int(),
  blockTime: z.int(),
  version: z.literal(0),
  meta: z.looseObject({
    err: z.unknown(),
    preTokenBalances: balances,
    postTokenBalances: balances,
  }),
});

/** Gain of an owner in a token; a missing entry is 0. */
function gained({ meta }: z.infer<typeof solanaTransaction>, owner: string, mint: string): bigint {
  const sum = (list: z.infer<typeof balances>) =>
    list
      .filter((entry) => entry.owner === owner && entry.mint === mint)
      .reduce((total, { uiTokenAmount }) => total + BigInt(uiTokenAmount.amount), 0n);
  return sum(meta.postTokenBalances) - sum(meta.preTokenBalances);
}

describe('Solana', () => {
  const order = { to: SOLANA, recipient: SOLANA_WALLET };
  const read = async ({ txHash }: StatedPayment, commitment = 'confirmed') =>
    request(SOLANA, 'getTransaction', [txHash, { commitment, maxSupportedTransactionVersion: 0 }]);

  test('states its identity and its height', async () => {
    expect(await request(SOLANA, 'getGenesisHash')).toBe('5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d');
    const final = Number(await request(SOLANA, 'getSlot'));
    const head = Number(await request(SOLANA, 'getSlot', [{ commitment: 'confirmed' }]));
    expect(final).toBeLessThan(head);
    expect(await request(SOLANA, 'getBlockTime', [final])).toBeLessThanOrEqual(Date.now() / 1_000);
    expect(await request(SOLANA, 'getBlockTime', [head + 10_000_000])).toBe(-32004);
    expect(await request(SOLANA, 'getEpochInfo')).toMatchObject({ slotsInEpoch: 432_000 });
  });

  test('shows the gain of an owner, once final also to requests for final data', async () => {
    const payment = await paid(order);
    expect(await request(SOLANA, 'getTransaction', [payment.txHash, { commitment: 'confirmed' }])).toBe(
      -32015,
    );
    const found = solanaTransaction.parse(await read(payment));
    expect(found.meta.err).toBeNull();
    expect(gained(found, payment.recipient, payment.token)).toBe(BigInt(payment.amount));
    expect(found.blockTime).toBeLessThanOrEqual(payment.at / 1_000);
    await eventually('finality', async () => (await read(payment, 'finalized')) !== null);
    expect(await request(SOLANA, 'getSignatureStatuses', [[payment.txHash, 'unknown']])).toMatchObject({
      value: [{ confirmationStatus: 'finalized', err: null }, null],
    });
    const block = z
      .looseObject({ blockhash: z.string(), parentSlot: z.int(), previousBlockhash: z.string() })
      .parse(await request(SOLANA, 'getBlock', [found.slot, { transactionDetails: 'none' }]));
    const parent = await request(SOLANA, 'getBlock', [block.parentSlot, { transactionDetails: 'none' }]);
    expect(parent).toMatchObject({ blockhash: block.previousBlockhash });
  });

  test.each<[Lie, (gain: bigint, amount: bigint) => boolean]>([
    ['reverted', (gain) => gain === 0n],
    ['no-log', (gain) => gain === 0n],
    ['short', (gain, amount) => gain === amount - amount / 100n],
    ['other-recipient', (gain) => gain === 0n],
    ['worthless-token', (gain) => gain === 0n],
    ['to-itself', (gain) => gain === 0n],
    ['in-parts', (gain, amount) => gain === amount],
  ])('%s shows in the balances', async (lie, fits) => {
    const payment = await paid({ ...order, lie });
    const found = solanaTransaction.parse(await read(payment));
    expect(found.meta.err === null).toBe(lie !== 'reverted');
    expect(fits(gained(found, payment.recipient, payment.token), BigInt(payment.amount))).toBe(true);
  });
});

describe('the endpoints', () => {
  test('there is one of every name, on every chain but Tron', async () => {
    expect((await rpc(10, 'eth_chainId', [], 'any.name-1')).status).toBe(200);
    expect((await rpc(728126428, 'eth_chainId', [])).status).toBe(404);
    expect((await rpc(5, 'eth_chainId', [])).status).toBe(404);
  });

  test('an unknown method, a parameter that does not fit and a malformed request are errors', async () => {
    expect(await request(10, 'eth_sendTransaction', [{}])).toBe(-32601);
    expect(await request(10, 'constructor')).toBe(-32601);
    expect(await request(10, 'eth_getTransactionReceipt', ['0x12'])).toBe(-32602);
    expect(await request(10, 'eth_getLogs', [{ fromBlock: '0x0' }])).toBe(-32005);
    const post = (body: string) =>
      fetch(sandbox.rpcUrl(10, 'own'), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
    expect(await (await post('{}')).json()).toMatchObject({ error: { code: -32600 } });
    const batch = [1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'eth_chainId' }));
    expect(await (await post(JSON.stringify(batch))).json()).toEqual([
      { jsonrpc: '2.0', id: 1, result: '0xa' },
      { jsonrpc: '2.0', id: 2, result: '0xa' },
    ]);
  });

  test('calls are counted by endpoint and method', async () => {
    await clientOf(1, 'counted').getChainId();
    await clientOf(1, 'counted').getBlockNumber();
    const ethereum = sandbox.chains().find(({ chainId }) => chainId === 1);
    expect(ethereum?.calls.counted).toEqual({ eth_chainId: 1, eth_blockNumber: 1 });
    const shown = z.object({ chains: z.array(z.looseObject({ chainId: z.int() })) });
    const { chains } = shown.parse(await (await fetch(`${sandbox.controlUrl}/chains`)).json());
    expect(chains.map(({ chainId }) => chainId)).toEqual([...EVM, SOLANA]);
  });
});
