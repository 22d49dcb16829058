import { base58 } from '@scure/base';
import {
  type Abi,
  bytesToHex,
  encodeAbiParameters,
  encodeFunctionData,
  encodePacked,
  getCreate2Address,
  type Hex,
  keccak256,
  parseAbi,
  parseAbiParameters,
} from 'viem';
import type { Leg } from '../world/plan.ts';
import { VAULT_CREATION_HASH } from './code.ts';

/** The contract at which intents are published, funded and fulfilled: at the same address on every EVM chain. */
export const PORTAL_ADDRESS = '0x00000000000000000000000000000000f0111ed5';

/** The event of a fulfilment, as a config pins it. */
export const FULFILMENT_EVENT = 'event IntentFulfilled(bytes32 indexed intentHash, bytes32 indexed claimant)';

const REWARD =
  'struct Reward { uint64 deadline; address creator; address prover; uint256 nativeAmount; TokenAmount[] tokens; }';
const TOKEN_AMOUNT = 'struct TokenAmount { address token; uint256 amount; }';

/** Members of the portal that a client calls or reads. */
export const PORTAL_ABI = parseAbi([
  TOKEN_AMOUNT,
  REWARD,
  'struct Call { address target; bytes data; uint256 value; }',
  'struct Route { bytes32 salt; uint64 deadline; address portal; uint256 nativeAmount; TokenAmount[] tokens; Call[] calls; }',
  'function getIntentHash(uint64 destination, bytes route, Reward reward) pure returns (bytes32 intentHash, bytes32 routeHash, bytes32 rewardHash)',
  'function intentVaultAddress(uint64 destination, bytes route, Reward reward) view returns (address)',
  'function publishAndFund(uint64 destination, bytes route, Reward reward, bool allowPartial) payable returns (bytes32 intentHash, address vault)',
  'function fulfill(bytes32 intentHash, Route route, bytes32 rewardHash, bytes32 claimant) payable',
  'function refund(uint64 destination, bytes32 routeHash, Reward reward)',
  'event IntentPublished(bytes32 indexed intentHash, uint64 destination, bytes route, address indexed creator, address indexed prover, uint64 rewardDeadline, uint256 rewardNativeAmount, TokenAmount[] rewardTokens)',
  'event IntentFunded(bytes32 indexed intentHash, address indexed funder, bool complete)',
  'event IntentRefunded(bytes32 indexed intentHash, address indexed refundee)',
  FULFILMENT_EVENT,
  'error IntentAlreadyExists(bytes32 intentHash)',
  'error InsufficientFunds(bytes32 intentHash)',
  'error InvalidHash(bytes32 expectedHash)',
  'error IntentExpired()',
  'error IntentAlreadyFulfilled(bytes32 intentHash)',
  'error IntentNotExpired(bytes32 intentHash)',
]) satisfies Abi;

/** The contents of `encodedRoute` where the destination's addresses have 20 bytes. */
export const ROUTE_PARAMETERS = parseAbiParameters([
  'Route route',
  'struct Route { bytes32 salt; uint64 deadline; address portal; uint256 nativeAmount; TokenAmount[] tokens; Call[] calls; }',
  TOKEN_AMOUNT,
  'struct Call { address target; bytes data; uint256 value; }',
]);

/** The contents of `encodedRoute` where the destination's addresses have 32 bytes, as on Solana. */
export const WIDE_ROUTE_PARAMETERS = parseAbiParameters([
  'Route route',
  'struct Route { bytes32 salt; uint64 deadline; bytes32 portal; uint256 nativeAmount; TokenAmount[] tokens; Call[] calls; }',
  'struct TokenAmount { bytes32 token; uint256 amount; }',
  'struct Call { bytes32 target; bytes data; uint256 value; }',
]);

const REWARD_PARAMETERS = parseAbiParameters(['Reward reward', REWARD, TOKEN_AMOUNT]);

const TRANSFER = parseAbi(['function transfer(address to, uint256 amount) returns (bool)']);
const WIDE_TRANSFER = parseAbiParameters('bytes32 to, uint256 amount');

/** The terms of an intent from an EVM chain. Times are Unix seconds; `salt` makes it unlike others with its terms. */
export type IntentTerms = {
  salt: Hex;
  source: Leg;
  destination: Leg;
  recipient: string;
  /** Receives the refund. */
  creator: string;
  prover: Hex;
  routeDeadline: number;
  rewardDeadline: number;
};

export type Reward = {
  deadline: bigint;
  creator: Hex;
  prover: Hex;
  nativeAmount: bigint;
  tokens: readonly { token: Hex; amount: bigint }[];
};

/** An intent as the portal reads it. `data` is the call that publishes and funds it from the reward's tokens. */
export type PortalIntent = {
  destination: bigint;
  encodedRoute: Hex;
  reward: Reward;
  intentHash: Hex;
  /** Where the reward is held; tokens that arrive there before count towards it. */
  vault: Hex;
  data: Hex;
};

/** Describes an intent as the portal reads it. */
export function portalIntent(terms: IntentTerms): PortalIntent {
  const { source, creator, prover, rewardDeadline } = terms;
  const destination = BigInt(terms.destination.chain.chainId);
  const encodedRoute = encodeRoute(terms);
  const reward: Reward = {
    deadline: BigInt(rewardDeadline),
    creator: narrow(creator),
    prover,
    nativeAmount: 0n,
    tokens: [{ token: narrow(source.token), amount: BigInt(source.amount) }],
  };
  const rewardHash = keccak256(encodeAbiParameters(REWARD_PARAMETERS, [reward]));
  const intentHash = keccak256(
    encodePacked(['uint64', 'bytes32', 'bytes32'], [destination, keccak256(encodedRoute), rewardHash]),
  );
  return {
    destination,
    encodedRoute,
    reward,
    intentHash,
    vault: getCreate2Address({
      from: PORTAL_ADDRESS,
      salt: intentHash,
      bytecodeHash: VAULT_CREATION_HASH,
    }),
    data: encodeFunctionData({
      abi: PORTAL_ABI,
      functionName: 'publishAndFund',
      args: [destination, encodedRoute, reward, false],
    }),
  };
}

function encodeRoute({ salt, routeDeadline, destination, recipient }: IntentTerms): Hex {
  const { chain, token, amount: text } = destination;
  const amount = BigInt(text);
  const head = { salt, deadline: BigInt(routeDeadline), nativeAmount: 0n };
  if (chain.kind !== 'solana') {
    const data = encodeFunctionData({
      abi: TRANSFER,
      functionName: 'transfer',
      args: [narrow(recipient), amount],
    });
    const calls = [{ target: narrow(token), data, value: 0n }];
    const tokens = [{ token: narrow(token), amount }];
    return encodeAbiParameters(ROUTE_PARAMETERS, [{ ...head, portal: PORTAL_ADDRESS, tokens, calls }]);
  }
  const data = encodeAbiParameters(WIDE_TRANSFER, [wide(recipient), amount]);
  const calls = [{ target: wide(token), data, value: 0n }];
  const tokens = [{ token: wide(token), amount }];
  const portal: Hex = `0x${PORTAL_ADDRESS.slice(2).padStart(64, '0')}`;
  return encodeAbiParameters(WIDE_ROUTE_PARAMETERS, [{ ...head, portal, tokens, calls }]);
}

/** An address of 20 bytes: of an EVM chain, or of Tron without its prefix and check bytes. */
function narrow(address: string): Hex {
  return address.startsWith('0x')
    ? `0x${address.slice(2).toLowerCase()}`
    : bytesToHex(base58.decode(address).slice(1, 21));
}

function wide(address: string): Hex {
  return bytesToHex(base58.decode(address));
}
