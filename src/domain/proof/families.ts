/** How a chain is asked, and how its addresses are written. */
export type ChainFamily = 'evm' | 'solana';

/** What `getGenesisHash` answers on Solana, by the id that cross-chain services use for it. */
export const SOLANA_GENESIS: ReadonlyMap<string, string> = new Map([
  ['1399811149', '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d'],
]);

/** Chains that are no EVM chain and not Solana, by the ids that cross-chain services use for them. */
const OTHERS: ReadonlyMap<string, string> = new Map([
  ['728126428', 'Tron'],
  ['2494104990', 'Tron Shasta'],
  ['3448148188', 'Tron Nile'],
]);

/** How a chain is asked; null for one whose transactions cannot be checked. */
export function chainFamily(chainId: string): ChainFamily | null {
  if (SOLANA_GENESIS.has(chainId)) return 'solana';
  return OTHERS.has(chainId) || !/^[1-9]\d{0,15}$/.test(chainId) ? null : 'evm';
}

/** True when a text is an address of an EVM chain, in any case of letters. */
export function isEvmAddress(text: string): boolean {
  return /^0x[0-9a-fA-F]{40}$/.test(text);
}

/** How wallets write a chain's own money where a token's address is requested; it moves without a log. */
const NATIVE: ReadonlySet<string> = new Set([
  '0x0000000000000000000000000000000000000000',
  '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee',
  '11111111111111111111111111111111',
]);

/** True when a token's address stands for the chain's own money. */
export function isNativeToken(address: string): boolean {
  return NATIVE.has(address.startsWith('0x') ? address.toLowerCase() : address);
}
