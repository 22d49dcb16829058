import type { Lie } from '../chains/lies.ts';
import type { Chain } from './chains.ts';

/** Origin of a transfer: the subject before its intent. */
export type Origin = 'direct' | 'quote' | 'gasless' | 'vault';

/**
 * End of a transfer. `unborn` ends before there is an intent: the gasless job fails, the vault is never funded.
 * `late-details` settles too, but is `filled` shortly before its destination transaction appears.
 */
export type Fate = 'settled' | 'late-details' | 'refunded' | 'failed' | 'unborn';

/** One side of a transfer: tokens on a chain and the transaction that moves them. */
export type Leg = { chain: Chain; token: string; amount: string; txHash: string };

/** A gasless job. `permitTxHash` is null for an ERC-3009 authorization, which needs no transaction of its own. */
export type Job = { uuid: string; permitTxHash: string | null };

/** Everything about one transfer, drawn before its birth. */
export type TransferPlan = {
  intentHash: string;
  origin: Origin;
  fate: Fate;
  funder: string;
  recipient: string;
  /** Receives a refund; null where it is the funder. */
  refundRecipient: string | null;
  source: Leg;
  destination: Leg;
  refundTxHash: string;
  quoteUuid: string | null;
  job: Job | null;
  vaultAddress: string | null;
  /** Address at which the Portal holds what funds a client's quote, on EVM chains. */
  intentVault: string | null;
  /** For a local intent: the transaction on the source chain that fulfils it by a burn; the destination's mints the tokens. */
  burn: { txHash: string } | null;
  /** For a quote between two symbols: an intent of its own swaps the arriving token. */
  swap: { intentHash: string; token: string; txHash: string } | null;
  /** True when wallet pages also list its deposit address, as a record of type `deposit-address`. */
  showsDepositAddress: boolean;
  /** The arriving amount where it differs from the agreed one, in base units. */
  delivers: string | null;
  /** The bridge step fails once, while the statuses stay. */
  stepFails: boolean;
  /** Contents of its chain where they differ from the upstream's statement about the delivery or refund. */
  lie: Lie | null;
  waits: Waits;
};

/** Duration of each state, in seconds before time is scaled. */
export type Waits = {
  /** From the first subject (quote, vault) to the next. */
  toFunding: number;
  /** From a job or funded vault to the intent. */
  toPublishing: number;
  toFill: number;
  toDetails: number;
  toSettlement: number;
  toExpiry: number;
  toRefundable: number;
  toRefund: number;
  toFailure: number;
};

/** Time in which a vault can be funded, in seconds before time is scaled. */
export const VAULT_VALIDITY_SECONDS = 300;

/** The same of a vault of the legacy generation, which names no destination. */
export const LEGACY_VAULT_VALIDITY_SECONDS = 4 * 3_600;

/** Time in which a quote can be funded, in seconds before time is scaled. */
export const QUOTE_VALIDITY_SECONDS = 300;

/** Every intent of a transfer, the main one first. */
export function intentHashesOf({ intentHash, swap }: TransferPlan): string[] {
  return swap === null ? [intentHash] : [intentHash, swap.intentHash];
}
