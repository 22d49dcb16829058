import { z } from 'zod';
import { lieSchema } from '../chains/lies.ts';
import { amount, chainId } from '../endpoints/fields.ts';
import type { Fundable, Orders } from './orders.ts';

const how = {
  fate: z.enum(['settled', 'late-details', 'refunded', 'failed']).default('settled'),
  /** The arriving amount, in base units; omitted: the agreed one. */
  delivered: amount.optional(),
  stepFails: z.boolean().default(false),
  /** Contents of its chain in place of the stated ones. */
  lie: lieSchema.nullable().default(null),
  /** The funding transaction, in place of a new one: one transaction may fund several. */
  sourceTx: z.string().min(1).max(100).optional(),
  /** A stated transaction of another node, in place of the sandbox's own. */
  states: z
    .strictObject({
      txHash: z.string().min(1).max(100),
      chainId: chainId.optional(),
      token: z.string().min(1).max(100).optional(),
    })
    .optional(),
};

/** Body of `POST /fund`: a quote (bare or prefixed) or a vault, and the life of the transfer. */
export const fundSchema = z.union(
  [
    z.strictObject({ quoteId: z.string().transform((id) => id.replace(/^quote:/, '')), ...how }),
    z.strictObject({
      vaultAddress: z.string(),
      chainId: z.int().min(1),
      ...how,
      depositAddress: z.boolean().default(false),
    }),
  ],
  {
    error:
      'expected { quoteId } or { vaultAddress, chainId, depositAddress? }, and fate?, delivered?, stepFails?, lie?, sourceTx?, states?',
  },
);

/** The funding on the chain, or the reason why it is impossible. */
export type FundResult =
  | { type: 'funded'; intentHash: string; sourceTxHash: string }
  | { type: 'refused'; statusCode: 404 | 409 | 410; message: string };

/** Simulates the chain's transaction that funds a quote or a vault. */
export function fundByTransaction(orders: Orders, wanted: z.infer<typeof fundSchema>): FundResult {
  const fundable: Fundable | undefined =
    'quoteId' in wanted
      ? orders.quote(wanted.quoteId)
      : orders.vault({ chainId: wanted.chainId, address: wanted.vaultAddress });
  if (fundable === undefined) {
    return { type: 'refused', statusCode: 404, message: 'no such quote or vault was made by a client' };
  }
  if (fundable.fundedBy !== null) {
    return { type: 'refused', statusCode: 409, message: `already funded by ${fundable.fundedBy}` };
  }
  if (orders.isExpired(fundable)) {
    return { type: 'refused', statusCode: 410, message: `expired at ${fundable.expiresAt}` };
  }
  const { intentHash, source } = fundable.plan;
  const sourceTxHash = wanted.sourceTx ?? source.txHash;
  orders.fundByTransaction(fundable, {
    sourceTxHash,
    fate: wanted.fate,
    delivers: wanted.delivered?.toString() ?? null,
    stepFails: wanted.stepFails,
    lie: wanted.lie,
    ...(wanted.states === undefined ? {} : { states: wanted.states }),
    showsDepositAddress: 'depositAddress' in wanted && wanted.depositAddress,
  });
  return { type: 'funded', intentHash, sourceTxHash };
}
