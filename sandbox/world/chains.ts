/** The kind of a chain decides the form of its addresses and transaction hashes. */
export type ChainKind = 'evm' | 'solana' | 'tron';

/** One chain of the sandbox. A transaction hash follows `explorerUrl`. */
export type Chain = { chainId: number; name: string; kind: ChainKind; explorerUrl: string };

/** One token of one chain; amounts are integers of 10^-decimals. */
export type Token = { chainId: number; address: string; symbol: string; name: string; decimals: number };

export const CHAINS: readonly Chain[] = [
  { chainId: 1, name: 'Ethereum', kind: 'evm', explorerUrl: 'https://etherscan.io/tx/' },
  { chainId: 10, name: 'Optimism', kind: 'evm', explorerUrl: 'https://optimistic.etherscan.io/tx/' },
  { chainId: 8453, name: 'Base', kind: 'evm', explorerUrl: 'https://basescan.org/tx/' },
  { chainId: 42161, name: 'Arbitrum One', kind: 'evm', explorerUrl: 'https://arbiscan.io/tx/' },
  { chainId: 1399811149, name: 'Solana', kind: 'solana', explorerUrl: 'https://solscan.io/tx/' },
  { chainId: 728126428, name: 'Tron', kind: 'tron', explorerUrl: 'https://tronscan.org/#/transaction/' },
];

const usdc = (chainId: number, address: string): Token => ({
  chainId,
  address,
  symbol: 'USDC',
  name: 'USD Coin',
  decimals: 6,
});

const usdt = (chainId: number, address: string): Token => ({
  chainId,
  address,
  symbol: 'USDT',
  name: 'Tether USD',
  decimals: 6,
});

export const TOKENS: readonly Token[] = [
  usdc(1, '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48'),
  usdt(1, '0xdAC17F958D2ee523a2206206994597C13D831ec7'),
  usdc(10, '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85'),
  usdt(10, '0x94b008aA00579c1307B0EF2c499aD98a8ce58e58'),
  usdc(8453, '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'),
  usdc(42161, '0xaf88d065e77c8cC2239327C5EDb3A432268e5831'),
  usdt(42161, '0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9'),
  usdc(1399811149, 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'),
  usdt(1399811149, 'Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB'),
  usdt(728126428, 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'),
];

export function chainsOfKind(kind: ChainKind): readonly Chain[] {
  return CHAINS.filter((chain) => chain.kind === kind);
}

export function tokensOf(chain: Chain): readonly Token[] {
  return TOKENS.filter((token) => token.chainId === chain.chainId);
}

/** Finds a listed token. Throws for an unlisted one. */
export function tokenAt(chainId: number, address: string): Token {
  const token = TOKENS.find((candidate) => candidate.chainId === chainId && candidate.address === address);
  if (token === undefined) throw new Error(`no token ${address} on chain ${chainId}`);
  return token;
}
