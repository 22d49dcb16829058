import { z } from 'zod';
import type { JsonObject } from '../json.ts';
import { PROOF } from '../proof/proof.ts';

const HEAD = {
  id: z
    .string()
    .regex(/^evt_[0-9a-f]{40}$/)
    .describe(
      'Names the event. The same for every receiver, attempt and replay; also the `webhook-id` header.',
    ),
  type: z
    .string()
    .regex(/^[a-z0-9._-]+$/)
    .describe('The kind of the subject, a dot, and a word: a status in lower case or what happened.'),
  timestamp: z.iso.datetime().describe('When the change was seen: UTC, Redis time, with milliseconds.'),
};

const SUBJECT = {
  kind: z
    .string()
    .describe(
      '`intent`, `quote`, `gasless`, `vault`, `deposit-address`, `route`, `upstream`, `receiver`, `intentwatch` or a word of the upstream.',
    ),
  id: z.string().describe('The id, with its prefix, such as `intent:0x…`.'),
};

const RECORD: z.ZodType<JsonObject> = z.record(z.string(), z.json());

const STATE = {
  subject: z.object(SUBJECT).describe('The subject of the event.'),
  sequence: z
    .int()
    .min(1)
    .describe('Counts the events of this subject: 1, 2, 3 … Order by `epoch`, then by it, not by arrival.'),
  epoch: z
    .int()
    .min(1)
    .describe(
      'Counts the restores of the data of Intentwatch: 1, and one more after each. In a larger epoch a sequence may come again; an event of a larger epoch is the newer one.',
    ),
  status: z
    .string()
    .nullable()
    .describe(
      'The status after the change, as the upstream writes it (`PENDING` of a vault). Empty for a gateway job or vault that has never reported one.',
    ),
  previousStatus: z
    .string()
    .nullable()
    .describe('The status before. Null at first sight. Equal to `status` when something else changed.'),
  changes: z
    .array(z.string())
    .describe(
      'Paths within `record` that changed. At first sight all members; empty when the clock or a verification made the event.',
    ),
  record: RECORD.describe(
    'The whole record of the upstream, with members that are not documented. Some types add a member: `quote.expiring` and `quote.expired` have `expiresAt`, `quote.signature_invalid` has `signature` with `part` (which is wrong), `reason` and `recovered` (who signed, or null).',
  ),
};

const CUT = {
  recordTruncated: z
    .literal(true)
    .exactOptional()
    .describe(
      'True when the event was larger than a webhook may be: the largest members of `record` (then `transfer`, then the last of `changes`) are left out. Otherwise absent.',
    ),
  truncated: z
    .array(z.string())
    .exactOptional()
    .describe(
      'The names of members of `metadata` that are left out, the largest first, where the event without its record is still larger than a webhook may be. Otherwise absent.',
    ),
  recordUrl: z
    .string()
    .exactOptional()
    .describe(
      'Address of the whole event, for whoever has this link, for 7 to 8 days after the attempt. Only beside `recordTruncated`, where `server.publicUrl` and an admin token of the API are set.',
    ),
};

const REMARKS = {
  skipped: z
    .boolean()
    .exactOptional()
    .describe('True when a usual step between `previousStatus` and `status` was not seen; otherwise absent.'),
  regression: z
    .boolean()
    .exactOptional()
    .describe(
      'True when the subject moved backward, or an older answer was confirmed until it was accepted; otherwise absent.',
    ),
  afterRestore: z
    .literal(true)
    .exactOptional()
    .describe(
      'True for the first event of a subject after a restore of Redis: you may have got this state before, under this id or, where the restore has lost what came between, under another one. Compare it with the state that you have. Otherwise absent.',
    ),
  elapsedSeconds: z
    .int()
    .min(0)
    .exactOptional()
    .describe(
      'Time for which the subject had been under way: from the first `updatedAt` seen while it waited to `upstreamUpdatedAt`, for `overdue` to `timestamp`. Absent where it did not move on from waiting, or either is not known.',
    ),
};

const WAITED = {
  suspended: z
    .literal(true)
    .exactOptional()
    .describe(
      'True when the event waited: what leads to it had left the config, and was put back within `removal.graceSpan`. Otherwise absent.',
    ),
};

const SUBSCRIBERS = {
  wallets: z.array(z.string()).describe('The wallets of your subscriptions whose pages showed the subject.'),
  subscriptions: z.array(z.string()).describe('Your subscriptions that lead to this receiver.'),
  metadata: z
    .record(z.string(), z.string())
    .describe('The `metadata` of those subscriptions, merged in the order of the config.'),
};

const TIMES = {
  upstreamUpdatedAt: z
    .int()
    .nullable()
    .describe("The record's `updatedAt` in Unix seconds; null where it has none."),
  detectionDelaySeconds: z
    .number()
    .min(0)
    .nullable()
    .describe('`timestamp` minus `upstreamUpdatedAt`, good to a second; null where the latter is.'),
};

const DIGITS = z.string().regex(/^\d{1,78}$/);

const PLACE = { chainId: z.string().exactOptional(), token: z.string().exactOptional() };

/** Promises of a quote. Amounts are base units. `fees[].kind`: the quote's name of the fee; `estimateSeconds`: of delivery. */
export const PROMISED = z.object({
  quote: z.string(),
  source: z
    .object({ ...PLACE, amount: DIGITS.exactOptional(), funder: z.string().exactOptional() })
    .exactOptional(),
  destination: z
    .object({
      ...PLACE,
      amount: DIGITS.exactOptional(),
      minimum: DIGITS.exactOptional(),
      recipient: z.string().exactOptional(),
    })
    .exactOptional(),
  fees: z
    .array(z.object({ kind: z.string(), token: z.string().exactOptional(), amount: DIGITS }))
    .exactOptional(),
  estimateSeconds: z.int().min(0).exactOptional(),
  refundRecipient: z.string().exactOptional(),
  /** The intent is fulfilled on its source chain, and the token's issuer carries the money to the target. */
  local: z.literal(true).exactOptional(),
});

/**
 * Facts stored beside the record, since they cannot be derived later. Receivers get only values derived from
 * `before` (path -> old value, null for one too long to store, no entry for none) and `fundedAt` (Unix seconds).
 */
const STORED = {
  before: z.record(z.string(), z.json()).exactOptional(),
  promised: PROMISED.exactOptional(),
  fundedAt: z.int().exactOptional(),
};

const END = z.object({
  chainId: z.string().exactOptional().describe("The chain's id, as text."),
  chain: z.string().exactOptional().describe('Its name, where it is known.'),
  txHash: z.string().exactOptional().describe('The transaction.'),
  txUrl: z.string().exactOptional().describe('Its page at a block explorer.'),
});

const MONEY = {
  amount: DIGITS.describe('Base units.'),
  units: z
    .string()
    .exactOptional()
    .describe('The same in token units, such as `1250.5`; absent where the decimals are not certain.'),
  token: z.string().exactOptional().describe("The token's address."),
  symbol: z.string().exactOptional().describe('Its name, where it is known.'),
  chainId: z.string().exactOptional().describe('The chain it is on.'),
};

export const TRANSFER = z.object({
  source: END.exactOptional().describe('The end at which it is funded.'),
  destination: END.exactOptional().describe('The end at which it is delivered.'),
  refund: END.exactOptional().describe('The end at which it was paid back.'),
  toSend: z.object(MONEY).exactOptional().describe('Amount that is to be sent, until there is `sent`.'),
  sent: z.object(MONEY).exactOptional().describe('Amount that the source transaction sent.'),
  promised: z
    .object(MONEY)
    .exactOptional()
    .describe(
      'Amount that is to be delivered: by the quote, else by the last of `record.steps`, for a route by the best quote.',
    ),
  minimum: z.object(MONEY).exactOptional().describe("The quote's minimum."),
  delivered: z.object(MONEY).exactOptional().describe('Amount that the destination transaction delivered.'),
  shortfall: z
    .object({
      ...MONEY,
      share: z.number().min(0).max(1).describe('`amount` as a share of the minimum, to six digits.'),
    })
    .exactOptional()
    .describe(
      'By how much less than the minimum was delivered; only where both are amounts of one token on one chain.',
    ),
  fees: z
    .array(z.object({ kind: z.string().exactOptional().describe('Its name in the quote.'), ...MONEY }))
    .exactOptional()
    .describe('The fees of the quote, at most ten.'),
  quote: z.string().exactOptional().describe('The quote that promised it, where it was imported.'),
  funder: z.string().exactOptional().describe('Address that sends.'),
  recipient: z.string().exactOptional().describe('Address that receives.'),
  refundRecipient: z.string().exactOptional().describe('Address that gets it back if it fails.'),
  secondsSinceFunding: z
    .int()
    .min(0)
    .exactOptional()
    .describe(
      'From the first `updatedAt` seen as `pending` to `upstreamUpdatedAt`, for events of the clock to `timestamp`.',
    ),
  failed: z
    .array(
      z.object({
        path: z.string().describe('Its path in `record`.'),
        status: z.string().describe('Its word for the failure.'),
        chainId: z.string().exactOptional(),
        intentHash: z.string().exactOptional(),
        reason: z.string().exactOptional().describe('The reason, where the record has one.'),
      }),
    )
    .exactOptional()
    .describe('Steps, intents and sub-statuses that have failed, at most ten.'),
  error: z.string().exactOptional().describe('The error text of the record.'),
  changed: z
    .array(
      z.object({
        path: z.string().describe('As in `changes`.'),
        old: z.json().exactOptional().describe('The value before; null: there was none; absent: too long.'),
        new: z.json().exactOptional().describe('The value now, likewise.'),
      }),
    )
    .exactOptional()
    .describe('The members that changed, with both values. Absent at first sight.'),
});

const EXPECTED = z.object({
  status: z
    .string()
    .describe(
      'The status that is waited for, as in event types: `filled`, then `settled`; `published` of a vault.',
    ),
  at: z.iso.datetime().describe('By when it is expected: 9 of 10 that still come have come by then.'),
  probability: z
    .number()
    .min(0)
    .max(1)
    .describe(
      'Probability that it comes by `at`, of all that have waited as long: less than 0.9, for some never come.',
    ),
  medianAt: z.iso.datetime().describe('By when half of those that still come have come.'),
});

/** Expected end of the present stage. */
export type ExpectedBy = z.infer<typeof EXPECTED>;

/** Facts of the event's transfer. */
export type TransferFacts = z.infer<typeof TRANSFER>;

/** Promises of a quote for a transfer. */
export type Promised = z.infer<typeof PROMISED>;

const REPORTED = {
  transfer: TRANSFER.exactOptional().describe(
    'Facts on the transfer, in one shape for every kind of subject. Those that nothing has shown are absent.',
  ),
};

const OUTLOOK = {
  expectedBy: EXPECTED.exactOptional().describe(
    'By when the next usual status is expected, at `timestamp`. Absent where nothing is under way, while fewer than 20 were seen, and where it is more likely not to come at all.',
  ),
};

const PROVEN = {
  proof: PROOF.exactOptional().describe(
    'The result of checking a payment with your own RPC endpoints: of `intent.verified`, `intent.disputed` and `intent.unproven`; otherwise absent.',
  ),
};

const FACTS = { ...STATE, ...REMARKS, ...OUTLOOK, ...PROVEN, ...TIMES, ...STORED };

/** The event as it is made: one for all receivers, and immutable. */
export const EVENT = z.object({ ...HEAD, data: z.object(FACTS) });

/** An object that came out of `JSON.parse`: its members are JSON, however many there are. */
const PARSED = z.custom<JsonObject>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'expected an object',
);

/** The event as read from the log: members added by a later version are preserved and reach the receivers. */
export const STORED_EVENT = z.looseObject({
  ...HEAD,
  data: z.looseObject({
    ...FACTS,
    subject: z.looseObject(SUBJECT),
    record: PARSED,
    before: PARSED.exactOptional(),
  }),
});

/** The event as a receiver gets it: the body of a webhook, which consumers may rely on. */
export const RENDERED_EVENT = z
  .object({
    ...HEAD,
    data: z.object({
      ...STATE,
      ...REPORTED,
      ...CUT,
      ...REMARKS,
      ...OUTLOOK,
      ...PROVEN,
      ...SUBSCRIBERS,
      ...WAITED,
      ...TIMES,
    }),
  })
  .meta({ title: 'Intentwatch event' });
