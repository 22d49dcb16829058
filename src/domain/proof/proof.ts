import { z } from 'zod';
import { PAYMENTS } from './payment.ts';
import { BLOCK, MOVE } from './reading.ts';

/** Why a statement is not so. */
export const DISPUTE_REASONS = [
  'reverted',
  'no-transfer',
  'short',
  'other-recipient',
  'other-intent',
] as const;

export type DisputeReason = (typeof DISPUTE_REASONS)[number];

/** What was checked of a payment and found to be so. */
const CHECKED = ['chain', 'success', 'token', 'amount', 'recipient', 'intent', 'exclusive', 'final'] as const;

/** What a check of the chain has found: `data.proof` of an event. */
export const PROOF = z.object({
  payment: z
    .enum(PAYMENTS)
    .describe('Which transaction of the transfer: its `destination`, `source` or `refund`.'),
  chainId: z.string(),
  txHash: z.string(),
  token: z.string().exactOptional().describe('The token whose moves were looked for.'),
  stated: z
    .string()
    .exactOptional()
    .describe('How much the upstream stated, in base units; absent for a refund, of which it states none.'),
  checked: z
    .array(z.enum(CHECKED))
    .describe(
      'What was checked and is so. `chain`: the endpoints are of this chain; `success`: the transaction succeeded; `token`: the token is yours or of the packaged list, and moved; `amount`: at least as much as stated; `recipient`: to whom you said, or of a refund to whoever paid; `intent`: the pinned contract says that it fulfils this intent; `exclusive`: the log proves no other transfer and is not older than this one; `final`: the block is final.',
    ),
  reason: z.enum(DISPUTE_REASONS).exactOptional().describe('Why it is disputed.'),
  singleSource: z
    .literal(true)
    .exactOptional()
    .describe('True where only one host could be asked; otherwise absent.'),
  block: BLOCK.exactOptional().describe('The block of the transaction.'),
  moved: z
    .array(MOVE)
    .exactOptional()
    .describe('The move that proves it; where disputed, the moves of the token, at most twenty.'),
  endpoints: z.array(z.string()).describe('The endpoints that said so, by their names in the config.'),
});

export type Proof = z.infer<typeof PROOF>;
