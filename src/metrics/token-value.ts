import type { Directory } from '../domain/transfers/chains.ts';
import type { RawAmount } from '../domain/transfers/money.ts';

/** An amount of a token as metrics count it: in token units, by its symbol. */
export type TokenValue = { token: string; units: number };

/** An amount in token units; null where it is none, or the decimals of the token are not certain. */
export function tokenValue({ chainId, token, amount }: RawAmount, directory: Directory): TokenValue | null {
  const known = chainId == null || token == null ? null : directory.token(chainId, token);
  if (known === null || !/^\d{1,78}$/.test(amount ?? '')) return null;
  return { token: known.symbol, units: Number(amount) / 10 ** known.decimals };
}
