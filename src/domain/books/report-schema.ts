import { z } from 'zod';

const TIME = z.iso.datetime();

/** An amount of a token on a chain; negative when a correction removed more than came. */
const BOOK_AMOUNT = z.object({
  chainId: z.string().describe('Empty where it is not known.'),
  chain: z.string().nullable(),
  token: z.string().describe('Its address; empty where it is not known.'),
  symbol: z.string().nullable(),
  amount: z
    .string()
    .regex(/^-?\d+$/)
    .describe('Base units.'),
  units: z.string().nullable().describe('Token units; null where the decimals are not certain.'),
});

export type BookAmount = z.infer<typeof BOOK_AMOUNT>;

const SUM = BOOK_AMOUNT.extend({ count: z.int().describe('Of how many transfers.') });

/** A sum over transfers. */
export type BookSum = z.infer<typeof SUM>;

const COUNTED = z.object({ count: z.int(), amount: z.string(), units: z.string().nullable() });

const BALANCE = BOOK_AMOUNT.omit({ amount: true, units: true }).extend({
  opening: COUNTED.describe('Under way when the day began.'),
  started: COUNTED.describe('Funded in the day.'),
  ended: COUNTED.describe('Paid out or paid back in the day.'),
  closing: COUNTED.describe('Under way when the day ended: opening + started - ended.'),
  late: COUNTED.describe(
    'The part of `started` that was funded before the day, and was seen when that day was closed.',
  ),
  corrections: z.int().describe('How many entries of the day correct earlier ones.'),
});

export type Balance = z.infer<typeof BALANCE>;

const REPORTED = z.object({
  receiver: z.string(),
  state: z
    .string()
    .describe('`delivered`, `waiting`, `retrying`, `dead`, or `gone` where nothing is known any more.'),
  at: TIME.nullable().describe('When it was delivered.'),
});

export const PROOF_WORDS = ['verified', 'disputed', 'unproven', 'not checked'] as const;

const ROW = z.object({
  subject: z.string(),
  status: z.string().describe('The last one that the upstream reported before the day ended.'),
  phase: z.enum(['open', 'delivered', 'refunded']),
  fundedAt: TIME.nullable(),
  endedAt: TIME.nullable().describe('When it was paid out or paid back, on the upstream’s clock.'),
  fillSeconds: z.int().nullable().describe('From the funding to the payment on the destination.'),
  source: z.string().nullable().describe('The chain.'),
  destination: z.string().nullable(),
  sent: BOOK_AMOUNT.nullable(),
  isSentSeen: z.boolean().describe('False where `sent` is what was agreed on, for no transaction showed it.'),
  promised: BOOK_AMOUNT.nullable(),
  delivered: BOOK_AMOUNT.nullable(),
  fees: z.array(BOOK_AMOUNT).describe('Of the quote, where that was imported.'),
  sourceTx: z.string().nullable(),
  destinationTx: z.string().nullable(),
  refundTx: z.string().nullable(),
  proof: z
    .enum(PROOF_WORDS)
    .describe('The result of the check on the chain, as far as it was known when the day ended.'),
  proofReason: z.string().nullable(),
  reported: z.array(REPORTED).describe('By which receivers the newest status was reported, and when.'),
  wallets: z.array(z.string()),
  subscriptions: z.array(z.string()),
  metadata: z.record(z.string(), z.string()),
  carried: z.boolean().describe('Under way when the day began.'),
  late: z.boolean().describe('It has entries that happened in a day that was closed.'),
  corrections: z.int(),
});

/** A transfer in a day. */
export type ReportRow = z.infer<typeof ROW>;

/** Reasons for an exception, the worst first; exceptions are listed in this order. */
export const EXCEPTION_KINDS = [
  'disputed',
  'unproven',
  'refundable',
  'gone',
  'amount-unknown',
  'overdue',
  'undelivered',
  'in-flight',
] as const;

export type ExceptionKind = (typeof EXCEPTION_KINDS)[number];

const EXCEPTION = z.object({
  kind: z.enum(EXCEPTION_KINDS),
  subject: z.string(),
  text: z.string().describe('In a sentence.'),
});

export type BookException = z.infer<typeof EXCEPTION>;

const CHECK = z.object({ ok: z.boolean(), text: z.string() });

export type BookCheck = z.infer<typeof CHECK>;

export const REPORT = z
  .object({
    day: z.string(),
    zone: z.string(),
    from: TIME,
    to: TIME,
    state: z.enum(['closed', 'open']).describe('`closed`: nothing of it changes any more.'),
    madeAt: TIME,
    readUntil: TIME.nullable().describe('When the event log had been read to its end.'),
    notes: z.array(z.string()).describe('What a reader has to know.'),
    checks: z.array(CHECK).describe('What was held against each other.'),
    balances: z.array(BALANCE),
    delivered: z.array(SUM),
    refunded: z.array(SUM),
    fees: z.array(SUM),
    routes: z.array(
      SUM.extend({ side: z.enum(['started', 'delivered']), source: z.string(), destination: z.string() }),
    ),
    exceptions: z.array(EXCEPTION),
    transfers: z.array(ROW),
  })
  .meta({ id: 'Books' });

export type BooksReport = z.infer<typeof REPORT>;

/**
 * Breaks between the log and the books. `other-log`: the log was lost with its Redis. `trimmed`: entries expired from the
 * log unread. `lost`: the last read entry is gone, as after Redis went back to an older state.
 */
export const BREAKS = ['other-log', 'trimmed', 'lost'] as const;

export type BreakKind = (typeof BREAKS)[number];
