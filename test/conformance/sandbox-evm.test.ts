import { type Hex, keccak256, parseEther, parseGwei, serializeTransaction, toFunctionSelector } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { arbitrum, base } from 'viem/chains';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { TOKEN_ABI } from '../../sandbox/contracts/genesis.ts';
import { PORTAL_ADDRESS } from '../../sandbox/contracts/portal.ts';
import { eventually } from '../support/eventually.ts';
import {
  ARBITRUM,
  ENGINES,
  type EvmSandbox,
  startEvmSandbox,
  USDC_ARBITRUM,
} from '../support/evm-sandbox.ts';

const NOBODY = '0x00000000000000000000000000000000000000aa';
const TOKEN = { abi: TOKEN_ABI, address: USDC_ARBITRUM } as const;
const FEES = { gas: 100_000n, maxFeePerGas: parseGwei('2'), maxPriorityFeePerGas: parseGwei('0.1') };

/** Creation code of a contract that returns 42, by PUSH1 42, MSTORE and RETURN. */
const ANSWER = '0x600a600c600039600a6000f3602a60005260206000f3';

const answerSchema = z.object({
  result: z.unknown().optional(),
  error: z.object({ code: z.number(), message: z.string(), data: z.string().optional() }).optional(),
});

describe.each(ENGINES)('with $name', ({ evm, skip }) => {
  let evmSandbox: EvmSandbox;
  const owner = privateKeyToAccount(generatePrivateKey());

  beforeAll(async () => {
    if (skip) return;
    evmSandbox = await startEvmSandbox({ evm, timeScale: 5 });
    await evmSandbox.control('/faucet', { chainId: ARBITRUM, address: owner.address });
  });
  afterAll(() => evmSandbox?.close());

  async function request(method: string, params: unknown[], endpoint = 'own') {
    const response = await fetch(evmSandbox.sandbox.rpcUrl(ARBITRUM, endpoint), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    return answerSchema.parse(await response.json());
  }

  const refusal = async (raw: Hex): Promise<string | undefined> =>
    (await request('eth_sendRawTransaction', [raw])).error?.message;

  const sign = (account: typeof owner, change: object = {}): Promise<Hex> =>
    account.signTransaction({ type: 'eip1559', chainId: ARBITRUM, to: NOBODY, nonce: 0, ...FEES, ...change });

  test.skipIf(skip)('the tokens and the portal are there', async () => {
    const { client } = evmSandbox;
    expect(await client.readContract({ ...TOKEN, functionName: 'name' })).toBe('USD Coin');
    expect(await client.readContract({ ...TOKEN, functionName: 'symbol' })).toBe('USDC');
    expect(await client.readContract({ ...TOKEN, functionName: 'decimals' })).toBe(6);
    expect((await client.getCode({ address: PORTAL_ADDRESS }))?.length).toBeGreaterThan(2);
    expect(await client.getCode({ address: NOBODY })).toBeUndefined();
    expect((await request('eth_accounts', [])).result).toEqual([]);
    expect(await client.getChainId()).toBe(ARBITRUM);
    const slot = await client.getStorageAt({ address: USDC_ARBITRUM, slot: '0x1' });
    expect(slot?.slice(0, 10)).toBe('0x55534443');
  });

  test.skipIf(skip)('gas, fees and counts are those that a wallet needs', async () => {
    const { client } = evmSandbox;
    const gas = await client.estimateGas({ account: owner, to: NOBODY, value: 1n });
    expect(gas).toBeGreaterThanOrEqual(21_000n);
    expect(gas).toBeLessThan(22_000n);
    const { maxFeePerGas, maxPriorityFeePerGas } = await client.estimateFeesPerGas();
    expect(maxFeePerGas).toBeGreaterThan(maxPriorityFeePerGas);
    const history = await client.getFeeHistory({ blockCount: 3, rewardPercentiles: [50] });
    expect(history.baseFeePerGas).toHaveLength(4);
    expect(history.reward).toHaveLength(3);
    expect(await client.getGasPrice()).toBeGreaterThanOrEqual(parseGwei('1'));
  });

  test.skipIf(skip)('a transaction waits for its block, is counted, and pays its fee', async () => {
    const { client, rich, walletOf } = evmSandbox;
    const account = await rich();
    const { address } = account;
    const hash = await walletOf(account).sendTransaction({ to: NOBODY, value: parseEther('0.25') });
    expect(await client.getTransactionCount({ address, blockTag: 'pending' })).toBe(1);
    const receipt = await client.waitForTransactionReceipt({ hash });
    expect(receipt).toMatchObject({
      status: 'success',
      from: address.toLowerCase(),
      to: NOBODY,
      contractAddress: null,
    });
    expect(await client.getTransactionCount({ address })).toBe(1);
    const paid = receipt.gasUsed * receipt.effectiveGasPrice;
    expect(await client.getBalance({ address })).toBe(parseEther('0.75') - paid);
    const transaction = await client.getTransaction({ hash });
    expect(transaction).toMatchObject({ nonce: 0, value: parseEther('0.25'), typeHex: '0x2' });
    if (transaction.type !== 'eip1559') throw new Error('of another type');
    const { r, s, yParity, chainId, nonce, gas, maxFeePerGas, maxPriorityFeePerGas, to, value } = transaction;
    const unsigned = {
      type: 'eip1559',
      chainId,
      nonce,
      gas,
      maxFeePerGas,
      maxPriorityFeePerGas,
      to,
      value,
    } as const;
    expect(keccak256(serializeTransaction(unsigned, { r, s, yParity }))).toBe(hash);
  });

  test.skipIf(skip)(
    'a contract is created, and a failed transaction has a receipt without logs',
    async () => {
      const { client, rich, walletOf } = evmSandbox;
      const account = await rich();
      const wallet = walletOf(account);
      const created = await client.waitForTransactionReceipt({
        hash: await wallet.deployContract({ abi: [], bytecode: ANSWER }),
      });
      const address = created.contractAddress ?? NOBODY;
      expect(await client.call({ to: address })).toEqual({ data: `0x${'2a'.padStart(64, '0')}` });
      const failed = await client.waitForTransactionReceipt({
        hash: await wallet.writeContract({
          ...TOKEN,
          functionName: 'transfer',
          args: [NOBODY, 10n ** 30n],
          gas: 100_000n,
        }),
      });
      expect(failed).toMatchObject({ status: 'reverted', logs: [] });
      expect(await evmSandbox.balance(account.address)).toBe(1_000_000_000n);
    },
  );

  test.skipIf(skip)('a revert is error 3 with its reason and data', async () => {
    const data = `${toFunctionSelector('transfer(address,uint256)')}${NOBODY.slice(2).padStart(64, '0')}${'1'.padStart(64, '0')}`;
    for (const method of ['eth_call', 'eth_estimateGas']) {
      const { error } = await request(method, [{ from: NOBODY, to: USDC_ARBITRUM, data }, 'latest']);
      expect(error).toMatchObject({
        code: 3,
        message: 'execution reverted: ERC20: transfer amount exceeds balance',
      });
      expect(error?.data?.slice(0, 10)).toBe('0x08c379a0');
    }
  });

  test.skipIf(skip)('what a node refuses is refused in its words', async () => {
    const poor = privateKeyToAccount(generatePrivateKey());
    expect(await refusal(await sign(poor, { value: 1n }))).toMatch(
      /^insufficient funds for gas \* price \+ value/,
    );
    expect(await refusal(await sign(owner, { chainId: base.id }))).toMatch(/^invalid chain id for signer/);
    expect(await refusal(await sign(owner, { gas: 20_000n }))).toMatch(/^intrinsic gas too low/);
    expect(await refusal(await sign(owner, { gas: 16_777_217n }))).toMatch(/^transaction gas limit too high/);
    expect(await refusal(await sign(owner, { maxFeePerGas: 10n, maxPriorityFeePerGas: 1n }))).toMatch(
      /^max fee per gas less than block base fee/,
    );
    expect(await refusal(await sign(owner, { nonce: 100 }))).toMatch(/^nonce too high/);
    expect(await refusal(await sign(owner, { data: `0x${'00'.repeat(131_072)}`, gas: 10_000_000n }))).toMatch(
      /^oversized data/,
    );
    expect(await refusal('0x02')).toMatch(/^invalid transaction/);
    expect(await refusal('0x')).toMatch(/^invalid transaction/);
    const sent = await sign(owner);
    expect(await refusal(sent)).toBeUndefined();
    expect(await refusal(sent)).toBe('already known');
    await evmSandbox.client.waitForTransactionReceipt({ hash: keccak256(sent) });
    expect(await refusal(await sign(owner, { value: 1n }))).toBe('nonce too low: next nonce 1, tx nonce 0');
  });

  test.skipIf(skip)(
    'a transaction that pays a tenth more replaces the one of its nonce, and a gap is waited for',
    async () => {
      const { client, rich } = evmSandbox;
      const account = await rich();
      const late = await sign(account, { nonce: 1 });
      expect(await refusal(late)).toBeUndefined();
      const cheap = { nonce: 1, value: 1n, maxFeePerGas: parseGwei('2.1') };
      expect(await refusal(await sign(account, cheap))).toBe('replacement transaction underpriced');
      const better = {
        nonce: 1,
        value: 1n,
        maxFeePerGas: parseGwei('2.2'),
        maxPriorityFeePerGas: parseGwei('0.11'),
      };
      const replacement = await sign(account, better);
      expect(await refusal(replacement)).toBeUndefined();
      expect((await request('eth_getTransactionByHash', [keccak256(late)])).result).toBeNull();
      expect(await client.getTransaction({ hash: keccak256(replacement) })).toMatchObject({
        blockNumber: null,
        nonce: 1,
      });
      expect(await refusal(await sign(account, { nonce: 0 }))).toBeUndefined();
      const receipt = await client.waitForTransactionReceipt({ hash: keccak256(replacement) });
      expect(receipt.status).toBe('success');
      expect(await client.getTransactionCount({ address: account.address })).toBe(2);
    },
  );

  test.skipIf(skip)(
    'after a reorganisation the transaction is in another block, and lying endpoints lie about it',
    async () => {
      const { client, clientOf, control, rich, walletOf } = evmSandbox;
      const account = await rich();
      const hash = await walletOf(account).writeContract({
        ...TOKEN,
        functionName: 'transfer',
        args: [NOBODY, 1_000n],
      });
      const before = await client.waitForTransactionReceipt({ hash });
      await control('/chains', { chainId: ARBITRUM, reorganise: 50 });
      const after = await client.getTransactionReceipt({ hash });
      expect(after.blockNumber).toBe(before.blockNumber);
      expect(after.blockHash).not.toBe(before.blockHash);
      expect((await client.getBlock({ blockHash: after.blockHash })).transactions).toContain(hash);

      await control('/faults', { type: 'null-answers', path: `/chains/${ARBITRUM}/hiding` });
      await control('/faults', { type: 'amount-disagreement', path: `/chains/${ARBITRUM}/halving` });
      await expect(clientOf(arbitrum, 'hiding').getTransactionReceipt({ hash })).rejects.toThrow(
        'could not be found',
      );
      const halved = await clientOf(arbitrum, 'halving').getTransactionReceipt({ hash });
      expect(BigInt(halved.logs[0]?.data ?? '0x0')).toBe(501n);
      expect(BigInt(after.logs[0]?.data ?? '0x0')).toBe(1_000n);
    },
  );

  test.skipIf(skip)('old states are refused, new ones are not', async () => {
    const head = await evmSandbox.client.getBlockNumber();
    const at = (block: bigint) => request('eth_getBalance', [NOBODY, `0x${block.toString(16)}`]);
    expect((await at(head)).error).toBeUndefined();
    expect((await at(head - 1_000n)).error?.message).toMatch(/^missing trie node/);
    expect((await at(head + 1_000_000n)).error?.message).toBe('header not found');
    await eventually('a later block', async () => (await evmSandbox.client.getBlockNumber()) > head);
  });
});

test('the faucet is off by default, and its gifts are limited', async () => {
  const without = await startEvmSandbox({ faucet: false });
  expect((await without.control('/faucet', { chainId: ARBITRUM, address: NOBODY })).status).toBe(404);
  await without.close();
  const { control, close } = await startEvmSandbox({});
  const give = async (body: object) =>
    (await control('/faucet', { chainId: ARBITRUM, address: NOBODY, ...body })).status;
  expect(await control('/faucet', { chainId: ARBITRUM, address: NOBODY, amount: '7' })).toMatchObject({
    body: { balance: '7' },
  });
  expect(await give({ amount: '1000000000000000000001' })).toBe(400);
  expect(await give({ token: USDC_ARBITRUM, amount: '1000000000001' })).toBe(400);
  expect(await give({ token: NOBODY })).toBe(400);
  expect(await give({ chainId: 1399811149 })).toBe(400);
  expect(await give({ address: '0x12' })).toBe(400);
  expect(await give({ amount: '0' })).toBe(400);
  await close();
});
