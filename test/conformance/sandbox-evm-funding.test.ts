import { AbiCoder, Contract, HDNodeWallet, Interface, JsonRpcProvider, Mnemonic } from 'ethers';
import {
  decodeAbiParameters,
  decodeFunctionData,
  getAddress,
  hexToBigInt,
  keccak256,
  parseAbiParameters,
  parseEventLogs,
  parseSignature,
  zeroHash,
} from 'viem';
import { optimism } from 'viem/chains';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TOKEN_ABI } from '../../sandbox/contracts/genesis.ts';
import { PORTAL_ABI, PORTAL_ADDRESS, PORTAL_STRUCTS } from '../../sandbox/contracts/portal.ts';
import {
  AMOUNT,
  ARBITRUM,
  ENGINES,
  type EvmSandbox,
  startEvmSandbox,
  USDC_ARBITRUM,
  USDC_OPTIMISM,
} from '../support/evm-sandbox.ts';

const ROUTE = parseAbiParameters(['Route route', ...PORTAL_STRUCTS]);

const FAUCET_TOKENS = 1_000_000_000n;

describe.each(ENGINES)('with $name', ({ evm, skip }) => {
  /** Blocks every 50 ms, and quotes that are valid for a minute. */
  let evmSandbox: EvmSandbox;

  beforeAll(async () => {
    if (!skip) evmSandbox = await startEvmSandbox({ evm, timeScale: 5 });
  });
  afterAll(() => evmSandbox?.close());

  test.skipIf(skip)('viem approves, publishes and funds a quote as it is', async () => {
    const { client, quote, rich, walletOf, stated } = evmSandbox;
    const account = await rich();
    const wallet = walletOf(account);
    const { execution, intentHash } = await quote(account.address);
    const { to, data, value } = execution.transaction;
    const { functionName, args } = decodeFunctionData({ abi: PORTAL_ABI, data });
    expect(functionName).toBe('publishAndFund');
    const approved = await wallet.writeContract({
      abi: TOKEN_ABI,
      address: USDC_ARBITRUM,
      functionName: 'approve',
      args: [to, AMOUNT],
    });
    await client.waitForTransactionReceipt({ hash: approved });
    if (functionName !== 'publishAndFund') throw new Error('unreachable');
    const simulated = await client.simulateContract({
      account,
      abi: PORTAL_ABI,
      address: to,
      functionName,
      args,
    });
    expect(simulated.result).toEqual([intentHash, getAddress(execution.vault)]);

    const hash = await wallet.sendTransaction({ to, data, value: BigInt(value) });
    const receipt = await client.waitForTransactionReceipt({ hash });
    expect(receipt.status).toBe('success');
    const logs = parseEventLogs({ abi: [...PORTAL_ABI, ...TOKEN_ABI], logs: receipt.logs });
    expect(logs.map(({ eventName }) => eventName)).toEqual(['IntentPublished', 'Transfer', 'IntentFunded']);
    const published = logs.find((log) => log.eventName === 'IntentPublished');
    if (published?.eventName !== 'IntentPublished') throw new Error('not published');
    expect(published.args).toMatchObject({ intentHash, creator: account.address });
    const [route] = decodeAbiParameters(ROUTE, published.args.route);
    expect(route.tokens[0]?.token).toBe(USDC_OPTIMISM);
    expect(getAddress(route.portal)).toBe(getAddress(PORTAL_ADDRESS));

    await stated('source', { txHash: hash });
    expect(await evmSandbox.balance(account.address)).toBe(FAUCET_TOKENS - AMOUNT);
    const block = await client.getBlock({ blockHash: receipt.blockHash, includeTransactions: true });
    expect(block.transactions).toContainEqual(
      expect.objectContaining({ hash, from: account.address.toLowerCase(), input: data }),
    );
    const found = await client.getLogs({
      address: USDC_ARBITRUM,
      fromBlock: receipt.blockNumber,
      toBlock: receipt.blockNumber,
    });
    expect(found).toContainEqual(expect.objectContaining({ transactionHash: hash }));

    const again = client.simulateContract({ account, abi: PORTAL_ABI, address: to, functionName, args });
    await expect(again).rejects.toThrow('IntentAlreadyExists');
  });

  test.skipIf(skip)('an HD wallet of ethers approves, publishes and funds a quote as it is', async () => {
    const { sandbox, control, quote, stated } = evmSandbox;
    const provider = new JsonRpcProvider(sandbox.rpcUrl(ARBITRUM, 'ethers'), ARBITRUM, {
      staticNetwork: true,
      pollingInterval: 50,
      // Its cache of nonces is slower than these blocks.
      cacheTimeout: -1,
    });
    const phrase = Mnemonic.entropyToPhrase(crypto.getRandomValues(new Uint8Array(16)));
    const wallet = HDNodeWallet.fromPhrase(phrase).connect(provider);
    for (const gift of [{}, { token: USDC_ARBITRUM }]) {
      await control('/faucet', { chainId: ARBITRUM, address: wallet.address, ...gift });
    }
    const funder = `0x${wallet.address.slice(2)}` as const;
    const { execution, intentHash } = await quote(funder);
    const { to, data, value } = execution.transaction;
    const token = new Contract(
      USDC_ARBITRUM,
      [
        'function approve(address spender, uint256 value) returns (bool)',
        'function balanceOf(address) view returns (uint256)',
      ],
      wallet,
    );
    await (await token.getFunction('approve')(to, AMOUNT)).wait();
    const sent = await wallet.sendTransaction({ to, data, value });
    const receipt = await sent.wait();
    expect(receipt?.status).toBe(1);
    const portal = new Interface([
      'event IntentFunded(bytes32 indexed intentHash, address indexed funder, bool complete)',
    ]);
    const funded = receipt?.logs.map((log) => portal.parseLog(log)).find((log) => log !== null);
    expect(funded?.args.toObject()).toEqual({ intentHash, funder: wallet.address, complete: true });
    expect(await token.getFunction('balanceOf')(execution.vault)).toBe(AMOUNT);
    const [destination] = AbiCoder.defaultAbiCoder().decode(['uint64'], `0x${data.slice(10, 74)}`);
    expect(destination).toBe(BigInt(optimism.id));
    await stated('source', { txHash: sent.hash });
    provider.destroy();
  });

  test.skipIf(skip)(
    'a plain transfer to the vault of a quote, or of a deposit, begins the transfer once it is whole',
    async () => {
      const { client, quote, vault, rich, walletOf, stated, sandbox } = evmSandbox;
      const account = await rich();
      const wallet = walletOf(account);
      const { execution } = await quote(account.address);
      const deposit = await vault(account.address, account.address);
      for (const to of [execution.vault, deposit]) {
        const pay = async (value: bigint) => {
          const hash = await wallet.writeContract({
            abi: TOKEN_ABI,
            address: USDC_ARBITRUM,
            functionName: 'transfer',
            args: [to, value],
          });
          await client.waitForTransactionReceipt({ hash });
          return hash;
        };
        const first = await pay(AMOUNT - 1n);
        const second = await pay(1n);
        await stated('source', { txHash: second });
        expect(sandbox.payments().some(({ txHash }) => txHash === first)).toBe(false);
      }
    },
  );

  test.skipIf(skip)('an authorization and a permit of the owner move tokens to a vault, once', async () => {
    const { client, vault, rich, walletOf, stated } = evmSandbox;
    const owner = await rich();
    const relayer = await rich();
    const wallet = walletOf(relayer);
    const token = { abi: TOKEN_ABI, address: USDC_ARBITRUM } as const;
    const domain = {
      name: 'USD Coin',
      version: '2',
      chainId: ARBITRUM,
      verifyingContract: USDC_ARBITRUM,
    } as const;
    const validBefore = (await client.getBlock()).timestamp + 3_600n;

    const first = await vault(owner.address, owner.address);
    const message = {
      from: owner.address,
      to: first,
      value: AMOUNT,
      validAfter: 0n,
      validBefore,
      nonce: zeroHash,
    };
    const authorization = parseSignature(
      await owner.signTypedData({
        domain,
        types: AUTHORIZATION,
        primaryType: 'TransferWithAuthorization',
        message,
      }),
    );
    const { from, to, value, validAfter, nonce } = message;
    const call = {
      ...token,
      functionName: 'transferWithAuthorization',
      args: [
        from,
        to,
        value,
        validAfter,
        validBefore,
        nonce,
        vOf(authorization),
        authorization.r,
        authorization.s,
      ],
    } as const;
    const moved = await wallet.writeContract(call);
    await stated('source', { txHash: moved });
    await expect(client.simulateContract({ ...call, account: relayer })).rejects.toThrow(
      'authorization is used',
    );
    await expect(
      client.simulateContract({ ...call, functionName: 'receiveWithAuthorization', account: relayer }),
    ).rejects.toThrow('caller must be the payee');

    const second = await vault(owner.address, owner.address);
    const allowed = {
      owner: owner.address,
      spender: relayer.address,
      value: AMOUNT,
      nonce: 0n,
      deadline: validBefore,
    };
    const permit = parseSignature(
      await owner.signTypedData({ domain, types: PERMIT, primaryType: 'Permit', message: allowed }),
    );
    const permitted = await wallet.writeContract({
      ...token,
      functionName: 'permit',
      args: [owner.address, relayer.address, AMOUNT, validBefore, vOf(permit), permit.r, permit.s],
    });
    await client.waitForTransactionReceipt({ hash: permitted });
    const pulled = await wallet.writeContract({
      ...token,
      functionName: 'transferFrom',
      args: [owner.address, second, AMOUNT],
    });
    await stated('source', { txHash: pulled });
    expect(await client.readContract({ ...token, functionName: 'nonces', args: [owner.address] })).toBe(1n);
  });

  test.skipIf(skip)(
    'a client fulfils an intent on the other chain, but cannot refund it before its time',
    async () => {
      const { client, clientOf, quote, rich, walletOf } = evmSandbox;
      const funder = await rich();
      const { execution, intentHash } = await quote(funder.address);
      const { functionName, args } = decodeFunctionData({
        abi: PORTAL_ABI,
        data: execution.transaction.data,
      });
      if (functionName !== 'publishAndFund') throw new Error('not a funding');
      const [destination, encodedRoute, reward] = args;
      const portal = { abi: PORTAL_ABI, address: PORTAL_ADDRESS } as const;
      const [, routeHash, rewardHash] = await client.readContract({
        ...portal,
        functionName: 'getIntentHash',
        args: [destination, encodedRoute, reward],
      });
      expect(routeHash).toBe(keccak256(encodedRoute));
      const refund = client.simulateContract({
        ...portal,
        functionName: 'refund',
        args: [destination, routeHash, reward],
      });
      await expect(refund).rejects.toThrow('IntentNotExpired');

      const solver = await rich(optimism.id, USDC_OPTIMISM);
      const wallet = walletOf(solver, optimism);
      const [route] = decodeAbiParameters(ROUTE, encodedRoute);
      const amount = route.tokens[0]?.amount ?? 0n;
      const approved = await wallet.writeContract({
        abi: TOKEN_ABI,
        address: USDC_OPTIMISM,
        functionName: 'approve',
        args: [PORTAL_ADDRESS, amount],
      });
      await clientOf(optimism).waitForTransactionReceipt({ hash: approved });
      const claimant = `0x${solver.address.slice(2).padStart(64, '0')}` as const;
      const hash = await wallet.writeContract({
        ...portal,
        functionName: 'fulfill',
        args: [intentHash, route, rewardHash, claimant],
      });
      const { logs } = await clientOf(optimism).waitForTransactionReceipt({ hash });
      const [fulfilled] = parseEventLogs({ abi: PORTAL_ABI, eventName: 'IntentFulfilled', logs });
      expect(fulfilled?.args.intentHash).toBe(intentHash);
      expect(hexToBigInt(fulfilled?.args.claimant ?? '0x0')).toBe(hexToBigInt(solver.address));
      expect(await evmSandbox.arrived(funder.address)).toBe(amount);
    },
  );
});

const vOf = ({ yParity }: { yParity: number }): number => 27 + yParity;

const AUTHORIZATION = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const;

const PERMIT = {
  Permit: [
    { name: 'owner', type: 'address' },
    { name: 'spender', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'nonce', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
  ],
} as const;
