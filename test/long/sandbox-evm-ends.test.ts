import { getAddress, parseEventLogs } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TOKEN_ABI } from '../../sandbox/contracts/genesis.ts';
import { eventually } from '../support/eventually.ts';
import { AMOUNT, ENGINES, type EvmSandbox, startEvmSandbox, USDC_ARBITRUM } from '../support/evm-sandbox.ts';

const FAUCET_TOKENS = 1_000_000_000n;

describe.each(ENGINES)('the end of a transfer with $name', ({ evm, skip }) => {
  /** A vault is valid for half a minute, and its transfer ends within one. */
  let quick: EvmSandbox;

  beforeAll(async () => {
    if (!skip) quick = await startEvmSandbox({ evm, timeScale: 10 });
  });
  afterAll(() => quick?.close());

  async function deposit(): Promise<{ owner: `0x${string}`; vault: `0x${string}`; intentHash: string }> {
    const account = await quick.rich();
    const vault = await quick.vault(account.address, account.address);
    const hash = await quick.walletOf(account).writeContract({
      abi: TOKEN_ABI,
      address: USDC_ARBITRUM,
      functionName: 'transfer',
      args: [vault, AMOUNT],
    });
    const { intentHash } = await quick.stated('source', { txHash: hash });
    return { owner: account.address, vault, intentHash };
  }

  test.skipIf(skip)('a fill brings its tokens to the recipient, and takes those of the vault', async () => {
    const { owner, vault, intentHash } = await deposit();
    const fill = await quick.stated('destination', { intentHash });
    await eventually('the balance', async () => (await quick.arrived(owner)) === BigInt(fill.amount));
    expect(await quick.balance(vault)).toBe(0n);
    expect(await quick.balance(owner)).toBe(FAUCET_TOKENS - AMOUNT);
  });

  test.skipIf(skip)('where nobody fills, the refund returns the tokens', async () => {
    await quick.control('/market', { solvers: 3 });
    const account = await quick.rich();
    const vault = await quick.vault(account.address, account.address);
    await quick.control('/market', { solvers: 0 });
    const hash = await quick.walletOf(account).writeContract({
      abi: TOKEN_ABI,
      address: USDC_ARBITRUM,
      functionName: 'transfer',
      args: [vault, AMOUNT],
    });
    const { intentHash } = await quick.stated('source', { txHash: hash });
    expect(await quick.balance(account.address)).toBe(FAUCET_TOKENS - AMOUNT);
    const refund = await quick.stated('refund', { intentHash });
    await eventually('the balance', async () => (await quick.balance(account.address)) === FAUCET_TOKENS);
    expect(await quick.balance(vault)).toBe(0n);
    const { logs } = await quick.client.getTransactionReceipt({ hash: `0x${refund.txHash.slice(2)}` });
    const [transfer] = parseEventLogs({ abi: TOKEN_ABI, eventName: 'Transfer', logs });
    expect(transfer?.args).toEqual({ from: getAddress(vault), to: account.address, value: AMOUNT });
  });
});
