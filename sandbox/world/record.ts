import { createHash } from 'node:crypto';
import stringify from 'safe-stable-stringify';

/** Bodies that the upstream's interface names, members in its order. All timestamps are Unix seconds. */

export type TransactionSummary = { chainId: number; txHash: string; token: string; amount: string };

export type TransactionReference = { chainId: number; txHash: string };

export type StepSide = { token: string; amount: string; chainId: number };

export type StepType = 'BRIDGE' | 'SWAP';

export type Step = {
  type: StepType;
  intentHash: string;
  status: 'CREATED' | 'FAILED' | 'FULFILLED' | 'REFUNDED';
  from: StepSide;
  to: StepSide;
  transactions: {
    created?: TransactionReference;
    fulfilled?: TransactionReference;
    refunded?: TransactionReference;
  };
};

export type SubStatus = {
  chainId: number;
  quoteIds: string[];
  txHash: string | null;
  intentHashes: string[];
  state: JobStatus;
};

export const INTENT_STATUSES = [
  'pending',
  'filled',
  'settled',
  'refunded',
  'refundable',
  'expired',
  'failed',
  'unknown',
] as const;

export type IntentStatus = (typeof INTENT_STATUSES)[number];

export type QuoteStatus = 'active' | 'submitted';

/** The states of a gasless job at the status endpoint. */
export type JobStatus = 'pending' | 'submitted' | 'published' | 'failed';

/** The states of a gasless job at the deposit gateway. */
export type GatewayJobStatus = 'PENDING' | 'PERMIT_SENT' | 'COMPLETED' | 'FAILED';

export type VaultState = 'PENDING' | 'FUNDING_DETECTED' | 'PUBLISHED' | 'EXPIRED_UNFUNDED';

/** One element of `results` at the status endpoint. `updatedAt` is null only where `status` is `unknown`. */
export type StatusRecord = {
  id: string;
  type: 'intent' | 'quote' | 'gasless' | 'deposit-address';
  status: IntentStatus | QuoteStatus | JobStatus;
  updatedAt: number | null;
  intentHashes?: string[];
  txHash?: string | null;
  subStatuses?: SubStatus[];
  sourceTx?: TransactionSummary;
  destinationTx?: TransactionSummary;
  steps?: Step[];
};

/** Record of a gasless job at the deposit gateway; members appear when they are known. */
export type GatewayJobRecord = {
  id: string;
  status: GatewayJobStatus;
  permitTxHash?: string;
  transferTxHash?: string;
  intentHash?: string;
  amount: string;
  error?: string;
};

/** Record of a vault; `intentHash` appears once the intent is published. */
export type VaultRecord = {
  vaultAddress: string;
  amount: string;
  deadline: number;
  state: VaultState;
  intentHash?: string;
  sourceChainId: number;
};

/** Records are replaced, never changed: each is digested once. */
const digests = new WeakMap<object, string>();

/** A digest of a record without `updatedAt`: equal for equal records, in any order of members. */
export function contentOf(record: object): string {
  const cached = digests.get(record);
  if (cached !== undefined) return cached;
  const content = stringify({ ...record, updatedAt: undefined }) ?? '';
  const digest = createHash('sha256').update(content).digest('base64url').slice(0, 16);
  digests.set(record, digest);
  return digest;
}
