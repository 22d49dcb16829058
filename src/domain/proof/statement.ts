import { isJsonObject, type JsonObject } from '../json.ts';
import { amountOf, wordOf } from '../quotes/promised.ts';
import { foldHex, parseSubjectId, type SubjectId } from '../subjects/subject.ts';
import { type AddedToken, COMMON_NAMES, extendDirectory, tokenKey } from '../transfers/chains.ts';
import { type Leg, readTransfer } from '../transfers/transfer.ts';
import type { Payment } from './proof.ts';

type ChainFamily = 'evm' | 'solana';

/** Answer to `getGenesisHash` on Solana, by the id that cross-chain services use for it. */
export const SOLANA_GENESIS: ReadonlyMap<string, string> = new Map([
  ['1399811149', '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d'],
]);

/** Chains other than EVM and Solana, by the ids that cross-chain services use for them. */
const OTHERS: ReadonlyMap<string, string> = new Map([
  ['728126428', 'Tron'],
  ['2494104990', 'Tron Shasta'],
  ['3448148188', 'Tron Nile'],
]);

/** Family of a chain; null for one whose transactions cannot be checked. */
export function chainFamily(chainId: string): ChainFamily | null {
  if (SOLANA_GENESIS.has(chainId)) return 'solana';
  return OTHERS.has(chainId) || !/^[1-9]\d{0,15}$/.test(chainId) ? null : 'evm';
}

function isEvmAddress(text: string): boolean {
  return /^0x[0-9a-fA-F]{40}$/.test(text);
}

/** Token addresses that wallets use for a chain's native currency, which moves without a log. */
const NATIVE: ReadonlySet<string> = new Set([
  '0x0000000000000000000000000000000000000000',
  '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee',
  '11111111111111111111111111111111',
]);

/** True when a token's address means the chain's native currency. */
export function isNativeToken(address: string): boolean {
  return NATIVE.has(address.startsWith('0x') ? address.toLowerCase() : address);
}

export type { Payment } from './proof.ts';

/** Upstream's statement about one payment of a transfer. */
export type Stated = {
  subject: SubjectId;
  /** `0x` and 64 hex digits, in lower case; null when the subject's id is no such hash. */
  intentHash: string | null;
  payment: Payment;
  chainId: string;
  /** Hex in lower case, base58 unchanged. */
  txHash: string;
  /** The token's address, written like `txHash`. A refund states no token: the sent token. */
  token: string | null;
  /** Base units; null when none is stated, as of a refund. */
  amount: string | null;
  /** For a refund: sent base units, the most that can come back; null when not stated, and for other payments. */
  sent: string | null;
};

/** A statement with the rightful recipients of the payment; empty when unknown. */
export type Statement = Stated & { recipients: string[] };

/** Facts that name recipients. `recipients`: of deliveries, by the user; `promised`: by the imported quote. */
type RecipientFacts = {
  recipients?: readonly string[];
  promised?: {
    source?: { chainId?: string };
    destination?: { chainId?: string; recipient?: string };
    refundRecipient?: string;
  } | null;
};

/**
 * The statements of a transfer's record: its `destinationTx`, its `sourceTx`, and the refund of a step. Only intents
 * make any: a quote or job repeats those of its intent, and one payment would be claimed twice.
 */
export function statementsOf(
  { subject, record }: { subject: SubjectId; record: JsonObject },
  facts: RecipientFacts = {},
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
        recipients: recipientsOf({ payment, chainId: chain, token }, facts),
      },
    ];
  });
}

/** Text of a statement, without recipients: two of one payment state the same exactly when their texts are equal. */
export function statementPrint({ chainId, txHash, token, amount, sent }: Stated): string {
  return JSON.stringify([chainId, txHash, token, amount, sent]);
}

/** Rightful recipients of a stated payment, as known now. */
export function recipientsOf(
  { payment, chainId, token }: { payment: Payment; chainId: string; token: string | null },
  facts: RecipientFacts,
): string[] {
  switch (payment) {
    case 'destination':
      return ofKind(token, deliveredTo(chainId, facts));
    case 'refund':
      return ofKind(token, refundedTo(chainId, facts)).filter((one) => !isNativeToken(one));
    case 'source':
      return [];
    default:
      return payment satisfies never;
  }
}

/** A refund returns the sent token; none when it states the funding transaction itself, whose moves were the funding. */
function refundedToken(refund: Leg | null, sent: Leg | null): string | null {
  if (refund === null || sent === null || refund.chainId !== sent.chainId) return null;
  const isFunding =
    refund.txHash !== null && sent.txHash !== null && foldHex(refund.txHash) === foldHex(sent.txHash);
  return isFunding ? null : sent.token;
}

/** Reads a transaction summary member by member: an invalid amount does not discard the hash. */
function statedPayment(value: JsonObject[string] | undefined) {
  const summary = isJsonObject(value) ? value : {};
  return {
    chainId: wordOf(summary.chainId),
    txHash: wordOf(summary.txHash),
    token: wordOf(summary.token),
    amount: amountOf(summary.amount),
  };
}

function deliveredTo(chainId: string, { recipients = [], promised }: RecipientFacts): string[] {
  const { recipient, chainId: quotedChain = chainId } = promised?.destination ?? {};
  return recipient === undefined || quotedChain !== chainId ? [...recipients] : [...recipients, recipient];
}

/** Only the quote's word counts: the record is under check. */
function refundedTo(chainId: string, { promised }: RecipientFacts): string[] {
  const isHere = (promised?.source?.chainId ?? chainId) === chainId;
  const named = isHere ? promised?.refundRecipient : undefined;
  return named === undefined ? [] : [named];
}

/** Only addresses of the chain's kind: a user's wallets are on several kinds. */
function ofKind(token: string | null, named: readonly string[]): string[] {
  const isEvm = token === null || isEvmAddress(token);
  return [...new Set(named.filter((one) => isEvmAddress(one) === isEvm).map(foldHex))];
}

/** Rules about the tokens of one chain. */
export type TokenRules = {
  /** True when a token is in the user's list or in the packaged one. */
  isListed(token: string): boolean;
  /** True when a token moves as its logs state: it neither rebases nor takes fees. */
  isCheckable(token: string): boolean;
};

/**
 * Well-known tokens whose logs do not show the received amount: balances change by themselves (stETH, AMPL, OUSD,
 * USDM), or the contract may take a fee (PAXG). They are listed only if the user lists them.
 */
const NOT_CHECKABLE: readonly (readonly [chainId: string, address: string])[] = [
  ['1', '0xae7ab96520DE3A18E5e111B5EaAb095312D7fE84'],
  ['1', '0xD46bA6D942050d489DBd938a2C909A5d5039A161'],
  ['1', '0x2A8e1E676Ec238d8A992307B495b45B3fEAa5e86'],
  ['1', '0x59D9356E565Ab3A36dD77763Fc0d87fEaf85508C'],
  ['10', '0x59D9356E565Ab3A36dD77763Fc0d87fEaf85508C'],
  ['8453', '0x59D9356E565Ab3A36dD77763Fc0d87fEaf85508C'],
  ['42161', '0x59D9356E565Ab3A36dD77763Fc0d87fEaf85508C'],
  ['1', '0x45804880De22913dAFE09f4980848ECE6EcbAf78'],
];

/** The checked tokens of a chain: of the config and the packaged list, not of the upstream, whose statements are checked. */
export function tokenRules(config: {
  tokens: readonly AddedToken[];
  uncheckedTokens: readonly { chainId: string; address: string }[];
}): (chainId: string) => TokenRules {
  const listed = extendDirectory({ chains: [], tokens: config.tokens }, COMMON_NAMES);
  const unchecked = new Set([
    ...NOT_CHECKABLE.map(([chainId, address]) => tokenKey(chainId, address)),
    ...config.uncheckedTokens.map(({ chainId, address }) => tokenKey(chainId, address)),
  ]);
  return (chainId) => ({
    isListed: (token) => listed.token(chainId, token) !== null,
    isCheckable: (token) => !unchecked.has(tokenKey(chainId, token)),
  });
}
