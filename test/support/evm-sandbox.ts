import { createPublicClient, createWalletClient, type Hex, http, type PrivateKeyAccount } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { arbitrum, optimism } from 'viem/chains';
import { z } from 'zod';
import type { EngineKind } from '../../sandbox/chains/engine-starter.ts';
import { TOKEN_ABI } from '../../sandbox/contracts/genesis.ts';
import { Sandbox, type SandboxOptions } from '../../sandbox/sandbox.ts';
import { eventually } from './eventually.ts';
import { needs, PARTS } from './optional-parts.ts';

/** The engines of the EVM chains, each with the reason to skip it here. */
export const ENGINES: readonly { name: string; evm: EngineKind; skip: boolean }[] = [
  { name: 'the JavaScript EVM', evm: 'js', skip: false },
  anvil(),
];

function anvil() {
  const { skip, note } = needs(PARTS.anvil);
  return { name: `anvil${note}`, evm: { anvil: PARTS.anvil.place ?? 'anvil' }, skip };
}

export const ARBITRUM = arbitrum.id;
export const USDC_ARBITRUM = '0xaf88d065e77c8cC2239327C5EDb3A432268e5831';
export const USDC_OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';
export const AMOUNT = 100_000_000n;

const hex = z.custom<Hex>((value) => typeof value === 'string' && /^0x[0-9a-fA-F]*$/.test(value));
const quoteSchema = z.object({
  id: z.string(),
  intentHash: hex,
  execution: z.object({
    transaction: z.object({ chainId: z.number(), to: hex, data: hex, value: z.string() }),
    vault: hex,
  }),
});
const vaultSchema = z.object({ data: z.object({ vaultAddress: hex }) });

export type EvmQuote = z.infer<typeof quoteSchema>;

/** A sandbox without transfers of its own, with a faucet, as its clients use it. */
export type EvmSandbox = Awaited<ReturnType<typeof startEvmSandbox>>;

export async function startEvmSandbox(options: SandboxOptions) {
  const sandbox = new Sandbox({ transfersPerSecond: 0, faucet: true, ...options });
  await sandbox.start();
  // Transfers that are born at the start would fill the log of payments.
  sandbox.setPace(0);

  const clientOf = (chain: typeof arbitrum | typeof optimism, endpoint = 'own') =>
    createPublicClient({
      chain,
      transport: http(sandbox.rpcUrl(chain.id, endpoint), { retryCount: 0 }),
      pollingInterval: 20,
      cacheTime: 0,
    });
  const client = clientOf(arbitrum);

  async function post(url: string, body: object): Promise<{ status: number; body: unknown }> {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': sandbox.apiKey },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  }

  const control = (path: string, body: object) => post(`${sandbox.controlUrl}${path}`, body);

  return {
    sandbox,
    client,
    clientOf,
    control,
    walletOf: (account: PrivateKeyAccount, chain: typeof arbitrum | typeof optimism = arbitrum) =>
      createWalletClient({
        account,
        chain,
        transport: http(sandbox.rpcUrl(chain.id, 'own'), { retryCount: 0 }),
      }),
    /** A new account that has coins and tokens of a chain. */
    async rich(chainId: number = ARBITRUM, token: Hex = USDC_ARBITRUM): Promise<PrivateKeyAccount> {
      const account = privateKeyToAccount(generatePrivateKey());
      for (const gift of [{}, { token }]) {
        await control('/faucet', { chainId, address: account.address, ...gift });
      }
      return account;
    },
    async quote(funder: Hex, recipient: Hex = funder): Promise<EvmQuote> {
      const source = { chainId: ARBITRUM, token: USDC_ARBITRUM, funder, amount: AMOUNT.toString() };
      const destination = { chainId: optimism.id, token: USDC_OPTIMISM, recipient };
      const request = { type: 'exact-in', dappId: 'tests', source, destination };
      return quoteSchema.parse((await post(`${sandbox.url}/v1/quotes`, request)).body);
    },
    async vault(refundRecipient: Hex, recipient: Hex): Promise<Hex> {
      const made = await post(`${sandbox.url}/v1/deposit-gateway/deposit-addresses`, {
        sourceChainId: ARBITRUM,
        destinationChainId: optimism.id,
        sourceToken: USDC_ARBITRUM,
        destinationToken: USDC_OPTIMISM,
        amount: AMOUNT.toString(),
        recipient,
        refundRecipient,
      });
      return vaultSchema.parse(made.body).data.vaultAddress;
    },
    balance: (owner: Hex) =>
      client.readContract({
        abi: TOKEN_ABI,
        address: USDC_ARBITRUM,
        functionName: 'balanceOf',
        args: [owner],
      }),
    arrived: (owner: Hex) =>
      clientOf(optimism).readContract({
        abi: TOKEN_ABI,
        address: USDC_OPTIMISM,
        functionName: 'balanceOf',
        args: [owner],
      }),
    /** Waits for a payment that the upstream states. */
    stated: (payment: string, matches: { txHash: string } | { intentHash: string }) =>
      eventually(`a stated ${payment}`, () => {
        const found = sandbox.payments().find((one) => {
          const isIt =
            'txHash' in matches ? one.txHash === matches.txHash : one.intentHash === matches.intentHash;
          return one.payment === payment && isIt;
        });
        return found ?? null;
      }),
    close: () => sandbox.close(),
  };
}
