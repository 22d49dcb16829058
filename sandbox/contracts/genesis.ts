import {
  encodeAbiParameters,
  type Hex,
  keccak256,
  numberToHex,
  pad,
  parseAbi,
  size,
  stringToHex,
} from 'viem';
import { TOKENS, type Token } from '../world/chains.ts';
import { PORTAL_CODE, TOKEN_CODE } from './code.ts';
import { PORTAL_ADDRESS } from './portal.ts';

/** Members of a token that a client calls or reads. */
export const TOKEN_ABI = parseAbi([
  'function name() view returns (string)',
  'function symbol() view returns (string)',
  'function decimals() view returns (uint8)',
  'function version() view returns (string)',
  'function totalSupply() view returns (uint256)',
  'function balanceOf(address owner) view returns (uint256)',
  'function allowance(address owner, address spender) view returns (uint256)',
  'function nonces(address owner) view returns (uint256)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function transfer(address to, uint256 value) returns (bool)',
  'function approve(address spender, uint256 value) returns (bool)',
  'function transferFrom(address from, address to, uint256 value) returns (bool)',
  'function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event Approval(address indexed owner, address indexed spender, uint256 value)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
]);

/** A contract that is there before any transaction. */
export type PlacedContract = { address: Hex; code: Hex; storage: readonly { slot: Hex; value: Hex }[] };

// The first storage slots of Token.sol.
const NAME = 0;
const SYMBOL = 1;
const SUPPLY = 2;
const BALANCES = 3;
const NONCES = 5;

/** The slot of a token that holds its supply. */
export const SUPPLY_SLOT = numberToHex(SUPPLY, { size: 32 });

/** The contracts of a chain: the portal, and its tokens at their listed addresses. */
export function placedContracts(chainId: number): PlacedContract[] {
  const tokens = TOKENS.filter((token) => token.chainId === chainId).map(
    (token): PlacedContract => ({
      address: tokenAddress(token),
      code: TOKEN_CODE,
      storage: [
        { slot: numberToHex(NAME, { size: 32 }), value: shortString(token.name) },
        { slot: numberToHex(SYMBOL, { size: 32 }), value: shortString(token.symbol) },
      ],
    }),
  );
  return [{ address: PORTAL_ADDRESS, code: PORTAL_CODE, storage: [] }, ...tokens];
}

/** The slot of a token that holds the balance of an address. */
export function balanceSlot(owner: Hex): Hex {
  return slotOf(owner, BALANCES);
}

/** The slot of a token that holds the number of an owner's permits. */
export function nonceSlot(owner: Hex): Hex {
  return slotOf(owner, NONCES);
}

function slotOf(owner: Hex, mapping: number): Hex {
  return keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [owner, BigInt(mapping)]));
}

/** The address of a token of an EVM chain, in lower case. */
export function tokenAddress({ address }: Token): Hex {
  return `0x${address.slice(2).toLowerCase()}`;
}

/** A string of up to 31 bytes as Solidity stores it: its bytes, and twice their number in the last one. */
function shortString(text: string): Hex {
  const bytes = stringToHex(text);
  const length = numberToHex(2 * size(bytes), { size: 1 });
  return `${pad(bytes, { size: 31, dir: 'right' })}${length.slice(2)}` as const;
}
