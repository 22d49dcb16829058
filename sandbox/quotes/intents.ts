import {
  bytesToHex,
  encodeAbiParameters,
  encodeFunctionData,
  encodePacked,
  erc20Abi,
  getAddress,
  getContractAddress,
  type Hex,
  keccak256,
  pad,
  parseAbi,
  parseAbiParameters,
  toHex,
} from 'viem';
import { VAULT_CREATION_HASH } from '../contracts/code.ts';
import { PORTAL_ABI, PORTAL_ADDRESS, PORTAL_STRUCTS } from '../contracts/portal.ts';
import { type Chain, type ChainKind, tokenAt } from '../world/chains.ts';
import { address, addressBytes } from '../world/identifiers.ts';
import { bytes, randomStream } from '../world/random.ts';

/** Tokens of an intent, in base units. */
type TokenAmount = { token: string; amount: string };

/** An intent's actions on the chain where it is fulfilled. `deadline` is Unix seconds. */
export type IntentRoute = {
  salt: Hex;
  destination: number;
  deadline: number;
  portal: string;
  nativeAmount: string;
  tokens: TokenAmount[];
  calls: { target: string; data: Hex; value: string }[];
};

/** The payment for whoever fulfils an intent; after `deadline` (Unix seconds) it goes back to the creator. */
export type IntentReward = {
  deadline: number;
  creator: string;
  prover: string;
  nativeAmount: string;
  tokens: TokenAmount[];
};

/** An intent with its hash and the bytes of its route, as the Portal hashes and publishes them. */
export type Intent = { hash: Hex; route: IntentRoute; reward: IntentReward; encodedRoute: Hex };

/** A transfer to make an intent of. Amounts are base units; the quote can be funded until `expiresAt` (Unix seconds). */
export type IntentOrder = {
  /** Determines the salt: equal terms under another name are another intent. */
  name: string;
  source: { chain: Chain; token: string; amount: string };
  destination: { chain: Chain; token: string; amount: string };
  recipient: string;
  /** Receives the refund. */
  creator: string;
  /** True where the intent is fulfilled on the source chain, by a burn there: the token's issuer mints at the destination. */
  isLocal: boolean;
  expiresAt: number;
};

/** Contracts of a chain that an intent names. */
export type Contracts = { portal: string; prover: string };

/** Makes intents. */
export type Intents = {
  contractsOf(kind: ChainKind): Contracts;
  /** `contracts` replace the default ones of EVM chains. */
  make(order: IntentOrder, contracts?: { [Name in keyof Contracts]?: string | undefined }): Intent;
  /** The transaction that publishes and funds an intent of an EVM chain, and the vault that it funds. */
  funding(intent: Intent): { to: Hex; data: Hex; vault: Hex };
};

/** An encoded route. On Solana, whose addresses have 32 bytes, every address of it is a `bytes32`. */
export const ROUTE_ABI = parseAbiParameters(['Route route', ...PORTAL_STRUCTS]);
const REWARD_ABI = parseAbiParameters(['Reward reward', ...PORTAL_STRUCTS]);

const SOLANA_STRUCTS = [
  'struct TokenAmount { bytes32 token; uint256 amount; }',
  'struct Call { bytes32 target; bytes data; uint256 value; }',
  'struct Route { bytes32 salt; uint64 deadline; bytes32 portal; uint256 nativeAmount; TokenAmount[] tokens; Call[] calls; }',
  'struct Reward { uint64 deadline; bytes32 creator; bytes32 prover; uint256 nativeAmount; TokenAmount[] tokens; }',
] as const;

const SOLANA_ROUTE_ABI = parseAbiParameters(['Route route', ...SOLANA_STRUCTS]);
const SOLANA_REWARD_ABI = parseAbiParameters(['Reward reward', ...SOLANA_STRUCTS]);

/** Time from a quote's end to the deadline of its route, in seconds before time is scaled. */
const ROUTE_SECONDS = 5_100;

/** Time from a quote's end to the deadline of its reward, in seconds before time is scaled. */
const REWARD_SECONDS = 5_760;

/** The contract of the token's issuer that burns tokens for another chain: at the same address on every EVM chain. */
const MESSENGER = getAddress(address(randomStream('chain-party', 'messenger'), 'evm'));

const BURN = parseAbi([
  'function depositForBurn(uint256 amount, uint32 destinationDomain, bytes32 mintRecipient, address burnToken)',
]);

/** The issuer's own numbers of chains. */
const DOMAINS: Readonly<Record<number, number>> = { 1: 0, 10: 2, 42161: 3, 1399811149: 5, 8453: 6 };

/** True for a route that the issuer of its token can carry by burn and mint: from an EVM chain, of USDC, to a chain with a domain. */
export function isCarriedByIssuer({ source, destination }: { source: End; destination: End }): boolean {
  const ends = [source, destination];
  const isUsdc = ends.every(({ chain, token }) => tokenAt(chain.chainId, token).symbol === 'USDC');
  return isUsdc && source.chain.kind === 'evm' && DOMAINS[destination.chain.chainId] !== undefined;
}

type End = { chain: Chain; token: string };

/** Creates the maker of intents. The seed determines contracts and salts, which are the same on every chain of a kind. */
export function createIntents({ seed, timeScale }: { seed: number; timeScale: number }): Intents {
  function contractsOf(kind: ChainKind): Contracts {
    const named = (name: string): string =>
      address(kind === 'evm' ? randomStream(seed, name) : randomStream(seed, name, kind), kind);
    const portal = kind === 'evm' ? getAddress(PORTAL_ADDRESS) : named('portal');
    return { portal, prover: named('prover') };
  }

  return {
    contractsOf,
    make(order, contracts = {}) {
      const { name, source, destination, recipient, creator, isLocal, expiresAt } = order;
      const at = (seconds: number): number => Math.ceil(expiresAt + seconds / timeScale);
      const end = isLocal ? source : destination;
      const { kind } = end.chain;
      const { amount } = destination;
      const route: IntentRoute = {
        salt: bytesToHex(bytes(randomStream(seed, 'salt', name), 32)),
        destination: end.chain.chainId,
        deadline: at(ROUTE_SECONDS),
        portal: (kind === 'evm' ? contracts.portal : undefined) ?? contractsOf(kind).portal,
        nativeAmount: '0',
        tokens: [{ token: end.token, amount }],
        calls: isLocal
          ? [{ target: MESSENGER, data: burnData(order), value: '0' }]
          : [{ target: end.token, data: transferData({ kind, recipient, amount }), value: '0' }],
      };
      const reward: IntentReward = {
        deadline: at(REWARD_SECONDS),
        creator,
        prover:
          (source.chain.kind === 'evm' ? contracts.prover : undefined) ??
          contractsOf(source.chain.kind).prover,
        nativeAmount: '0',
        tokens: [{ token: source.token, amount: source.amount }],
      };
      const encodedRoute = encodeRoute(route, kind);
      const rewardHash = keccak256(encodeReward(reward, source.chain.kind));
      const hash = keccak256(
        encodePacked(
          ['uint64', 'bytes32', 'bytes32'],
          [BigInt(route.destination), keccak256(encodedRoute), rewardHash],
        ),
      );
      return { hash, route, reward, encodedRoute };
    },
    funding({ hash, route, reward, encodedRoute }) {
      const to = getAddress(contractsOf('evm').portal);
      return {
        to,
        data: encodeFunctionData({
          abi: PORTAL_ABI,
          functionName: 'publishAndFund',
          args: [BigInt(route.destination), encodedRoute, evmReward(reward), false],
        }),
        vault: getContractAddress({
          opcode: 'CREATE2',
          from: to,
          salt: hash,
          bytecodeHash: VAULT_CREATION_HASH,
        }),
      };
    },
  };
}

/** Data of the call that burns the tokens of a local intent for the recipient at the destination. */
function burnData({ source, destination, recipient }: IntentOrder): Hex {
  const { chainId, kind } = destination.chain;
  const mintRecipient = pad(bytesToHex(addressBytes(recipient, kind)), { size: 32 });
  return encodeFunctionData({
    abi: BURN,
    functionName: 'depositForBurn',
    args: [BigInt(destination.amount), DOMAINS[chainId] ?? 0, mintRecipient, evmAddress(source.token)],
  });
}

/** Data of the call that pays the recipient: an ERC-20 transfer, or on Solana `TransferChecked` of the token program. */
function transferData({
  kind,
  recipient,
  amount,
}: {
  kind: ChainKind;
  recipient: string;
  amount: string;
}): Hex {
  if (kind === 'solana') {
    const data = Buffer.alloc(10);
    data.writeUInt8(TRANSFER_CHECKED, 0);
    data.writeBigUInt64LE(BigInt(amount), 1);
    data.writeUInt8(DECIMALS, 9);
    return toHex(data);
  }
  const args = [hex20(recipient, kind), BigInt(amount)] as const;
  return encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args });
}

/** Number of the instruction in Solana's token program. */
const TRANSFER_CHECKED = 12;

/** All tokens of the sandbox have as many. */
const DECIMALS = 6;

function encodeRoute(route: IntentRoute, kind: ChainKind): Hex {
  const { salt, nativeAmount, tokens, calls } = route;
  const numbers = { salt, deadline: BigInt(route.deadline), nativeAmount: BigInt(nativeAmount) };
  if (kind === 'solana') {
    const portal = hex32(route.portal);
    const moved = tokens.map(({ token, amount }) => ({ token: hex32(token), amount: BigInt(amount) }));
    const done = calls.map(({ target, data, value }) => ({
      target: hex32(target),
      data,
      value: BigInt(value),
    }));
    return encodeAbiParameters(SOLANA_ROUTE_ABI, [{ ...numbers, portal, tokens: moved, calls: done }]);
  }
  const portal = hex20(route.portal, kind);
  const moved = tokens.map(({ token, amount }) => ({ token: hex20(token, kind), amount: BigInt(amount) }));
  const done = calls.map(({ target, data, value }) => ({
    target: hex20(target, kind),
    data,
    value: BigInt(value),
  }));
  return encodeAbiParameters(ROUTE_ABI, [{ ...numbers, portal, tokens: moved, calls: done }]);
}

function encodeReward(reward: IntentReward, kind: ChainKind): Hex {
  if (kind !== 'solana') return encodeAbiParameters(REWARD_ABI, [evmReward(reward)]);
  const tokens = reward.tokens.map(({ token, amount }) => ({ token: hex32(token), amount: BigInt(amount) }));
  return encodeAbiParameters(SOLANA_REWARD_ABI, [
    {
      deadline: BigInt(reward.deadline),
      creator: hex32(reward.creator),
      prover: hex32(reward.prover),
      nativeAmount: BigInt(reward.nativeAmount),
      tokens,
    },
  ]);
}

function evmReward({ deadline, creator, prover, nativeAmount, tokens }: IntentReward) {
  return {
    deadline: BigInt(deadline),
    creator: evmAddress(creator),
    prover: evmAddress(prover),
    nativeAmount: BigInt(nativeAmount),
    tokens: tokens.map(({ token, amount }) => ({ token: evmAddress(token), amount: BigInt(amount) })),
  };
}

/** An address of an EVM chain or of Tron as 20 bytes. */
function hex20(text: string, kind: 'evm' | 'tron'): Hex {
  return bytesToHex(addressBytes(text, kind));
}

/** An address of Solana as 32 bytes. */
function hex32(text: string): Hex {
  return bytesToHex(addressBytes(text, 'solana'));
}

function evmAddress(text: string): Hex {
  return hex20(text, 'evm');
}
