import type { Shown } from './life.ts';
import { intentHashesOf, type Job, type Leg, type TransferPlan } from './plan.ts';
import type {
  GatewayJobRecord,
  GatewayJobStatus,
  IntentStatus,
  JobStatus,
  QuoteStatus,
  StatusRecord,
  Step,
  TransactionSummary,
  VaultRecord,
  VaultState,
} from './record.ts';

const GATEWAY_WORDS = {
  pending: 'PENDING',
  submitted: 'PERMIT_SENT',
  published: 'COMPLETED',
  failed: 'FAILED',
} as const satisfies Record<JobStatus, GatewayJobStatus>;

/** The deposit gateway's state of a job for that of the status endpoint: without a permit, none is sent. */
export function gatewayWord({ permitTxHash }: Job, status: JobStatus): GatewayJobStatus {
  return status === 'submitted' && permitTxHash === null ? 'PENDING' : GATEWAY_WORDS[status];
}

const BRIDGE_WORDS = {
  nothing: 'CREATED',
  source: 'CREATED',
  failure: 'FAILED',
  destination: 'FULFILLED',
  refund: 'REFUNDED',
} as const satisfies Record<Shown, Step['status']>;

type Moving = { plan: TransferPlan; shown: Shown; updatedAt: number };

/** The status endpoint's record of an intent. */
export function intentRecord({
  status,
  ...moving
}: Moving & { status: Exclude<IntentStatus, 'unknown'> }): StatusRecord {
  const { plan, updatedAt } = moving;
  return {
    id: `intent:${plan.intentHash}`,
    type: 'intent',
    status,
    updatedAt,
    txHash: plan.source.txHash,
    ...movements(moving),
  };
}

/** The status endpoint's record of a quote: its outcome appears only once it is funded. */
export function quoteRecord({
  quoteUuid,
  status,
  ...moving
}: Moving & { quoteUuid: string; status: QuoteStatus }): StatusRecord {
  return {
    id: `quote:${quoteUuid}`,
    type: 'quote',
    status,
    updatedAt: moving.updatedAt,
    ...(moving.shown === 'nothing' ? {} : { intentHashes: intentHashesOf(moving.plan) }),
    ...movements(moving),
  };
}

type JobAt = {
  plan: TransferPlan;
  job: Job;
  status: JobStatus;
};

/** The status endpoint's record of a gasless job. */
export function jobRecord({ plan, job, status, updatedAt }: JobAt & { updatedAt: number }): StatusRecord {
  const intentHashes = status === 'published' ? intentHashesOf(plan) : [];
  const quoteIds = plan.quoteUuid === null ? [] : [`quote:${plan.quoteUuid}`];
  return {
    id: `gasless:${job.uuid}`,
    type: 'gasless',
    status,
    updatedAt,
    intentHashes,
    subStatuses: [
      {
        chainId: plan.source.chain.chainId,
        quoteIds,
        txHash: status === 'pending' ? null : plan.source.txHash,
        intentHashes: intentHashes.slice(0, 1),
        state: status,
      },
      ...(plan.swap === null
        ? []
        : [
            {
              chainId: plan.destination.chain.chainId,
              quoteIds,
              txHash: null,
              intentHashes: intentHashes.slice(1),
              state: status,
            },
          ]),
    ],
  };
}

/** The deposit gateway's record of the same job. */
export function gatewayJobRecord({ plan, job, status }: JobAt): GatewayJobRecord {
  return {
    id: job.uuid,
    status: gatewayWord(job, status),
    amount: plan.source.amount,
    ...(status === 'pending' || job.permitTxHash === null ? {} : { permitTxHash: job.permitTxHash }),
    ...(status === 'published' ? { transferTxHash: plan.source.txHash, intentHash: plan.intentHash } : {}),
    ...(status === 'failed' ? { error: 'the transfer reverted: transfer amount exceeds balance' } : {}),
  };
}

/** The record of a vault. `deadline` is Unix seconds. */
export function vaultRecord({
  plan,
  vaultAddress,
  state,
  deadline,
}: {
  plan: TransferPlan;
  vaultAddress: string;
  state: VaultState;
  deadline: number;
}): VaultRecord {
  return {
    vaultAddress,
    amount: plan.source.amount,
    deadline,
    state,
    ...(state === 'PUBLISHED' ? { intentHash: plan.intentHash } : {}),
    sourceChainId: plan.source.chain.chainId,
  };
}

function movements({
  plan,
  shown,
}: Moving): Pick<StatusRecord, 'sourceTx' | 'destinationTx'> & { steps: Step[] } {
  if (shown === 'nothing') return { steps: [] };
  return {
    sourceTx: summary(plan.source),
    ...(shown === 'destination' ? { destinationTx: summary(delivered(plan)) } : {}),
    steps: [bridgeStep(plan, shown), ...swapSteps(plan, shown)],
  };
}

/** Steps of a swap: the arriving token is swapped into the wanted one, one to one, because the fees are the price. */
function swapSteps({ swap, destination: { chain, token, amount } }: TransferPlan, shown: Shown): Step[] {
  if (swap === null || shown === 'refund') return [];
  const { chainId } = chain;
  return [
    {
      type: 'SWAP',
      intentHash: swap.intentHash,
      status: shown === 'destination' ? 'FULFILLED' : 'CREATED',
      from: { token: swap.token, amount, chainId },
      to: { token, amount, chainId },
      transactions: shown === 'destination' ? { fulfilled: { chainId, txHash: swap.txHash } } : {},
    },
  ];
}

/** The status endpoint's record of the intent that swaps: no transaction before it is done. */
export function swapRecord({
  status,
  swap,
  ...moving
}: Moving & {
  status: Exclude<IntentStatus, 'unknown'>;
  swap: NonNullable<TransferPlan['swap']>;
}): StatusRecord {
  const { plan, shown, updatedAt } = moving;
  return {
    id: `intent:${swap.intentHash}`,
    type: 'intent',
    status,
    updatedAt,
    txHash: shown === 'destination' ? swap.txHash : null,
    steps: swapSteps(plan, shown),
  };
}

/** A wallet page's record of a deposit address. */
export function depositAddressRecord({
  status,
  address,
  ...moving
}: Moving & { status: Exclude<IntentStatus, 'unknown'>; address: string }): StatusRecord {
  return {
    id: `deposit-address:${address}`,
    type: 'deposit-address',
    status,
    updatedAt: moving.updatedAt,
    intentHashes: intentHashesOf(moving.plan),
    ...movements(moving),
  };
}

function bridgeStep(
  { intentHash, source, destination, burn, refundTxHash, swap }: TransferPlan,
  shown: Shown,
): Step {
  const fulfilment =
    burn === null
      ? { chainId: destination.chain.chainId, txHash: destination.txHash }
      : { chainId: source.chain.chainId, txHash: burn.txHash };
  return {
    type: 'BRIDGE',
    intentHash,
    status: BRIDGE_WORDS[shown],
    from: { token: source.token, amount: source.amount, chainId: source.chain.chainId },
    to: {
      token: swap?.token ?? destination.token,
      amount: destination.amount,
      chainId: destination.chain.chainId,
    },
    transactions: {
      created: { chainId: source.chain.chainId, txHash: source.txHash },
      ...(shown === 'destination' ? { fulfilled: fulfilment } : {}),
      ...(shown === 'refund' ? { refunded: { chainId: source.chain.chainId, txHash: refundTxHash } } : {}),
    },
  };
}

/** The arriving leg: as agreed, unless the plan has another amount. */
function delivered({ destination, delivers }: TransferPlan): Leg {
  return { ...destination, amount: delivers ?? destination.amount };
}

function summary({ chain, txHash, token, amount }: Leg): TransactionSummary {
  return { chainId: chain.chainId, txHash, token, amount };
}
