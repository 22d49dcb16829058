import { z } from 'zod';
import { PAYMENTS } from '../../domain/proof/payment.ts';
import { PROOF } from '../../domain/proof/proof.ts';
import { READING } from '../../domain/proof/reading.ts';
import { UNCHECKED_REASONS, WAITING_REASONS } from '../../domain/proof/verdict.ts';

/** What the upstream stated of a payment, and to whom it may rightly have gone. */
const STATED_PAYMENT = z.object({
  subject: z.string(),
  payment: z.enum(PAYMENTS),
  chainId: z.string(),
  txHash: z.string(),
  token: z.string().nullable(),
  /** Base units; null where none is stated, as of a refund. */
  amount: z.string().nullable(),
  /** Of a refund: what was sent, in base units. */
  sent: z.string().nullable(),
  recipients: z.array(z.string()),
});

const VERDICT = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('waiting'), because: z.enum(WAITING_REASONS) }),
  z.object({ outcome: z.literal('unchecked'), because: z.enum(UNCHECKED_REASONS) }),
  z.object({ outcome: z.enum(['verified', 'disputed', 'unproven']), proof: PROOF }),
]);

/** True when it was looked at what the logs have proved of other transfers; `reason` says why not. */
export const OTHER_TRANSFERS = z.discriminatedUnion('looked', [
  z.object({ looked: z.literal(true) }),
  z.object({ looked: z.literal(false), reason: z.string() }),
]);

/** What `verify --json` prints. */
export const VERIFIED_PAYMENTS = z.object({
  subject: z.string(),
  reportedBy: z.enum(['daemon', 'upstream']),
  outcome: z.enum(['verified', 'disputed', 'not reported']),
  otherTransfers: OTHER_TRANSFERS,
  payments: z.array(
    z.object({
      statement: STATED_PAYMENT,
      verdict: VERDICT,
      /** What each endpoint said; null where the config has none of the chain. */
      readings: z.array(READING).nullable(),
    }),
  ),
  /** "<chain> <endpoint>" -> how many calls. */
  calls: z.record(z.string(), z.int()),
});
