import {
  type Address,
  createPublicClient,
  createWalletClient,
  defineChain,
  erc20Abi,
  type Hex,
  http,
  parseAbi,
} from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { Funding } from './bytes.ts';
import type { Token } from './sign.ts';

const SIGNING = parseAbi([
  'function version() view returns (string)',
  'function nonces(address owner) view returns (uint256)',
]);

/** The sender's wallet on the chain that transfers come from. */
export type Wallet = {
  owner: PrivateKeyAccount;
  /** Reads the name and version under which a token's authorizations are signed. */
  token(address: Address): Promise<Token>;
  /** The number of the owner's next EIP-2612 permit of a token. */
  permitNonce(token: Address): Promise<bigint>;
  approve(token: Address, allowed: { spender: Address; amount: bigint }): Promise<Hex>;
  transfer(token: Address, sent: { to: Address; amount: bigint }): Promise<Hex>;
  send(funding: Funding): Promise<Hex>;
};

/** Creates the wallet. What it sends is in a block when its promise resolves with the hash; it throws where it was reverted. */
export function createWallet({
  owner,
  chainId,
  rpcUrl,
}: {
  owner: PrivateKeyAccount;
  chainId: number;
  rpcUrl: string;
}): Wallet {
  const chain = defineChain({
    id: chainId,
    name: `chain ${chainId}`,
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  });
  const transport = http(rpcUrl);
  const reader = createPublicClient({ chain, transport });
  const sender = createWalletClient({ account: owner, chain, transport });

  async function included(hash: Hex): Promise<Hex> {
    const { status } = await reader.waitForTransactionReceipt({ hash });
    if (status !== 'success') throw new Error(`transaction ${hash} was reverted`);
    return hash;
  }

  return {
    owner,
    async token(address) {
      const [name, version] = await Promise.all([
        reader.readContract({ address, abi: erc20Abi, functionName: 'name' }),
        reader.readContract({ address, abi: SIGNING, functionName: 'version' }),
      ]);
      return { chainId, address, name, version };
    },
    permitNonce: (address) =>
      reader.readContract({ address, abi: SIGNING, functionName: 'nonces', args: [owner.address] }),
    approve: async (address, { spender, amount }) =>
      included(
        await sender.writeContract({
          address,
          abi: erc20Abi,
          functionName: 'approve',
          args: [spender, amount],
        }),
      ),
    transfer: async (address, { to, amount }) =>
      included(
        await sender.writeContract({ address, abi: erc20Abi, functionName: 'transfer', args: [to, amount] }),
      ),
    send: async (funding) => included(await sender.sendTransaction(funding)),
  };
}
