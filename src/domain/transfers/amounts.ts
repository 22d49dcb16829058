import { COMMON, type Directory } from './chains.ts';

/** An amount of a token on a chain, as the upstream names it: base units as a decimal string. */
export type TokenAmount = { amount: string; token: string | null; chainId: string | null };

/**
 * An amount of base units in token units, digit by digit: thousands grouped with `,`, at least two decimals, no
 * trailing zeros after them (`1250000000` with 6 decimals is `1,250.00`). Null when the text is not a whole number of
 * at most 100 digits; a number without bound would cost time without bound.
 */
export function formatUnits(baseUnits: string, decimals: number): string | null {
  if (!/^\d{1,100}$/.test(baseUnits)) return null;
  const scale = 10n ** BigInt(decimals);
  const value = BigInt(baseUnits);
  const whole = groupThousands(String(value / scale));
  const fraction = String(value % scale).padStart(decimals, '0');
  const shown = decimals === 0 ? '' : fraction.replace(/0+$/, '');
  return `${whole}.${shown.padEnd(2, '0')}`;
}

/** An amount of base units in token units for a program: as `formatUnits`, without grouping and padding (`1250.5`). */
export function toUnits(baseUnits: string, decimals: number): string | null {
  const shown = formatUnits(baseUnits, decimals)?.replaceAll(',', '') ?? null;
  return shown === null ? null : shown.replace(/\.0*$|(\.\d*?)0+$/, '$1');
}

/** An amount for a reader: `1,250.00 USDC` where the token is known, else `1250000000 base units of 0x…`. */
export function describeAmount(
  { amount, token, chainId }: TokenAmount,
  directory: Directory = COMMON,
): string {
  const known = token !== null && chainId !== null ? directory.token(chainId, token) : null;
  const units = known === null ? null : formatUnits(amount, known.decimals);
  if (known !== null && units !== null) return `${units} ${known.symbol}`;
  return token === null ? `${amount} base units` : `${amount} base units of ${token}`;
}

/** An amount in token units as readers write it: thousands grouped with `,`, at least two decimals. */
export function groupUnits(units: string): string {
  const [whole = '', fraction = ''] = units.split('.');
  return `${groupThousands(whole)}.${fraction.padEnd(2, '0')}`;
}

function groupThousands(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+$)/g, ',');
}
