import { isJsonObject, type JsonObject } from '../json.ts';
import { amountOf, wordOf } from '../quotes/promised.ts';
import { foldHex, parseSubjectId, type SubjectId } from '../subjects/subject.ts';
import { type Leg, readTransfer } from '../transfers/transfer.ts';
import type { Payment } from './proof.ts';

/** How a chain is asked, and how its addresses are written. */
type ChainFamily = 'evm' | 'solana';

/** What `getGenesisHash` answers on Solana, by the id that cross-chain services use for it. */
export const SOLANA_GENESIS: ReadonlyMap<string, string> = new Map([
  ['1399811149', '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d'],
]);

/** Chains that are no EVM chain and not Solana, by the ids that cross-chain services use for them. */
const OTHERS: ReadonlyMap<string, string> = new Map([
  ['728126428', 'Tron'],
  ['2494104990', 'Tron Shasta'],
  ['3448148188', 'Tron Nile'],
]);

/** How a chain is asked; null for one whose transactions cannot be checked. */
export function chainFamily(chainId: string): ChainFamily | null {
  if (SOLANA_GENESIS.has(chainId)) return 'solana';
  return OTHERS.has(chainId) || !/^[1-9]\d{0,15}$/.test(chainId) ? null : 'evm';
}

/** True when a text is an address of an EVM chain, in any case of letters. */
function isEvmAddress(text: string): boolean {
  return /^0x[0-9a-fA-F]{40}$/.test(text);
}

/** How wallets write a chain's own money where a token's address is requested; it moves without a log. */
const NATIVE: ReadonlySet<string> = new Set([
  '0x0000000000000000000000000000000000000000',
  '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee',
  '11111111111111111111111111111111',
]);

/** True when a token's address stands for the chain's own money. */
export function isNativeToken(address: string): boolean {
  return NATIVE.has(address.startsWith('0x') ? address.toLowerCase() : address);
}

export type { Payment } from './proof.ts';

/** What the upstream has stated about one payment of a transfer. */
export type Stated = {
  subject: SubjectId;
  /** `0x` and 64 hex digits, in lower case; null where the id of the subject is no such hash. */
  intentHash: string | null;
  payment: Payment;
  chainId: string;
  /** Hex in lower case, base58 as it is. */
  txHash: string;
  /** The token's address as `txHash` is written. Of a refund, of which no token is stated: the token that was sent. */
  token: string | null;
  /** Base units; null where none is stated, as of a refund. */
  amount: string | null;
  /** Of a refund: what was sent, in base units, for no more can come back; null where that is not stated, and else. */
  sent: string | null;
};

/**
 * A statement with those who may rightly receive the payment, as far as the user named them; empty where that is not known.
 */
export type Statement = Stated & { recipients: string[] };

/** The place where the recipients of a delivery are known from: the user's word, and an imported quote. */
type KnownRecipients = {
  recipients?: readonly string[];
  promised?: { destination?: { chainId?: string; recipient?: string } } | null;
};

/**
 * The statements that a record of a transfer makes: its `destinationTx`, its `sourceTx`, and the refund of a step. Only
 * intents make any: a quote or job repeats what its intent states, and one payment would be claimed twice.
 */
export function statementsOf(
  { subject, record }: { subject: SubjectId; record: JsonObject },
  known: KnownRecipients = {},
): Statement[] {
  const key = parseSubjectId(subject);
  if (key?.kind !== 'intent') return [];
  const intentHash = /^0x[0-9a-fA-F]{64}$/.test(key.hash) ? key.hash.toLowerCase() : null;
  const { source, refund } = readTransfer(record);
  const sent = source?.members.includes('sourceTx') ? source : null;
  const paid = [
    { payment: 'destination', ...statedPayment(record.destinationTx), sent: null },
    { payment: 'source', ...statedPayment(record.sourceTx), sent: null },
    {
      payment: 'refund',
      chainId: refund?.chainId ?? null,
      txHash: refund?.txHash ?? null,
      token: refundedToken(refund, sent),
      amount: null,
      sent: amountOf(sent?.amount ?? undefined),
    },
  ] as const;
  return paid.flatMap(({ payment, chainId, txHash, token, amount, sent }) => {
    const [chain, hash] = [wordOf(chainId), wordOf(txHash)];
    if (chain === null || hash === null) return [];
    return [
      {
        subject,
        intentHash,
        payment,
        chainId: chain,
        txHash: foldHex(hash),
        token: token === null ? null : foldHex(token),
        amount,
        sent,
        recipients: recipientsOf({ payment, chainId: chain, token }, known),
      },
    ];
  });
}

/**
 * What a statement says, as text: two of one payment say the same exactly where these are equal. Who may receive it is the
 * user's word, and not part of it.
 */
export function statementPrint({
  chainId,
  txHash,
  token,
  amount,
  sent,
}: Pick<Statement, 'chainId' | 'txHash' | 'token' | 'amount' | 'sent'>): string {
  return JSON.stringify([chainId, txHash, token, amount, sent]);
}

/** Who may rightly receive a payment that was stated, by what is known now. */
export function recipientsOf(
  { payment, chainId, token }: Pick<Statement, 'payment' | 'chainId' | 'token'>,
  known: KnownRecipients,
): string[] {
  return payment === 'destination' ? recipientsOn(chainId, token, known) : [];
}

/**
 * A refund gives back what was sent. One that is stated by the very transaction that funded it is known by nothing: what
 * moved there was the funding.
 */
function refundedToken(refund: Leg | null, sent: Leg | null): string | null {
  if (refund === null || sent === null || refund.chainId !== sent.chainId) return null;
  const isFunding =
    refund.txHash !== null && sent.txHash !== null && foldHex(refund.txHash) === foldHex(sent.txHash);
  return isFunding ? null : sent.token;
}

/** A transaction summary as far as it can be read: a bad amount costs no hash. */
function statedPayment(value: JsonObject[string] | undefined) {
  const summary = isJsonObject(value) ? value : {};
  return {
    chainId: wordOf(summary.chainId),
    txHash: wordOf(summary.txHash),
    token: wordOf(summary.token),
    amount: amountOf(summary.amount),
  };
}

/** Those that are addresses of the payment's kind of chain: the wallets of a user are on several. */
function recipientsOn(chainId: string, token: string | null, { recipients, promised }: KnownRecipients) {
  const quoted = promised?.destination;
  const named = [
    ...(recipients ?? []),
    ...(quoted?.recipient !== undefined && (quoted.chainId ?? chainId) === chainId ? [quoted.recipient] : []),
  ];
  const isEvm = token === null || isEvmAddress(token);
  return [...new Set(named.filter((one) => isEvmAddress(one) === isEvm).map(foldHex))];
}
