import { z } from 'zod';
import { type Chain, type Directory, type Token, tokenKey } from './chains.ts';

/** Most stored entries of an upstream's lists; the rest is ignored. */
const MOST_CHAINS = 1_000;
const MOST_TOKENS = 10_000;

const CHAIN_ID = z.string().regex(/^[1-9]\d{0,15}$/);

/** A chain as the upstream lists it. `quoteSigner`: the address that signs quotes for this source chain. */
const CHAIN = z.object({
  chainId: CHAIN_ID,
  // No control characters: the name is used in the subject lines of mails.
  name: z
    .string()
    .regex(/^[^\s\p{Cc}]([^\p{Cc}]{0,38}[^\s\p{Cc}])?$/u)
    .nullable(),
  quoteSigner: z.string().max(100).nullable(),
});

/**
 * A token as the upstream lists it. `decimals` never change on a chain: the first value stays. Another value, later
 * or in the same list, is `contradicted`; until resolved, the token's amounts are reported in base units.
 */
const TOKEN = z.object({
  chainId: CHAIN_ID,
  address: z.string().regex(/^[0-9A-Za-z]{20,70}$/),
  symbol: z.string().regex(/^[^\s\p{Cc}]{1,16}$/u),
  decimals: z.int().min(0).max(77),
  contradicted: z.int().nullable(),
});

export const DISCOVERED_CHAINS = z.array(CHAIN);
export const DISCOVERED_TOKENS = z.array(TOKEN);

export type DiscoveredChain = z.infer<typeof CHAIN>;
export type DiscoveredToken = z.infer<typeof TOKEN>;

/** The upstream's chains and tokens. */
export type Discovered = { chains: readonly DiscoveredChain[]; tokens: readonly DiscoveredToken[] };

type ListedChain = { chainId: number; name: string | null; quoteSigner: string | null };
type ListedToken = { chainId: number; address: string; symbol: string | null; decimals: number | null };

/** Valid entries of a list, and the number of incomplete or invalid ones. */
export type ValidEntries<T> = { entries: T[]; skipped: number };

/** Reads a list of chains. It replaces the known one: a signer that is no longer published is no longer valid. */
export function parseChains(listed: readonly ListedChain[]): ValidEntries<DiscoveredChain> {
  const chains = new Map<string, DiscoveredChain>();
  let skipped = 0;
  for (const { chainId, name, quoteSigner } of listed) {
    const parsed = CHAIN.safeParse({
      chainId: String(chainId),
      name: CHAIN.shape.name.safeParse(name).data ?? null,
      quoteSigner: CHAIN.shape.quoteSigner.safeParse(quoteSigner).data ?? null,
    });
    if (!parsed.success || chains.has(parsed.data.chainId)) skipped++;
    else if (chains.size < MOST_CHAINS) chains.set(parsed.data.chainId, parsed.data);
  }
  return { entries: [...chains.values()], skipped };
}

/** Reads a list of tokens. Known tokens that are no longer listed stay stored: transfers may still name them. */
export function mergeTokens(
  stored: readonly DiscoveredToken[],
  listed: readonly ListedToken[],
): ValidEntries<DiscoveredToken> {
  const before = new Map(stored.map((token) => [tokenKey(token.chainId, token.address), token]));
  const tokens = new Map<string, DiscoveredToken>();
  let skipped = 0;
  for (const { chainId, ...entry } of listed) {
    const parsed = TOKEN.safeParse({ ...entry, chainId: String(chainId), contradicted: null });
    if (!parsed.success) {
      skipped++;
      continue;
    }
    const { address, symbol, decimals } = parsed.data;
    const key = tokenKey(parsed.data.chainId, address);
    const first = tokens.get(key) ?? before.get(key);
    if (tokens.size >= MOST_TOKENS && !tokens.has(key)) continue;
    const contradicted = tokens.get(key)?.contradicted ?? null;
    tokens.set(key, {
      chainId: parsed.data.chainId,
      address,
      symbol,
      decimals: first?.decimals ?? decimals,
      contradicted: first === undefined || first.decimals === decimals ? contradicted : decimals,
    });
  }
  for (const [key, token] of before) {
    if (tokens.size < MOST_TOKENS && !tokens.has(key)) tokens.set(key, token);
  }
  return { entries: [...tokens.values()], skipped };
}

/**
 * Adds the upstream's lists to a directory. They take precedence over `base`. If the two, or two lists of the
 * upstream, have different decimals for a token, the token is unknown: no amount is shown that may be wrong.
 */
export function discoveredDirectory(base: Directory, { chains, tokens }: Discovered): Directory {
  const names = new Map(chains.flatMap(({ chainId, name }) => (name === null ? [] : [[chainId, name]])));
  const byKey = new Map(tokens.map((token) => [tokenKey(token.chainId, token.address), token]));
  return {
    chain: (chainId): Chain | null => {
      const name = names.get(chainId);
      const common = base.chain(chainId);
      return name === undefined ? common : { name, explorer: common?.explorer ?? null };
    },
    token: (chainId, address): Token | null => {
      const common = base.token(chainId, address);
      const listed = byKey.get(tokenKey(chainId, address));
      if (listed === undefined) return common;
      return contradiction(listed, common) === null
        ? { symbol: listed.symbol, decimals: listed.decimals }
        : null;
    },
  };
}

/** A token listed with other decimals than the known ones. */
export type Contradiction = { chainId: string; address: string; stored: number; listed: number };

/** Tokens whose decimals the upstream contradicts: its own first ones, or those of `base`. */
export function contradictions(base: Directory, { tokens }: Discovered): Contradiction[] {
  return tokens.flatMap((token) => {
    const { chainId, address } = token;
    const found = contradiction(token, base.token(chainId, address));
    return found === null ? [] : [{ chainId, address, ...found }];
  });
}

function contradiction(
  { decimals, contradicted }: DiscoveredToken,
  common: Token | null,
): { stored: number; listed: number } | null {
  if (common !== null && common.decimals !== decimals) return { stored: common.decimals, listed: decimals };
  return contradicted === null ? null : { stored: decimals, listed: contradicted };
}

/** Signers of quotes by source chain. */
export function quoteSigners(chains: readonly DiscoveredChain[]): Map<number, string> {
  return new Map(
    chains.flatMap(({ chainId, quoteSigner }) =>
      quoteSigner === null ? [] : [[Number(chainId), quoteSigner]],
    ),
  );
}
