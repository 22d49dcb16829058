import { z } from 'zod';
import { isJsonObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import { OPEN_EXECUTIONS } from '../../domain/quotes/route.ts';
import {
  addressField,
  chainField,
  digitsField,
  integerMember,
  integerOrNull,
  kindOf,
  type Members,
  nameMember,
  type Parsed,
  passedMember,
  readEntries,
  recordSchema,
  textOrNull,
  unreadableMembers,
} from './wire.ts';

/** Request to the open quoting service for an exact input. Amounts are base units. */
export const exactInSchema = z.strictObject({
  /** Name of the application, for attribution only. */
  dAppID: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, {
    error: 'a name of 1 to 64 letters, digits, dots, underscores and hyphens',
  }),
  intentExecutionTypes: z.array(z.enum(OPEN_EXECUTIONS)).min(1),
  quoteRequest: z.strictObject({
    sourceChainID: chainField,
    destinationChainID: chainField,
    sourceToken: addressField,
    destinationToken: addressField,
    sourceAmount: digitsField,
    funder: addressField,
    recipient: addressField,
  }),
});

/** A request to the open quoting service. */
export type ExactInRequest = z.input<typeof exactInSchema>;

/** A solver's quote of the open quoting service. Amounts are base units. */
export type OpenQuote = {
  quoteId: string;
  solverId: string | null;
  destinationAmount: string;
  sourceAmount: string | null;
  minimumDestinationAmount: string | null;
  fees: {
    name: string;
    amount: string;
    token: string | null;
    decimals: number | null;
    symbol: string | null;
  }[];
  /** Unix seconds. */
  quoteExpiry: number | null;
  /** Unix seconds. */
  deadline: number | null;
  estimatedFulfillSeconds: number | null;
  /** The whole entry. */
  raw: JsonObject;
  /** Members of the entry and of its `quoteData.quoteResponse` that do not have the interface's shape. */
  unreadable: string[];
};

/** The quotes of a route; none is a success: no solver quoted it. */
export type OpenQuotes = { quotes: OpenQuote[]; unreadable: { index: number; reason: string }[] };

export const OPEN_QUOTES_EXPECTED = 'HTTP 201 with a JSON object { data } of quotes (array)';

const amount = z.string().regex(/^\d+$/);

const fee = z.object({
  name: z.string(),
  description: passedMember,
  amount,
  token: z.object({ address: z.string(), decimals: z.int(), symbol: z.string() }).partial().optional(),
});

const MEMBERS: Members = {
  intentExecutionType: z.string(),
  sourceChainID: integerMember,
  destinationChainID: integerMember,
  finalDestinationChainID: integerMember,
  sourceToken: z.string(),
  destinationToken: z.string(),
  sourceAmount: amount,
  minimumDestinationAmount: amount,
  funder: z.string(),
  refundRecipient: z.string(),
  recipient: z.string(),
  fees: z.array(
    fee.extend({
      kinds: z.array(z.object({ kind: z.string(), amount: z.string(), basis: z.string() })).optional(),
    }),
  ),
  deadline: integerMember,
  quoteExpiry: integerMember,
  estimatedFulfillTimeSec: integerMember,
  encodedRoute: z.string(),
};

const ENTRY_MEMBERS: Members = { quoteResponseID: z.string(), solverID: z.string() };

/** The schema of an answer of the open quoting service. */
export const OPEN_QUOTES = z.object({
  data: z.array(
    recordSchema(
      {
        quoteID: nameMember,
        quoteData: z.object({
          quoteResponse: recordSchema({ destinationAmount: amount }, MEMBERS),
          contracts: passedMember,
        }),
      },
      ENTRY_MEMBERS,
    ),
  ),
});

/** More than solvers give for one route. */
const MOST_QUOTES = 1_000;

/** Reads the quotes of a route: `data` must be a list, an entry needs its `quoteID` and `destinationAmount`. */
export function readOpenQuotes(body: JsonValue): Parsed<OpenQuotes> {
  if (!isJsonObject(body)) return { mismatch: `${kindOf(body)} as the body` };
  if (!Array.isArray(body.data)) return { mismatch: `${kindOf(body.data)} as data` };
  const { entries, unreadable } = readEntries(body.data, { most: MOST_QUOTES, read: readEntry });
  return { value: { quotes: entries, unreadable } };
}

function readEntry(raw: JsonValue): Parsed<OpenQuote> {
  if (!isJsonObject(raw)) return { mismatch: `${kindOf(raw)} as an entry` };
  const quoteId = textOrNull(raw.quoteID);
  if (quoteId === null) return { mismatch: `${kindOf(raw.quoteID)} as quoteID` };
  const response = isJsonObject(raw.quoteData) ? raw.quoteData.quoteResponse : undefined;
  if (!isJsonObject(response)) return { mismatch: `${kindOf(response)} as quoteData.quoteResponse` };
  const destinationAmount = amountOrNull(response.destinationAmount);
  if (destinationAmount === null) {
    return { mismatch: `${kindOf(response.destinationAmount)} as destinationAmount, expected digits` };
  }
  return {
    value: {
      quoteId,
      solverId: textOrNull(raw.solverID),
      destinationAmount,
      sourceAmount: amountOrNull(response.sourceAmount),
      minimumDestinationAmount: amountOrNull(response.minimumDestinationAmount),
      fees: feesOf(response.fees),
      quoteExpiry: integerOrNull(response.quoteExpiry),
      deadline: integerOrNull(response.deadline),
      estimatedFulfillSeconds: integerOrNull(response.estimatedFulfillTimeSec),
      raw,
      unreadable: [...unreadableMembers(raw, ENTRY_MEMBERS), ...unreadableMembers(response, MEMBERS)],
    },
  };
}

function feesOf(value: JsonValue | undefined): OpenQuote['fees'] {
  return (Array.isArray(value) ? value : []).flatMap((item) => {
    const parsed = fee.safeParse(item);
    if (!parsed.success) return [];
    const { name, amount: paid, token = {} } = parsed.data;
    const { address = null, decimals = null, symbol = null } = token;
    return [{ name, amount: paid, token: address, decimals, symbol }];
  });
}

function amountOrNull(value: JsonValue | undefined): string | null {
  const parsed = amount.safeParse(value);
  return parsed.success ? parsed.data : null;
}
