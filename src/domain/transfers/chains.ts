import { foldHex } from '../subjects/subject.ts';
import { type Chain, COMMON_CHAINS, COMMON_TOKENS, type Token } from './common-tokens.ts';

/**
 * What readers call chains and tokens, and where transactions can be looked at. A token is known only where its
 * decimals are certain: `null` has its amounts reported in base units.
 */
export type Directory = {
  chain(chainId: string): Chain | null;
  token(chainId: string, address: string): Token | null;
};

/** A chain as the config names it: `null` leaves what is known otherwise. */
export type AddedChain = { chainId: string; name: string | null; explorer: string | null };

/** A token as the config names it. */
export type AddedToken = Token & { chainId: string; address: string };

const BUILT_IN: ReadonlyMap<string, Token> = new Map(
  COMMON_TOKENS.map(({ chainId, address, token }) => [tokenKey(chainId, address), token]),
);

/** The directory of common chains and stablecoins alone. */
export const COMMON: Directory = {
  chain: (chainId) => COMMON_CHAINS.get(chainId) ?? null,
  token: (chainId, address) => BUILT_IN.get(tokenKey(chainId, address)) ?? null,
};

/** A directory with the chains and tokens of a config, which count where both have them. */
export function extendDirectory(
  more: { chains: readonly AddedChain[]; tokens: readonly AddedToken[] },
  base: Directory = COMMON,
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
      const known = base.chain(chainId);
      if (added === undefined) return known;
      return {
        name: added.name ?? known?.name ?? unnamed(chainId),
        explorer: added.explorer ?? known?.explorer ?? null,
      };
    },
    token: (chainId, address) => tokens.get(tokenKey(chainId, address)) ?? base.token(chainId, address),
  };
}

/** The name of a chain, or `chain <id>`. */
export function chainName(chainId: string, directory: Directory = COMMON): string {
  return directory.chain(chainId)?.name ?? unnamed(chainId);
}

/** The place where a transaction can be looked at; null for a chain without explorer or a text that is no transaction hash. */
export function explorerTxUrl(chainId: string, txHash: string, directory: Directory = COMMON): string | null {
  const explorer = directory.chain(chainId)?.explorer ?? null;
  if (explorer === null || !/^(0x)?[0-9A-Za-z]{43,90}$/.test(txHash)) return null;
  return explorer.replace('{txHash}', txHash);
}

/** Names a token: EVM addresses in either case, base58 ones as they are. */
export function tokenKey(chainId: string, address: string): string {
  return `${chainId}:${foldHex(address)}`;
}

function unnamed(chainId: string): string {
  return `chain ${chainId}`;
}
