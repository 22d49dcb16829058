import {
  AbiCoder,
  keccak256 as ethersKeccak256,
  Interface,
  JsonRpcProvider,
  Network,
  verifyTypedData,
  Wallet,
} from 'ethers';
import {
  createPublicClient,
  createWalletClient,
  decodeAbiParameters,
  decodeFunctionData,
  decodeFunctionResult,
  defineChain,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  http,
  isHex,
  keccak256,
  parseAbiItem,
  parseAbiParameters,
  recoverTypedDataAddress,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';

/** EIP-712 typed data, as both libraries take it. */
export type TypedData = {
  domain: { name: string; version: string; chainId: number; verifyingContract?: Hex };
  types: Record<string, { name: string; type: string }[]>;
  primaryType: string;
  message: Record<string, unknown>;
};

/** A transaction as the service gives it: `value` is wei in decimal digits. */
export type Sendable = { to: Hex; data: Hex; value: string };

/** A wallet on one chain, behind its JSON-RPC endpoint. */
export type ClientWallet = {
  address: Hex;
  chainId: number;
  signTypedData(data: TypedData): Promise<string>;
  /** Sends a transaction and waits for its receipt. Returns its hash; throws where it was reverted. */
  send(transaction: Sendable): Promise<string>;
  /** Results of a view function of a contract, by its declaration in Solidity. */
  read(contract: Hex, declaration: string, args: readonly unknown[]): Promise<readonly unknown[]>;
};

/** The functions of a client library that the flows need. Decoded tuples are arrays: declare them without names. */
export type ClientLibrary = {
  wallet(key: Hex, chain: { chainId: number; rpcUrl: string }): ClientWallet;
  recover(data: TypedData, signature: string): Promise<string>;
  encodeCall(declaration: string, args: readonly unknown[]): Hex;
  decodeCall(declaration: string, data: Hex): readonly unknown[];
  encode(types: readonly string[], values: readonly unknown[]): Hex;
  decode(types: readonly string[], data: Hex): readonly unknown[];
  keccak256(data: Hex): Hex;
};

const NATIVE = { name: 'Ether', symbol: 'ETH', decimals: 18 };
const POLL_MS = 50;

function functionOf(declaration: string) {
  const item = parseAbiItem(declaration);
  if (item.type !== 'function') throw new Error(`expected a function, found ${declaration}`);
  return item;
}

/** viem returns a single result by itself, several as an array. */
function listed(results: unknown, count: number): readonly unknown[] {
  return count > 1 && Array.isArray(results) ? results : [results];
}

const viem: ClientLibrary = {
  wallet(key, { chainId, rpcUrl }) {
    const account = privateKeyToAccount(key);
    const chain = defineChain({
      id: chainId,
      name: 'sandbox',
      nativeCurrency: NATIVE,
      rpcUrls: { default: { http: [rpcUrl] } },
    });
    const transport = http(rpcUrl);
    const wallet = createWalletClient({ account, chain, transport });
    const reader = createPublicClient({ chain, transport, pollingInterval: POLL_MS });
    return {
      address: account.address,
      chainId,
      signTypedData: (data) => account.signTypedData(data),
      async send({ to, data, value }) {
        const hash = await wallet.sendTransaction({ to, data, value: BigInt(value) });
        const { status } = await reader.waitForTransactionReceipt({ hash });
        if (status !== 'success') throw new Error(`transaction ${hash}: ${status}`);
        return hash;
      },
      async read(contract, declaration, args) {
        const item = functionOf(declaration);
        const { data = '0x' } = await reader.call({ to: contract, data: viem.encodeCall(declaration, args) });
        return listed(decodeFunctionResult({ abi: [item], data }), item.outputs.length);
      },
    };
  },
  recover: (data, signature) => recoverTypedDataAddress({ ...data, signature: hexOf(signature) }),
  encodeCall: (declaration, args) => encodeFunctionData({ abi: [functionOf(declaration)], args }),
  decodeCall: (declaration, data) => decodeFunctionData({ abi: [functionOf(declaration)], data }).args ?? [],
  encode: (types, values) => encodeAbiParameters(parseAbiParameters(types.join(', ')), [...values]),
  decode: (types, data) => decodeAbiParameters(parseAbiParameters(types.join(', ')), data),
  keccak256: (data) => keccak256(data),
};

const ethers: ClientLibrary = {
  wallet(key, { chainId, rpcUrl }) {
    const network = Network.from(chainId);
    const provider = new JsonRpcProvider(rpcUrl, network, {
      staticNetwork: network,
      pollingInterval: POLL_MS,
      // Blocks come faster than its cache of nonces expires.
      cacheTimeout: -1,
    });
    const wallet = new Wallet(key, provider);
    return {
      address: hexOf(wallet.address),
      chainId,
      signTypedData: ({ domain, types, message }) => wallet.signTypedData(domain, types, message),
      async send({ to, data, value }) {
        const sent = await wallet.sendTransaction({ to, data, value: BigInt(value) });
        await sent.wait();
        return sent.hash;
      },
      async read(contract, declaration, args) {
        const data = await provider.call({ to: contract, data: ethers.encodeCall(declaration, args) });
        const coder = new Interface([declaration]);
        return coder.decodeFunctionResult(nameOf(coder), data).toArray(true);
      },
    };
  },
  recover: async ({ domain, types, message }, signature) =>
    verifyTypedData(domain, types, message, signature),
  encodeCall(declaration, args) {
    const coder = new Interface([declaration]);
    return hexOf(coder.encodeFunctionData(nameOf(coder), args));
  },
  decodeCall(declaration, data) {
    const coder = new Interface([declaration]);
    return coder.decodeFunctionData(nameOf(coder), data).toArray(true);
  },
  encode: (types, values) => hexOf(AbiCoder.defaultAbiCoder().encode(types, values)),
  decode: (types, data) => AbiCoder.defaultAbiCoder().decode(types, data).toArray(true),
  keccak256: (data) => hexOf(ethersKeccak256(data)),
};

/** The libraries by which clients of the service are commonly written. */
export const CLIENT_LIBRARIES: readonly [string, ClientLibrary][] = [
  ['viem', viem],
  ['ethers', ethers],
];

function hexOf(text: string): Hex {
  if (!isHex(text)) throw new Error(`found ${text}, expected 0x and hex digits`);
  return text;
}

function nameOf(coder: Interface): string {
  const [item] = coder.fragments;
  if (item === undefined) throw new Error('expected a function');
  return item.format('sighash');
}
