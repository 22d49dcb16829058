import { type Hex, hexToBigInt } from 'viem';
import { z } from 'zod';
import type { ExecutedTransaction } from '../chains/chains.ts';
import { TRANSFER } from '../chains/evm-shapes.ts';
import { lieSchema } from '../chains/lies.ts';
import { balanceSlot } from '../contracts/genesis.ts';
import { amount, chainId } from '../endpoints/fields.ts';
import { lookupKey } from './identifiers.ts';
import type { Fundable, OrderedLife, Orders } from './orders.ts';
import { publishedIntents } from './published.ts';

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
  const showsDepositAddress = 'depositAddress' in wanted && wanted.depositAddress;
  return fund(orders, fundable, { ...wanted, showsDepositAddress });
}

/**
 * Begins the transfers that a client's own transaction funds: it brought what is held for a quote or vault to its amount, or
 * published an intent of the client's own. Where no solvers are, nobody fills.
 */
export async function noticeFunding(
  orders: Orders,
  { executed: { chainId, transaction, engine }, solvers }: { executed: ExecutedTransaction; solvers: number },
): Promise<void> {
  const fate = solvers === 0 ? 'refunded' : 'settled';
  for (const intent of publishedIntents(chainId, transaction.logs)) {
    if (orders.heldAt({ chainId, address: intent.vault }) !== undefined) continue;
    orders.publish(intent, { txHash: transaction.txHash, fate });
  }
  for (const { address: token, topics } of transaction.logs) {
    const [event, , to] = topics;
    if (event !== TRANSFER || to === undefined) continue;
    const holder: Hex = `0x${to.slice(-40)}`;
    const fundable = orders.heldAt({ chainId, address: holder });
    if (fundable === undefined || lookupKey(fundable.plan.source.token) !== token) continue;
    const held = hexToBigInt(await engine.storage(token, balanceSlot(holder)));
    if (held < BigInt(fundable.plan.source.amount)) continue;
    fund(orders, fundable, {
      sourceTx: transaction.txHash,
      fate,
      stepFails: false,
      lie: null,
      showsDepositAddress: false,
    });
  }
}

/** Funding and life, as the control port takes them. */
type How = Partial<z.infer<z.ZodObject<typeof how>>> & {
  fate: OrderedLife['fate'];
  stepFails: boolean;
  lie: OrderedLife['lie'];
  showsDepositAddress: boolean;
};

function fund(orders: Orders, fundable: Fundable, wanted: How): FundResult {
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
    showsDepositAddress: wanted.showsDepositAddress,
  });
  return { type: 'funded', intentHash, sourceTxHash };
}
