import { z } from 'zod';
import { isJsonObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import {
  addressField,
  chainField,
  digitsField,
  integerMember,
  integerOrNull,
  kindOf,
  type Members,
  nameMember,
  numberMember,
  type Parsed,
  passedMember,
  readCore,
  readEntries,
  recordSchema,
  textOrNull,
  unreadableMembers,
} from './wire.ts';

/** A fee of a quote. `amount` is base units of `token`; `decimals` and `symbol` are known where the quote describes the token. */
type QuoteFee = {
  type: string;
  token: string | null;
  amount: string;
  decimals: number | null;
  symbol: string | null;
};

/** A quote: its price, its signed members, and its funding. */
export type Quote = {
  /** With its prefix `quote:`. */
  id: string;
  type: string | null;
  signature: string;
  /** Unix seconds. */
  expiresAt: number;
  intentHash: string;
  source: { chainId: number; token: string | null; funder: string | null; amount: string | null };
  destination: {
    chainId: number | null;
    token: string | null;
    recipient: string | null;
    amountOut: string | null;
    minAmountOut: string | null;
  };
  fees: QuoteFee[];
  /** Address of the solver, where the quote names it. */
  solver: string | null;
  /** `execution.transaction`, which funds the quote. The quote's signature does not cover it. */
  transaction: JsonObject | null;
  /** The whole answer, `quotes` included. */
  raw: JsonObject;
  /** Members that do not have the interface's shape. */
  unreadable: string[];
};

/** The best quote and, when all were requested, each readable one. */
export type QuoteAnswer = Quote & {
  quotes: Quote[];
  /** Entries of `quotes` that lack the core of a quote. */
  unreadableQuotes: { index: number; reason: string }[];
};

export const QUOTE_EXPECTED =
  'HTTP 200 with a JSON object of id, signature, expiresAt, intentHash and source.chainId';

const amount = z.string().regex(/^\d+$/);

/** A token is its address, or an object that describes it. */
const feeToken = z.union([
  z.string().transform((address) => ({ address, decimals: null, symbol: null })),
  z.object({
    address: z.string(),
    decimals: z.int().nullish().transform(orNull),
    symbol: z.string().nullish().transform(orNull),
    chainId: passedMember,
  }),
]);

const fee = z.object({
  type: z.string(),
  token: feeToken.nullish().transform(orNull),
  amount,
  estimate: passedMember,
});

const text = z.string().nullish();

const sourceMember = z.object({
  chainId: numberMember,
  token: text,
  funder: text,
  amount: amount.nullish(),
  symbol: passedMember,
  decimals: passedMember,
});

const CORE = z.object({
  id: nameMember,
  signature: nameMember,
  expiresAt: numberMember,
  intentHash: nameMember,
});

/** A deployment sends null for what it does not state. */
const MEMBERS: Members = {
  type: text,
  source: sourceMember,
  destination: z
    .object({
      chainId: integerMember.nullish(),
      token: text,
      recipient: text,
      amountOut: amount.nullish(),
      minAmountOut: amount.nullish(),
      symbol: passedMember,
      decimals: passedMember,
    })
    .nullable(),
  /** The interface shows the type of a fee alone. */
  fees: z.array(fee.partial({ amount: true })).nullable(),
  steps: z
    .array(
      z.object({
        type: z.string(),
        intents: z
          .array(z.object({ intentHash: z.string(), role: z.string(), intent: passedMember }))
          .nullable(),
        provider: passedMember,
        from: passedMember,
        to: passedMember,
        fees: passedMember,
        estimatedDurationSec: passedMember,
      }),
    )
    .nullable(),
  execution: z
    .object({
      transaction: z
        .object({
          type: z.string(),
          chainId: passedMember,
          to: passedMember,
          data: passedMember,
          value: passedMember,
          feePayer: passedMember,
          instructions: passedMember,
        })
        .nullable(),
      intent: passedMember,
      vault: passedMember,
    })
    .nullable(),
  slippage: passedMember,
  solver: z.object({ id: text }).nullable(),
  quotes: z.array(z.object({})).nullable(),
};

const SINGLE = recordSchema({ ...CORE.shape, source: sourceMember }, MEMBERS);

/** The schema of an answer of the quotes endpoint. */
export const QUOTE_ANSWER = SINGLE.extend({ quotes: z.array(SINGLE).nullish() });

/** More than solvers give for one transfer. */
const MOST_QUOTES = 1_000;

/** Reads an answer of the quotes endpoint: the core of the top-level quote must be present; the rest is optional. */
export function readQuoteAnswer(body: JsonValue): Parsed<QuoteAnswer> {
  const best = readQuote(body);
  if ('mismatch' in best) return best;
  const { quotes } = best.value.raw;
  const list = Array.isArray(quotes) ? quotes : [];
  const { entries, unreadable } = readEntries(list, { most: MOST_QUOTES, read: readQuote });
  return { value: { ...best.value, quotes: entries, unreadableQuotes: unreadable } };
}

function readQuote(raw: JsonValue): Parsed<Quote> {
  if (!isJsonObject(raw)) return { mismatch: `${kindOf(raw)} as the quote` };
  const core = readCore(raw, CORE);
  if ('found' in core) return { mismatch: `${core.found} as ${core.member}` };
  const source = objectOf(raw.source);
  const chainId = integerOrNull(source.chainId);
  if (chainId === null) return { mismatch: `${kindOf(source.chainId)} as source.chainId` };
  const destination = objectOf(raw.destination);
  const { transaction } = objectOf(raw.execution);
  return {
    value: {
      ...core.value,
      type: textOrNull(raw.type),
      source: {
        chainId,
        token: textOrNull(source.token),
        funder: textOrNull(source.funder),
        amount: amountOrNull(source.amount),
      },
      destination: {
        chainId: integerOrNull(destination.chainId),
        token: textOrNull(destination.token),
        recipient: textOrNull(destination.recipient),
        amountOut: amountOrNull(destination.amountOut),
        minAmountOut: amountOrNull(destination.minAmountOut),
      },
      fees: feesOf(raw.fees),
      solver: textOrNull(objectOf(raw.solver).id),
      transaction: isJsonObject(transaction) ? transaction : null,
      raw,
      unreadable: unreadableMembers(raw, MEMBERS),
    },
  };
}

/** Readable fees; unreadable ones are reported by `unreadable`. */
function feesOf(value: JsonValue | undefined): QuoteFee[] {
  return (Array.isArray(value) ? value : []).flatMap((item) => {
    const parsed = fee.safeParse(item);
    if (!parsed.success) return [];
    const { type, token, amount } = parsed.data;
    const { address = null, decimals = null, symbol = null } = token ?? {};
    return [{ type, token: address, amount, decimals, symbol }];
  });
}

function orNull<T>(value: T | null | undefined): T | null {
  return value ?? null;
}

function amountOrNull(value: JsonValue | undefined): string | null {
  const parsed = amount.safeParse(value);
  return parsed.success ? parsed.data : null;
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

const SLIPPAGE = { error: 'a decimal fraction from 0.0001 to 1 (0.005 is 0.5 %)' };

const slippage = z.union(
  [
    z.number().min(0.0001, SLIPPAGE).max(1, SLIPPAGE),
    z
      .string()
      .regex(/^\d(\.\d{1,18})?$/, SLIPPAGE)
      .refine((text) => Number(text) >= 0.0001 && Number(text) <= 1, SLIPPAGE),
  ],
  SLIPPAGE,
);

const common = {
  /** Name of the application. The interface limits the open service's `dAppID` only (Limits), not this one. */
  dappId: z.string().min(1, { error: 'a name that is not empty' }),
  /** A decimal fraction: `0.005` is 0.5 %. */
  slippage: slippage.optional(),
  options: z.strictObject({ allQuotes: z.boolean().optional() }).optional(),
};

const side = { chainId: chainField, token: addressField };

const source = z.strictObject({ ...side, funder: addressField });

const destination = z.strictObject({ ...side, recipient: addressField });

const minimum = { minAmountOut: digitsField.optional() };

/** Request of `POST /v1/quotes`. Amounts are base units. */
export const quoteRequestSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('exact-in'),
    ...common,
    source: source.extend({ amount: digitsField }),
    destination: destination.extend(minimum),
  }),
  z.strictObject({
    type: z.literal('exact-out'),
    ...common,
    source,
    destination: destination.extend({ amountOut: digitsField }),
  }),
  z.strictObject({
    type: z.literal('custom'),
    ...common,
    source: source.extend({ amount: digitsField }),
    destination: destination.extend({ amountOut: digitsField, ...minimum }),
  }),
]);

/** A request for a quote. */
export type QuoteRequest = z.input<typeof quoteRequestSchema>;
