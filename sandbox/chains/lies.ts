import { z } from 'zod';

/**
 * Contents of a chain that differ from the upstream's statement. Each is about a delivery or a refund:
 *
 *   reverted          the transaction failed
 *   no-log            it succeeded, and no token moved
 *   short             a hundredth less moved, at least one base unit
 *   other-recipient   all of it moved to another recipient
 *   worthless-token   another contract logs that all of it moved
 *   reused            the upstream states an earlier payment of another intent with the same amount; as a refund, the
 *                     delivery of another intent
 *   funding           the upstream states the transaction that funded the intent as its refund
 *   stale             the transaction was made a day before the transfer
 *   to-itself         the recipient sends all of it to itself
 *   in-parts          the recipient gets it in two halves, in one transaction
 *   other-intent      the logged fulfilment names another intent
 *   forged            the same, while another contract logs the fulfilment of this intent
 *   unlogged          no fulfilment is logged
 *   two-logs          the same amount moves to the recipient twice, in one transaction
 *   absent            there is no such transaction
 *   moved             its block is reorganised, and it moves to a later one
 *   dropped           its block is reorganised, and it is in none
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
