import type { Promised } from '../events/event-schema.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { amountOf, wordOf } from '../quotes/promised.ts';
import { foldHex } from '../subjects/subject.ts';
import { toUnits } from './amounts.ts';
import type { Directory } from './chains.ts';

/** An amount of a token on a chain, as far as it is said. */
export type RawAmount = {
  amount?: string | null | undefined;
  token?: string | null | undefined;
  chainId?: string | null | undefined;
};

/** An amount as an event tells it; null where it is no whole number of base units. */
export function money({ amount, token, chainId }: RawAmount, directory: Directory): JsonObject | null {
  const digits = amountOf(amount ?? undefined);
  if (digits === null) return null;
  const place = { token: wordOf(token ?? undefined), chainId: wordOf(chainId ?? undefined) };
  const known =
    place.token === null || place.chainId === null ? null : directory.token(place.chainId, place.token);
  return {
    amount: digits,
    units: known === null ? null : toUnits(digits, known.decimals),
    ...place,
    symbol: known?.symbol ?? null,
  };
}

const MOST_FEES = 10;

/** The fees of an imported quote. It does not say on which chain: only a token of one end has a chain. */
export function quoteFees({ fees = [], source, destination }: Promised, directory: Directory): JsonObject[] {
  return fees.flatMap(({ kind, token, amount }) => {
    const ends = [source, destination].filter(
      (end) => end?.token !== undefined && token !== undefined && foldHex(end.token) === foldHex(token),
    );
    const [first, second] = ends.map((end) => money({ amount, token, chainId: end?.chainId }, directory));
    // A token with one address on both chains: what the two say alike.
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

/** The fees of the best quote of a priced route: as the quote has them, else the sums of the record. */
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

/** The quote of the record of a route, as the open quoting service gave it. */
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
