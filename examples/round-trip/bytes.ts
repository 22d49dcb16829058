import {
  type Address,
  concat,
  decodeAbiParameters,
  decodeFunctionData,
  encodeAbiParameters,
  erc20Abi,
  getAbiItem,
  type Hex,
  isAddress,
  isHex,
  keccak256,
  numberToHex,
  parseAbi,
  parseAbiParameters,
} from 'viem';
import type { Quote } from '../../src/upstream/wire/quote.ts';

/** The funding transaction of a quote, ready to be sent. `value` is wei. */
export type Funding = { to: Address; data: Hex; value: bigint };

/** The request that the bytes must agree with. Amounts are base units. */
export type Requested = {
  source: { chainId: number; token: Address; amount: bigint };
  destination: { chainId: number; token: Address; recipient: Address };
  refundRecipient: Address;
};

const PORTAL = parseAbi([
  'struct TokenAmount { address token; uint256 amount; }',
  'struct Reward { uint64 deadline; address creator; address prover; uint256 nativeAmount; TokenAmount[] tokens; }',
  'function publishAndFund(uint64 destination, bytes route, Reward reward, bool allowPartial) payable',
]);

const REWARD = [getAbiItem({ abi: PORTAL, name: 'publishAndFund' }).inputs[2]] as const;

const ROUTE = parseAbiParameters([
  'Route route',
  'struct TokenAmount { address token; uint256 amount; }',
  'struct Call { address target; bytes data; uint256 value; }',
  'struct Route { bytes32 salt; uint64 deadline; address portal; uint256 nativeAmount; TokenAmount[] tokens; Call[] calls; }',
]);

/**
 * Decodes the transaction that funds a quote, and compares its bytes with the request. The quote's signature covers the
 * hash of the intent alone: so the hash of the bytes must be that one, and their terms the requested ones. Throws at the
 * first difference.
 */
export function checkedFunding(quote: Quote, requested: Requested): Funding {
  const { to, data, value, chainId } = quote.transaction ?? {};
  if (typeof to !== 'string' || !isAddress(to)) throw mismatch('to', to, 'an EVM address');
  if (!isHex(data)) throw mismatch('data', data, 'hex');
  expectSame('chainId', chainId, requested.source.chainId);
  expectSame('value', value, 0);
  const [destination, encodedRoute, reward, allowPartial] = decodeFunctionData({ abi: PORTAL, data }).args;
  const [route] = decodeAbiParameters(ROUTE, encodedRoute);
  const rewardHash = keccak256(encodeAbiParameters(REWARD, [reward]));
  const chain = numberToHex(destination, { size: 8 });
  expectSame('intentHash', keccak256(concat([chain, keccak256(encodedRoute), rewardHash])), quote.intentHash);

  expectSame('destination', destination, requested.destination.chainId);
  expectSame('route.portal', route.portal, to);
  expectSame('allowPartial', allowPartial, false);
  const [given, ...othersGiven] = reward.tokens;
  expectSame('reward.tokens[0].token', given?.token, requested.source.token);
  expectSame('reward.tokens[0].amount', given?.amount, requested.source.amount);
  expectSame('reward.tokens.length', 1 + othersGiven.length, 1);
  expectSame('reward.nativeAmount', reward.nativeAmount, 0);
  // Whoever created an intent gets its reward back when nobody fills it.
  expectSame('reward.creator', reward.creator, requested.refundRecipient);

  const [call, ...otherCalls] = route.calls;
  if (call === undefined) throw mismatch('route.calls[0]', call, 'the payment of the recipient');
  expectSame('route.calls.length', 1 + otherCalls.length, 1);
  expectSame('route.calls[0].target', call.target, requested.destination.token);
  const { functionName, args } = decodeFunctionData({ abi: erc20Abi, data: call.data });
  if (functionName !== 'transfer') throw mismatch('route.calls[0].data', functionName, 'transfer');
  const [recipient, paid] = args;
  expectSame('the paid recipient', recipient, requested.destination.recipient);
  expectSame('the paid amount', paid, quote.destination.amountOut ?? '');
  return { to, data, value: 0n };
}

/** Throws unless both are the same, in any case of letters. */
export function expectSame(field: string, found: unknown, expected: unknown): void {
  if (String(found).toLowerCase() === String(expected).toLowerCase()) return;
  throw mismatch(field, found, `${expected} as requested`);
}

function mismatch(field: string, found: unknown, expected: string): Error {
  return new Error(`${field}: found ${found}, expected ${expected}`);
}
