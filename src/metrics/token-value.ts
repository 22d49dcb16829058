import type { Directory } from '../domain/transfers/chains.ts';
import type { RawAmount } from '../domain/transfers/money.ts';
import { OTHER } from './label-values.ts';

/**
 * What metrics know of tokens: their decimals from the `directory`, their symbols from what is `listed` in the config and the
 * package. Anybody may call a token USDC, and the upstream may list it.
 */
export type KnownTokens = { directory: Directory; listed: Directory };

/** An amount of a token as metrics count it: in token units, by its symbol, or as `other`. */
export type TokenValue = { token: string; units: number };

/** An amount in token units; null where it is none, or the decimals of the token are not certain. */
export function tokenValue(
  { chainId, token, amount }: RawAmount,
  { directory, listed }: KnownTokens,
): TokenValue | null {
  if (chainId == null || token == null || !/^\d{1,78}$/.test(amount ?? '')) return null;
  const known = directory.token(chainId, token);
  if (known === null) return null;
  const units = Number(amount) / 10 ** known.decimals;
  return { token: listed.token(chainId, token)?.symbol ?? OTHER, units };
}
