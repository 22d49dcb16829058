import { z } from 'zod';

/** Transactions of a transfer whose hashes its record states. */
export const PAYMENTS = ['destination', 'source', 'refund'] as const;

export type Payment = (typeof PAYMENTS)[number];

const DIGITS = z.string().regex(/^\d{1,78}$/);

/**
 * Units of a token that one transaction moved. On an EVM chain it is a `Transfer` log and `index` its log index. On
 * Solana it is the gain of one owner's accounts: `from` is null and `index` that of the account in the transaction.
 */
const MOVE = z.object({
  token: z.string(),
  from: z.string().nullable(),
  to: z.string(),
  amount: DIGITS,
  index: z.int().min(0),
  account: z.string().exactOptional(),
  /** Moved by a program that may have charged a fee, which is not guessed (Token-2022). */
  mayHaveFee: z.literal(true).exactOptional(),
  /** Other accounts of the owner lost meanwhile, on Solana: more may have reached him than remains. */
  isNetted: z.literal(true).exactOptional(),
});

export type Move = z.infer<typeof MOVE>;

/** A block; on Solana a slot and its blockhash. `timestamp` is in Unix seconds. */
const BLOCK = z.object({ number: DIGITS, hash: z.string(), timestamp: z.int().min(0) });

export type Block = z.infer<typeof BLOCK>;

/** `host` is the same for two endpoints whose URLs have one host; it does not name that host, which may be secret. */
const WHO = { endpoint: z.string(), host: z.string() };

const BURN_MESSAGES = z.array(z.object({ key: z.string(), recipient: z.string(), amount: DIGITS }));

/** Answer of one endpoint on one transaction. `head`: its newest final block before the transaction was requested. */
export const TX_STATE = z.discriminatedUnion('outcome', [
  z.object({
    ...WHO,
    outcome: z.literal('found'),
    block: BLOCK,
    head: BLOCK,
    /** At `head` or before it, and the endpoint's own block of that number. */
    isFinal: z.boolean(),
    succeeded: z.boolean(),
    /** Moves of the requested token; of every token when none was requested. */
    moves: z.array(MOVE),
    /** Intent hashes of the pinned fulfilment event; null when none is pinned. */
    fulfilled: z.array(z.string()).nullable(),
    /** Burn messages that the pinned transmitter sent and received; absent without one. */
    burns: z.object({ sent: BURN_MESSAGES, received: BURN_MESSAGES }).exactOptional(),
    /** The transaction has more moves than are stored. */
    isPartial: z.literal(true).exactOptional(),
  }),
  z.object({
    ...WHO,
    outcome: z.literal('absent'),
    isSynced: z.boolean(),
    head: BLOCK.nullable(),
  }),
  /** `reason` never holds the URL. */
  z.object({ ...WHO, outcome: z.literal('failed'), reason: z.string() }),
]);

export type TxState = z.infer<typeof TX_STATE>;

export type Found = Extract<TxState, { outcome: 'found' }>;

const DISPUTE_REASONS = ['reverted', 'no-transfer', 'short', 'other-recipient', 'other-intent'] as const;

export type DisputeReason = (typeof DISPUTE_REASONS)[number];

/** Reason of an unproven payment that is on the chain: nothing there ties it to the intent. */
export const NOT_TIED = 'not-tied';

/** Reasons that a proof can have. */
export type ProofReason = DisputeReason | typeof NOT_TIED;

const CHECKED = ['chain', 'success', 'token', 'amount', 'recipient', 'intent', 'exclusive', 'final'] as const;

/** Result of a check of the chain: `data.proof` of an event. */
export const PROOF = z.object({
  payment: z
    .enum(PAYMENTS)
    .describe('Which transaction of the transfer: its `destination`, `source` or `refund`.'),
  chainId: z.string(),
  txHash: z.string(),
  token: z.string().exactOptional().describe('The token whose moves were checked.'),
  stated: z
    .string()
    .exactOptional()
    .describe('Amount that the upstream stated, in base units; absent for a refund, which has none.'),
  checked: z
    .array(z.enum(CHECKED))
    .describe(
      'Checks that passed. `chain`: the endpoints are of this chain; `success`: the transaction succeeded; `token`: the token is yours or of the packaged list, and moved; `amount`: at least as much as stated; `recipient`: to the address that you or the quote named, or of a refund without one to whoever paid; `intent`: the pinned contract reports that it fulfils this intent, or that its burn does; `exclusive`: the log proves no other transfer and is not older than this one; `final`: the block is final.',
    ),
  reason: z
    .enum([...DISPUTE_REASONS, NOT_TIED])
    .exactOptional()
    .describe(
      'Why it is disputed. `not-tied`: why it is unproven, the payment of a local intent that nothing on the chain ties to it.',
    ),
  burn: z
    .object({ chainId: z.string(), txHash: z.string(), message: z.string() })
    .exactOptional()
    .describe(
      'Of a local intent: the transaction that fulfilled it, and the burn message that it sent, by source domain and nonce (`6:4711`).',
    ),
  singleSource: z
    .literal(true)
    .exactOptional()
    .describe('True where only one host was available; otherwise absent.'),
  block: BLOCK.exactOptional().describe('The block of the transaction.'),
  moved: z
    .array(MOVE)
    .exactOptional()
    .describe('The move that proves it; where disputed, the moves of the token, at most twenty.'),
  endpoints: z.array(z.string()).describe('The endpoints that reported it, by their names in the config.'),
});

export type Proof = z.infer<typeof PROOF>;

/** All evidence of a verdict as text: the block, the token's moves, and the signs of hidden ones. */
export function evidenceOf(found: Found, token: string | null): string {
  const { block, succeeded, moves, fulfilled, burns, isPartial } = found;
  const own = moves.filter((move) => move.token === token).sort((a, b) => a.index - b.index);
  const values = own.map(({ from, to, amount, index, account, mayHaveFee, isNetted }) => [
    index,
    from,
    to,
    amount,
    account ?? null,
    mayHaveFee ?? false,
    isNetted ?? false,
  ]);
  const hashes = fulfilled === null ? null : [...new Set(fulfilled)].sort();
  const { number, hash, timestamp } = block;
  return JSON.stringify([
    number,
    hash,
    timestamp,
    succeeded,
    values,
    hashes,
    burns?.received ?? [],
    isPartial ?? false,
  ]);
}

/** True for a move to one of some recipients, or to an account of theirs. */
export function isTo({ to, account }: Move, recipients: readonly string[]): boolean {
  return recipients.includes(to) || (account !== undefined && recipients.includes(account));
}

/** Amount that possible recipients got: all sent to known ones, else everybody's net gains, passed-through amounts once. */
export function gained(moves: readonly Move[], recipients: readonly string[]): bigint {
  if (recipients.length > 0) return moves.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  const net = new Map<string, bigint>();
  for (const { from, to, amount } of moves) {
    net.set(to, (net.get(to) ?? 0n) + BigInt(amount));
    if (from !== null) net.set(from, (net.get(from) ?? 0n) - BigInt(amount));
  }
  return [...net.values()].reduce((sum, value) => (value > 0n ? sum + value : sum), 0n);
}
