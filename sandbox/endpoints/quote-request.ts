import { z } from 'zod';
import type { Wanted } from '../quotes/pricing.ts';
import { amount, chainId, fieldErrors } from './fields.ts';
import type { FieldError } from './problem.ts';

/** A well-formed body of `POST /v1/quotes`, or its errors. Slippage is in millionths. */
export type QuoteRequest =
  | { type: 'request'; wanted: Wanted; slippageMillionths: bigint; body: QuoteBody }
  | { type: 'slippage'; errors: FieldError[] }
  | { type: 'invalid'; errors: FieldError[] };

export type QuoteBody = z.infer<typeof bodySchema>;

const DEFAULT_SLIPPAGE = 0.005;
const LEAST_SLIPPAGE = 0.0001;
const MOST_SLIPPAGE = 1;

const address = z.string().min(1);

const bodySchema = z.strictObject({
  type: z.enum(['exact-in', 'exact-out', 'custom'], {
    error: 'expected one of exact-in, exact-out, custom',
  }),
  dappId: z.string().min(1),
  slippage: z
    .union(
      [
        z.number(),
        z
          .string()
          .regex(/^\d{1,10}(\.\d{1,18})?$/)
          .transform(Number),
      ],
      {
        error: 'expected a decimal fraction',
      },
    )
    .default(DEFAULT_SLIPPAGE),
  refundRecipient: address.optional(),
  source: z.strictObject({ chainId, token: address, funder: address, amount: amount.optional() }),
  destination: z.strictObject({
    chainId,
    token: address,
    recipient: address,
    amountOut: amount.optional(),
    minAmountOut: amount.optional(),
  }),
  options: z.strictObject({ allQuotes: z.boolean().optional() }).optional(),
});

const HINTS = {
  swapType: 'retired, use type',
  funder: 'the funder belongs under source.funder',
  encodedRoute: 'retired',
  'options.visibility': 'retired with 0.8.0',
  'source.refundRecipient': 'refundRecipient belongs at the top level',
  dAppID: 'use dappId',
  amount: 'the amount belongs under source.amount',
  recipient: 'the recipient belongs under destination.recipient',
};

export function parseQuoteRequest(found: unknown): QuoteRequest {
  const parsed = bodySchema.safeParse(found);
  if (!parsed.success) return { type: 'invalid', errors: fieldErrors(parsed.error, HINTS) };
  const body = parsed.data;
  const { slippage } = body;
  if (slippage < LEAST_SLIPPAGE || slippage > MOST_SLIPPAGE) {
    const detail = `found ${slippage}, expected a decimal fraction from ${LEAST_SLIPPAGE} to ${MOST_SLIPPAGE}`;
    return { type: 'slippage', errors: [{ field: 'slippage', detail }] };
  }
  const wanted = wantedAmounts(body);
  if (Array.isArray(wanted)) return { type: 'invalid', errors: wanted };
  return {
    type: 'request',
    wanted,
    slippageMillionths: BigInt(Math.round(slippage * 1_000_000)),
    body,
  };
}

function wantedAmounts({ type, source, destination }: QuoteBody): Wanted | FieldError[] {
  const { amount: sourceAmount } = source;
  const { amountOut } = destination;
  const missing = (field: string): FieldError => ({ field, detail: `required for ${type}` });
  const misplaced = (field: string): FieldError => ({ field, detail: `Unknown key: not for ${type}` });
  switch (type) {
    case 'exact-in':
      if (sourceAmount === undefined) return [missing('source.amount')];
      if (amountOut !== undefined) return [misplaced('destination.amountOut')];
      return { type, amount: sourceAmount };
    case 'exact-out':
      if (amountOut === undefined) return [missing('destination.amountOut')];
      if (sourceAmount !== undefined) return [misplaced('source.amount')];
      return { type, amountOut };
    case 'custom':
      if (sourceAmount === undefined) return [missing('source.amount')];
      if (amountOut === undefined) return [missing('destination.amountOut')];
      return { type, amount: sourceAmount, amountOut };
    default:
      return type satisfies never;
  }
}
