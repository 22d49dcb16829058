import { parseAbi } from 'viem';

/** The contract at which intents are published, funded and fulfilled: at the same address on every EVM chain. */
export const PORTAL_ADDRESS = '0x00000000000000000000000000000000f0111ed5';

/** The event of a fulfilment, as a config pins it. */
export const FULFILMENT_EVENT = 'event IntentFulfilled(bytes32 indexed intentHash, bytes32 indexed claimant)';

/** The structs of Portal.sol. */
export const PORTAL_STRUCTS = [
  'struct TokenAmount { address token; uint256 amount; }',
  'struct Call { address target; bytes data; uint256 value; }',
  'struct Route { bytes32 salt; uint64 deadline; address portal; uint256 nativeAmount; TokenAmount[] tokens; Call[] calls; }',
  'struct Reward { uint64 deadline; address creator; address prover; uint256 nativeAmount; TokenAmount[] tokens; }',
] as const;

/** Members of the portal that a client calls or reads. */
export const PORTAL_ABI = parseAbi([
  ...PORTAL_STRUCTS,
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
]);
