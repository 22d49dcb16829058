import type { Lie } from '../chains/lies.ts';
import type { Chain } from './chains.ts';

/** How a transfer comes about: what exists before its intent. */
export type Origin = 'direct' | 'quote' | 'gasless' | 'vault';

/**
 * How a transfer ends. `unborn` ends before there is an intent: the gasless job fails, the vault is never funded.
 * `late-details` settles too, but is `filled` a moment before its destination transaction appears.
 */
export type Fate = 'settled' | 'late-details' | 'refunded' | 'failed' | 'unborn';

/** One side of a transfer: tokens on a chain and the transaction that moves them. */
export type Leg = { chain: Chain; token: string; amount: string; txHash: string };

/** All that will ever be true of one transfer, drawn before it is born. */
export type TransferPlan = {
  intentHash: string;
  origin: Origin;
  fate: Fate;
  funder: string;
  recipient: string;
  source: Leg;
  destination: Leg;
  refundTxHash: string;
  quoteUuid: string | null;
  job: { uuid: string; permitTxHash: string } | null;
  vaultAddress: string | null;
  /** Of a quote between two symbols: what arrives is swapped, by an intent of its own. */
  swap: { intentHash: string; token: string; txHash: string } | null;
  /** Wallet pages show the address that was paid to as well, as a record of type `deposit-address`. */
  showsDepositAddress: boolean;
  /** What arrives where that is not what was agreed on, in base units. */
  delivers: string | null;
  /** The step that bridges fails once, while the statuses stand. */
  stepFails: boolean;
  /** What its chain shows of what was delivered or paid back, where that is not what the upstream states. */
  lie: Lie | null;
  waits: Waits;
};

/** The time that a transfer stays in each state, in seconds before time is scaled. */
export type Waits = {
  /** From the first thing (quote, vault) to the next. */
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

/** The time that a vault can be funded, in seconds before time is scaled. */
export const VAULT_VALIDITY_SECONDS = 300;

/** The time that a quote can be funded, in seconds before time is scaled. */
export const QUOTE_VALIDITY_SECONDS = 300;

/** Every intent of a transfer, the main one first. */
export function intentHashesOf({ intentHash, swap }: TransferPlan): string[] {
  return swap === null ? [intentHash] : [intentHash, swap.intentHash];
}
