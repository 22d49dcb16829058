import { z } from 'zod';

/**
 * What a chain shows of a payment that the upstream states, where that is not what it states. Each is about what was
 * delivered, or paid back:
 *
 *   reverted          the transaction failed
 *   no-log            it succeeded, and no token moved
 *   short             a hundredth less moved, at least one base unit
 *   other-recipient   all of it moved to somebody else
 *   worthless-token   another contract says that all of it moved
 *   reused            the upstream states an earlier payment of another intent, which fits to the unit; as a refund, what was
 *                     delivered to another intent
 *   funding           the upstream states as paid back the very transaction that funded the intent
 *   stale             the transaction was made a day before the transfer
 *   to-itself         the recipient sends all of it to itself
 *   in-parts          the recipient gets it in two halves, in one transaction
 *   other-intent      the fulfilment that is logged names another intent
 *   forged            the same, while some other contract logs that this intent is fulfilled
 *   unlogged          no fulfilment is logged
 *   two-logs          the same amount moves to the recipient twice, in one transaction
 *   absent            there is no such transaction
 *   moved             its block is reorganised, and it stands in a later one
 *   dropped           its block is reorganised, and it stands in none
 */
const LIES = [
  'reverted',
  'no-log',
  'short',
  'other-recipient',
  'worthless-token',
  'reused',
  'funding',
  'stale',
  'to-itself',
  'in-parts',
  'other-intent',
  'forged',
  'unlogged',
  'two-logs',
  'absent',
  'moved',
  'dropped',
] as const;

export const lieSchema = z.enum(LIES, { error: `expected one of ${LIES.join(', ')}` });

export type Lie = z.infer<typeof lieSchema>;
