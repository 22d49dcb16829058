import type { Promised } from '../events/event-schema.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { amountOf, wordOf } from '../quotes/promised.ts';
import { foldHex } from '../subjects/subject.ts';
import { COMMON_NAMES, type Directory } from './chains.ts';

/** An amount of a token on a chain, as far as stated. */
export type RawAmount = {
  amount?: string | null | undefined;
  token?: string | null | undefined;
  chainId?: string | null | undefined;
};

/** An amount as an event reports it; null when it is no whole number of base units. */
export function money({ amount, token, chainId }: RawAmount, directory: Directory): JsonObject | null {
  const digits = amountOf(amount ?? undefined);
  if (digits === null) return null;
  const place = { token: wordOf(token ?? undefined), chainId: wordOf(chainId ?? undefined) };
  const listed =
    place.token === null || place.chainId === null ? null : directory.token(place.chainId, place.token);
  return {
    amount: digits,
    units: listed === null ? null : toUnits(digits, listed.decimals),
    ...place,
    symbol: listed?.symbol ?? null,
  };
}

const MOST_FEES = 10;

/** Fees of an imported quote. A quote states no chain of a fee: only a token of one end has a chain. */
export function quoteFees({ fees = [], source, destination }: Promised, directory: Directory): JsonObject[] {
  return fees.flatMap(({ kind, token, amount }) => {
    const ends = [source, destination].filter(
      (end) => end?.token !== undefined && token !== undefined && foldHex(end.token) === foldHex(token),
    );
    const [first, second] = ends.map((end) => money({ amount, token, chainId: end?.chainId }, directory));
    // A token with one address on both chains gets the members on which both agree.
    const reported =
      first === undefined ? money({ amount, token }, directory) : alike(first, second ?? first);
    return reported === null ? [] : [{ kind, ...reported }];
  });
}

function alike(one: JsonObject | null, other: JsonObject | null): JsonObject | null {
  if (one === null || other === null) return null;
  return Object.fromEntries(
    Object.entries(one).map(([key, value]) => [key, value === other[key] ? value : null]),
  );
}

/** Fees of a priced route's best quote: those of the quote, else the sums of the record. */
export function routeFees(record: JsonObject): JsonObject[] {
  const fees = quoteResponse(record)?.fees ?? record.fees;
  return (Array.isArray(fees) ? fees : []).slice(0, MOST_FEES).flatMap((fee) => {
    if (!isJsonObject(fee)) return [];
    const amount = amountOf(fee.amount);
    const token = isJsonObject(fee.token) ? fee.token : { ...fee, address: fee.token ?? null };
    const { decimals } = token;
    const isScale =
      typeof decimals === 'number' && Number.isInteger(decimals) && decimals >= 0 && decimals <= 77;
    if (amount === null) return [];
    return [
      {
        kind: kindsOf(fee.kinds) ?? wordOf(fee.name),
        amount,
        units: isScale ? toUnits(amount, decimals) : null,
        token: wordOf(token.address),
        symbol: wordOf(token.symbol),
      },
    ];
  });
}

/** Quote in the record of a route, as the open quoting service returned it. */
export function quoteResponse({ quote }: JsonObject): JsonObject | null {
  const data = isJsonObject(quote) ? quote.quoteData : undefined;
  const response = isJsonObject(data) ? data.quoteResponse : undefined;
  return isJsonObject(response) ? response : null;
}

function kindsOf(kinds: JsonValue | undefined): string | null {
  const words = (Array.isArray(kinds) ? kinds : []).map((one) =>
    isJsonObject(one) ? wordOf(one.kind) : null,
  );
  return wordOf([...new Set(words.filter((word) => word !== null))].join(', '));
}

/** An amount of a token on a chain, as the upstream states it: base units as a decimal string. */
type TokenAmount = { amount: string; token: string | null; chainId: string | null };

/**
 * Formats base units digit by digit: thousands grouped with `,`, at least two decimals, no trailing zeros after them
 * (`1250000000` with 6 decimals is `1,250.00`). Null beyond 100 digits, which bounds the time, and for other text.
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

/** Formats base units in token units for a program: as `formatUnits`, without grouping and padding (`1250.5`). */
export function toUnits(baseUnits: string, decimals: number): string | null {
  const shown = formatUnits(baseUnits, decimals)?.replaceAll(',', '') ?? null;
  return shown === null ? null : shown.replace(/\.0*$|(\.\d*?)0+$/, '$1');
}

/** Formats an amount for a reader: `1,250.00 USDC` for a known token, else `1250000000 base units of 0x…`. */
export function describeAmount(
  { amount, token, chainId }: TokenAmount,
  directory: Directory = COMMON_NAMES,
): string {
  const listed = token !== null && chainId !== null ? directory.token(chainId, token) : null;
  const units = listed === null ? null : formatUnits(amount, listed.decimals);
  if (listed !== null && units !== null) return `${units} ${listed.symbol}`;
  return token === null ? `${amount} base units` : `${amount} base units of ${token}`;
}

/** Formats token units for readers: thousands grouped with `,`, at least two decimals. */
export function groupUnits(units: string): string {
  const [whole = '', fraction = ''] = units.split('.');
  return `${groupThousands(whole)}.${fraction.padEnd(2, '0')}`;
}

function groupThousands(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+$)/g, ',');
}
