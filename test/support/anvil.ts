import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import {
  type Account,
  type Chain,
  createTestClient,
  createWalletClient,
  defineChain,
  http,
  parseAbi,
  publicActions,
  type Transport,
  type WalletClient,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { z } from 'zod';
import { PARTS } from './optional-parts.ts';
import { Program } from './program.ts';

/** The first of the public keys that anvil funds. */
const DEPLOYER = privateKeyToAccount('0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80');

const SOURCE = `
  // SPDX-License-Identifier: MIT
  pragma solidity ^0.8.0;
  contract Token {
    event Transfer(address indexed from, address indexed to, uint256 value);
    mapping(address => uint256) public balanceOf;
    constructor() { balanceOf[msg.sender] = 1e24; emit Transfer(address(0), msg.sender, 1e24); }
    function transfer(address to, uint256 value) external returns (bool) { move(msg.sender, to, value); return true; }
    function transferFrom(address from, address to, uint256 value) external returns (bool) { move(from, to, value); return true; }
    function move(address from, address to, uint256 value) internal {
      require(balanceOf[from] >= value, "too little");
      balanceOf[from] -= value;
      balanceOf[to] += value;
      emit Transfer(from, to, value);
    }
  }
  contract Portal {
    event Filled(bytes32 indexed intent, address solver);
    function fill(Token token, bytes32 intent, address[] calldata to, uint256 value) external {
      for (uint256 i = 0; i < to.length; i++) token.transferFrom(msg.sender, to[i], value);
      emit Filled(intent, msg.sender);
    }
  }`;

/** The event of the portal, as a config pins it. */
export const FILLED_EVENT = 'event Filled(bytes32 indexed intent, address solver)';

const ABI = parseAbi([
  'function transfer(address to, uint256 value) returns (bool)',
  'function fill(address token, bytes32 intent, address[] to, uint256 value)',
]);

type Hex = `0x${string}`;

/** An EVM node of its own with an ERC-20 token and a portal that fills intents. */
export type AnvilChain = {
  url: string;
  port: number;
  chainId: number;
  token: Hex;
  portal: Hex;
  deployer: Hex;
  /** Pays through the token alone; a value above the balance fails on the chain. Returns the hash of the transaction. */
  transfer(to: Hex, value: bigint): Promise<Hex>;
  fill(intent: Hex, to: Hex[], value: bigint): Promise<Hex>;
  mine(blocks: number): Promise<void>;
  /** Removes `depth` blocks and mines one instead. */
  reorganise(depth: number): Promise<void>;
  close(): Promise<void>;
};

/** Starts a node whose final block is two behind the newest. Needs anvil. */
export async function startAnvil(): Promise<AnvilChain> {
  const anvil = PARTS.anvil.place;
  if (anvil === null) throw new Error('found no anvil, expected what `npm run setup:all` installs');
  const program = await Program.run([anvil, '--port', '0', '--slots-in-an-epoch', '1']);
  const [, address] = await program.line(/^Listening on (\S+)/);
  const url = `http://${address}`;
  const chain = defineChain({
    id: 31_337,
    name: 'anvil',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  });
  const transport = http(url, { retryCount: 0 });
  const wallet = createWalletClient({ account: DEPLOYER, chain, transport });
  const node = createTestClient({ mode: 'anvil', chain, transport, pollingInterval: 20 }).extend(
    publicActions,
  );
  const contracts = await compiled();
  const deploy = (name: string) =>
    deployed(wallet, contracts[name] ?? '0x', (hash) => node.waitForTransactionReceipt({ hash }));
  const token = await deploy('Token');
  const portal = await deploy('Portal');
  const mined = async (hash: Hex): Promise<Hex> => {
    await node.waitForTransactionReceipt({ hash });
    return hash;
  };
  // Given, so that the node does not estimate whether the call would succeed.
  const gas = 1_000_000n;
  return {
    url,
    port: Number(new URL(url).port),
    chainId: chain.id,
    token,
    portal,
    deployer: DEPLOYER.address,
    transfer: async (to, value) =>
      mined(
        await wallet.writeContract({
          abi: ABI,
          address: token,
          functionName: 'transfer',
          args: [to, value],
          gas,
        }),
      ),
    fill: async (intent, to, value) =>
      mined(
        await wallet.writeContract({
          abi: ABI,
          address: portal,
          functionName: 'fill',
          args: [token, intent, to, value],
          gas,
        }),
      ),
    mine: (blocks) => node.mine({ blocks }),
    reorganise: async (depth) => {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'anvil_reorg', params: [depth, []] }),
      });
      z.object({ result: z.unknown() }).parse(await answer.json());
    },
    close: async () => {
      // The child is a wrapper: it passes this signal on to the node, but SIGKILL would leave the node running.
      await program.end('SIGTERM');
    },
  };
}

async function deployed(
  wallet: WalletClient<Transport, Chain, Account>,
  bytecode: Hex,
  wait: (hash: Hex) => Promise<{ contractAddress?: Hex | null | undefined }>,
): Promise<Hex> {
  const { contractAddress } = await wait(await wallet.deployContract({ abi: [], bytecode }));
  if (contractAddress == null) throw new Error('the contract was not deployed');
  return contractAddress;
}

const OUTPUT = z.object({
  contracts: z.object({
    'token.sol': z.record(
      z.string(),
      z.object({ evm: z.object({ bytecode: z.object({ object: z.string() }) }) }),
    ),
  }),
});

/** The bytecode of the contracts. The compiler runs as its own program: it listens to errors of its whole process. */
async function compiled(): Promise<Record<string, Hex>> {
  const input = {
    language: 'Solidity',
    sources: { 'token.sol': { content: SOURCE } },
    settings: { evmVersion: 'paris', outputSelection: { '*': { '*': ['evm.bytecode.object'] } } },
  };
  const compiler = fileURLToPath(import.meta.resolve('solc/solc.js'));
  const output = await new Promise<string>((resolve, reject) => {
    const child = execFile(process.execPath, [compiler, '--standard-json'], (error, stdout) =>
      error === null ? resolve(stdout) : reject(error),
    );
    child.stdin?.end(JSON.stringify(input));
  });
  const json = output.slice(output.indexOf('{'));
  const { contracts } = OUTPUT.parse(JSON.parse(json));
  return Object.fromEntries(
    Object.entries(contracts['token.sol']).map(([name, { evm }]) => [
      name,
      `0x${evm.bytecode.object}` as const,
    ]),
  );
}
