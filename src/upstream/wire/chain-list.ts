import { z } from 'zod';
import { isJsonObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import {
  integerMember,
  integerOrNull,
  kindOf,
  nameMember,
  numberMember,
  type Parsed,
  passedMember,
  readCore,
  readEntries,
  recordSchema,
  textMember,
  textOrNull,
  unreadableMembers,
} from './wire.ts';

/** A chain that can be quoted. */
export type ChainEntry = {
  chainId: number;
  name: string | null;
  /** Address that signs quotes for this source chain. */
  quoteSigner: string | null;
  /** Members that are no text. */
  unreadable: string[];
};

/** A token that can be quoted. */
export type TokenEntry = {
  chainId: number;
  address: string;
  symbol: string | null;
  decimals: number | null;
};

/** The readable entries of a list, and the faults of the others. */
export type ParsedList<T> = { entries: T[]; unreadable: { index: number; reason: string }[] };

export const CHAINS_EXPECTED =
  'HTTP 200 with a JSON array of chains, or an object that holds it as chains or data';

export const TOKENS_EXPECTED =
  'HTTP 200 with a JSON array of tokens, or an object that holds it as tokens or data';

const CHAIN_CORE = z.object({ chainId: numberMember });

const TOKEN_CORE = z.object({ chainId: numberMember, address: nameMember });

const CHAIN_MEMBERS = { name: textMember.nullable(), quoteSigner: textMember.nullable() };

/** The schema of the answers of `GET /v1/chains`. */
export const CHAINS = listSchema('chains', recordSchema(CHAIN_CORE.shape, CHAIN_MEMBERS));

/** The schema of the answers of `GET /v1/tokens`. */
export const TOKENS = listSchema(
  'tokens',
  recordSchema(TOKEN_CORE.shape, {
    symbol: textMember.nullable(),
    decimals: integerMember.nullable(),
    name: passedMember,
  }),
);

function listSchema(name: string, entry: z.ZodType): z.ZodType {
  const list = z.array(entry);
  return z.union([list, z.object({ [name]: list.optional(), data: list.optional() })]);
}

/** Reads a list of chains. The interface shows no shape, so a bare list and the two usual envelopes are accepted. */
export function readChains(body: JsonValue): Parsed<ParsedList<ChainEntry>> {
  return readListing(body, {
    name: 'chains',
    read: (raw) => {
      const core = readCore(raw, CHAIN_CORE);
      if ('found' in core) return { mismatch: `${core.found} as ${core.member}` };
      const { name, quoteSigner } = raw;
      const unreadable = unreadableMembers(raw, CHAIN_MEMBERS);
      return {
        value: { ...core.value, name: textOrNull(name), quoteSigner: textOrNull(quoteSigner), unreadable },
      };
    },
  });
}

/** Reads a list of tokens, in the same shapes. */
export function readTokens(body: JsonValue): Parsed<ParsedList<TokenEntry>> {
  return readListing(body, {
    name: 'tokens',
    read: (raw) => {
      const core = readCore(raw, TOKEN_CORE);
      if ('found' in core) return { mismatch: `${core.found} as ${core.member}` };
      const { symbol, decimals } = raw;
      return { value: { ...core.value, symbol: textOrNull(symbol), decimals: integerOrNull(decimals) } };
    },
  });
}

/** More than are stored of a list. */
const MOST_ENTRIES = 10_000;

function readListing<T>(
  body: JsonValue,
  { name, read }: { name: string; read: (raw: JsonObject) => Parsed<T> },
): Parsed<ParsedList<T>> {
  const list = isJsonObject(body) ? (body[name] ?? body.data) : body;
  if (!Array.isArray(list)) return { mismatch: `${kindOf(list)} as the list of ${name}` };
  const readEntry = (item: JsonValue): Parsed<T> =>
    isJsonObject(item) ? read(item) : { mismatch: `${kindOf(item)} as an entry` };
  return { value: readEntries(list, { most: MOST_ENTRIES, read: readEntry }) };
}
