import { z } from 'zod';
import { PAYMENTS } from '../domain/proof/payment.ts';
import { PROOF } from '../domain/proof/proof.ts';
import { CHECK_STATES, type Check } from '../store/checks.ts';
import { isoTime, isoTimeOrNull } from './moment.ts';

/** What came of the check of a payment so far. */
export const CHECK_DETAILS = z
  .object({
    payment: z.enum(PAYMENTS),
    chainId: z.string(),
    txHash: z.string(),
    token: z.string().nullable(),
    stated: z.string().nullable().describe('How much the upstream stated, in base units.'),
    state: z.enum(CHECK_STATES),
    because: z
      .string()
      .nullable()
      .describe(
        'Why it waits (`not-found`, `not-final`, `disagreement`, `unreachable`, `one-endpoint`, `claimed`, `funding`, `not-stated`), why it was not checked, or the reason of a dispute.',
      ),
    statedAt: z.iso.datetime(),
    asked: z.int().describe('How often its endpoints were asked while it waited.'),
    askedAt: z.iso.datetime().nullable(),
    endedAt: z.iso.datetime().nullable(),
    readings: z
      .array(z.object({ endpoint: z.string(), outcome: z.string(), reason: z.string().exactOptional() }))
      .describe('What each endpoint said last.'),
    proof: PROOF.nullable(),
  })
  .meta({ id: 'Check' });

/** A check as it is shown. */
export function checkDetails(check: Check): z.infer<typeof CHECK_DETAILS> {
  const { statement, state, because, statedAt, asked, askedAt, endedAt, readings, proof } = check;
  const { payment, chainId, txHash, token, amount } = statement;
  return {
    payment,
    chainId,
    txHash,
    token,
    stated: amount,
    state,
    because: because === '' ? null : because,
    statedAt: isoTime(statedAt),
    asked,
    askedAt: isoTimeOrNull(askedAt),
    endedAt: isoTimeOrNull(endedAt),
    readings: readings.map(({ reason, ...reading }) =>
      reason === undefined ? reading : { ...reading, reason },
    ),
    proof,
  };
}
