import { z } from 'zod';
import { addressField, chainField, digitsField } from './payload.ts';

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
  /** Names the application that asks. The interface rules the open service's `dAppID` only (Limits), not this one. */
  dappId: z.string().min(1, { error: 'a name that is not empty' }),
  /** A decimal fraction: `0.005` is 0.5 %. */
  slippage: slippage.optional(),
  options: z.strictObject({ allQuotes: z.boolean().optional() }).optional(),
};

const side = { chainId: chainField, token: addressField };

const source = z.strictObject({ ...side, funder: addressField });

const destination = z.strictObject({ ...side, recipient: addressField });

const minimum = { minAmountOut: digitsField.optional() };

/** What `POST /v1/quotes` is asked. Amounts are base units. */
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
