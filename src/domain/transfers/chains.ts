import { foldHex } from '../subjects/subject.ts';

/** A chain for display. `explorer`: address of a transaction's page, with `{txHash}` for its hash. */
export type Chain = { name: string; explorer: string | null };

/** A token for display. */
export type Token = { symbol: string; decimals: number };

/**
 * Names and explorers of common chains by chain id, only for display: an unknown chain is shown by its id. The ids of
 * Solana and Tron are those that cross-chain services commonly use for them.
 */
const COMMON_CHAINS: ReadonlyMap<string, Chain> = new Map([
  ['1', { name: 'Ethereum', explorer: 'https://etherscan.io/tx/{txHash}' }],
  ['10', { name: 'Optimism', explorer: 'https://optimistic.etherscan.io/tx/{txHash}' }],
  ['56', { name: 'BNB Chain', explorer: 'https://bscscan.com/tx/{txHash}' }],
  ['130', { name: 'Unichain', explorer: 'https://uniscan.xyz/tx/{txHash}' }],
  ['137', { name: 'Polygon', explorer: 'https://polygonscan.com/tx/{txHash}' }],
  ['146', { name: 'Sonic', explorer: 'https://sonicscan.org/tx/{txHash}' }],
  ['480', { name: 'World Chain', explorer: 'https://worldscan.org/tx/{txHash}' }],
  ['5000', { name: 'Mantle', explorer: 'https://mantlescan.xyz/tx/{txHash}' }],
  ['8453', { name: 'Base', explorer: 'https://basescan.org/tx/{txHash}' }],
  ['42161', { name: 'Arbitrum', explorer: 'https://arbiscan.io/tx/{txHash}' }],
  ['42220', { name: 'Celo', explorer: 'https://celoscan.io/tx/{txHash}' }],
  ['43114', { name: 'Avalanche', explorer: 'https://snowtrace.io/tx/{txHash}' }],
  ['57073', { name: 'Ink', explorer: 'https://explorer.inkonchain.com/tx/{txHash}' }],
  ['59144', { name: 'Linea', explorer: 'https://lineascan.build/tx/{txHash}' }],
  ['534352', { name: 'Scroll', explorer: 'https://scrollscan.com/tx/{txHash}' }],
  ['1399811149', { name: 'Solana', explorer: 'https://solscan.io/tx/{txHash}' }],
  ['728126428', { name: 'Tron', explorer: 'https://tronscan.org/#/transaction/{txHash}' }],
  ['11155111', { name: 'Sepolia', explorer: 'https://sepolia.etherscan.io/tx/{txHash}' }],
  ['11155420', { name: 'OP Sepolia', explorer: 'https://sepolia-optimism.etherscan.io/tx/{txHash}' }],
  ['84532', { name: 'Base Sepolia', explorer: 'https://sepolia.basescan.org/tx/{txHash}' }],
  ['421614', { name: 'Arbitrum Sepolia', explorer: 'https://sepolia.arbiscan.io/tx/{txHash}' }],
]);

/** Sources of the addresses and decimals of tokens. A test compares the first with that list. */
export const TOKEN_SOURCES = {
  list: 'https://www.npmjs.com/package/@uniswap/default-token-list',
  circle: 'https://developers.circle.com/stablecoins/usdc-contract-addresses',
  tether: 'https://tether.to/en/supported-protocols/',
  mantle: 'https://github.com/mantlenetworkio/mantle-token-lists',
  linea: 'https://github.com/Consensys/linea-token-list',
  scroll: 'https://github.com/scroll-tech/token-list',
  explorer: 'https://basescan.org/token/0xfde4c96c8593536e31f229ea8f37b2ada2699bb2',
} as const;

type CommonToken = {
  chainId: string;
  address: string;
  token: Token;
  source: keyof typeof TOKEN_SOURCES;
};

const USDC: Token = { symbol: 'USDC', decimals: 6 };
const USDC_BRIDGED: Token = { symbol: 'USDC.e', decimals: 6 };
const USDT: Token = { symbol: 'USDT', decimals: 6 };
const USDT0: Token = { symbol: 'USDT0', decimals: 6 };

/** Common stablecoins as [chain id, address as published, token, source]. */
const ROWS: readonly (readonly [string, string, Token, keyof typeof TOKEN_SOURCES])[] = [
  ['1', '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48', USDC, 'list'],
  ['1', '0xdAC17F958D2ee523a2206206994597C13D831ec7', USDT, 'list'],
  ['10', '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85', USDC, 'list'],
  ['10', '0x7F5c764cBc14f9669B88837ca1490cCa17c31607', USDC_BRIDGED, 'list'],
  ['10', '0x94b008aA00579c1307B0EF2c499aD98a8ce58e58', USDT, 'list'],
  ['10', '0x01bFF41798a0BcF287b996046Ca68b395DbC1071', USDT0, 'list'],
  ['56', '0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d', { symbol: 'USDC', decimals: 18 }, 'list'],
  ['56', '0x55d398326f99059fF775485246999027B3197955', { symbol: 'USDT', decimals: 18 }, 'list'],
  ['130', '0x078D782b760474a361dDA0AF3839290b0EF57AD6', USDC, 'list'],
  ['130', '0x9151434b16b9763660705744891fA906F660EcC5', USDT0, 'list'],
  ['137', '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359', USDC, 'list'],
  ['137', '0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174', USDC_BRIDGED, 'list'],
  ['137', '0xc2132D05D31c914a87C6611C10748AEb04B58e8F', USDT, 'list'],
  ['146', '0x29219dd400f2Bf60E5a23d13Be72B486D4038894', USDC, 'circle'],
  ['480', '0x79A02482A880bCE3F13e09Da970dC34db4CD24d1', USDC, 'circle'],
  ['5000', '0x09Bc4E0D864854c6aFB6eB9A9cdF58aC190D0dF9', USDC, 'mantle'],
  ['5000', '0x201EBa5CC46D216Ce6DC03F6a759e8E766e956aE', USDT, 'mantle'],
  ['8453', '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', USDC, 'list'],
  ['8453', '0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2', USDT, 'explorer'],
  ['42161', '0xaf88d065e77c8cC2239327C5EDb3A432268e5831', USDC, 'list'],
  ['42161', '0xFF970A61A04b1cA14834A43f5dE4533eBDDB5CC8', USDC_BRIDGED, 'list'],
  ['42161', '0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9', USDT, 'list'],
  ['42220', '0xcebA9300f2b948710d2653dD7B07f33A8B32118C', USDC, 'list'],
  ['42220', '0x48065fbBE25f71C9282ddf5e1cD6D6A887483D5e', USDT, 'list'],
  ['43114', '0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E', USDC, 'list'],
  ['43114', '0x9702230A8Ea53601f5cD2dc00fDBc13d4dF4A8c7', USDT, 'list'],
  ['57073', '0x0200C29006150606B650577BBE7B6248F58470c1', USDT0, 'list'],
  ['59144', '0x176211869cA2b568f2A7D4EE941E073a821EE1ff', USDC, 'linea'],
  ['59144', '0xA219439258ca9da29E9Cc4cE5596924745e12B93', USDT, 'linea'],
  ['534352', '0x06eFdBFf2a14a7c8E15944D1F4A48F9F95F663A4', USDC, 'scroll'],
  ['1399811149', 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', USDC, 'list'],
  ['1399811149', 'Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB', USDT, 'list'],
  ['728126428', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', USDT, 'tether'],
  ['11155111', '0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238', USDC, 'circle'],
  ['11155420', '0x5fd84259d66Cd46123540766Be93DFE6D43130D7', USDC, 'circle'],
  ['84532', '0x036CbD53842c5426634e7929541eC2318f3dCF7e', USDC, 'circle'],
  ['421614', '0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d', USDC, 'circle'],
];

export const COMMON_TOKENS: readonly CommonToken[] = ROWS.map(([chainId, address, token, source]) => ({
  chainId,
  address,
  token,
  source,
}));

/** Names of chains and tokens, and explorers. A token with uncertain decimals is null: its amounts are shown in base units. */
export type Directory = {
  chain(chainId: string): Chain | null;
  token(chainId: string, address: string): Token | null;
};

/** A chain of the config; `null` leaves the known value. */
export type AddedChain = { chainId: string; name: string | null; explorer: string | null };

/** A token of the config. */
export type AddedToken = Token & { chainId: string; address: string };

const BUILT_IN: ReadonlyMap<string, Token> = new Map(
  COMMON_TOKENS.map(({ chainId, address, token }) => [tokenKey(chainId, address), token]),
);

/** Built-in names of common chains and stablecoins. */
export const COMMON_NAMES: Directory = {
  chain: (chainId) => COMMON_CHAINS.get(chainId) ?? null,
  token: (chainId, address) => BUILT_IN.get(tokenKey(chainId, address)) ?? null,
};

/** Adds the chains and tokens of a config to a directory; the config's take precedence. */
export function extendDirectory(
  more: { chains: readonly AddedChain[]; tokens: readonly AddedToken[] },
  base: Directory = COMMON_NAMES,
): Directory {
  const chains = new Map(more.chains.map((chain) => [chain.chainId, chain]));
  const tokens = new Map(
    more.tokens.map(({ chainId, address, symbol, decimals }) => [
      tokenKey(chainId, address),
      { symbol, decimals },
    ]),
  );
  return {
    chain: (chainId) => {
      const added = chains.get(chainId);
      const listed = base.chain(chainId);
      if (added === undefined) return listed;
      return {
        name: added.name ?? listed?.name ?? unnamed(chainId),
        explorer: added.explorer ?? listed?.explorer ?? null,
      };
    },
    token: (chainId, address) => tokens.get(tokenKey(chainId, address)) ?? base.token(chainId, address),
  };
}

/** The name of a chain, or `chain <id>`. */
export function chainName(chainId: string, directory: Directory = COMMON_NAMES): string {
  return directory.chain(chainId)?.name ?? unnamed(chainId);
}

/** Explorer address of a transaction; null for a chain without explorer or a text that is no transaction hash. */
export function explorerTxUrl(chainId: string, txHash: string, directory = COMMON_NAMES): string | null {
  const explorer = directory.chain(chainId)?.explorer ?? null;
  if (explorer === null || !/^(0x)?[0-9A-Za-z]{43,90}$/.test(txHash)) return null;
  return explorer.replace('{txHash}', txHash);
}

/** Key of a token: EVM addresses in lower case, base58 ones unchanged. */
export function tokenKey(chainId: string, address: string): string {
  return `${chainId}:${foldHex(address)}`;
}

function unnamed(chainId: string): string {
  return `chain ${chainId}`;
}
