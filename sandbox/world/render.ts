import type { Shown } from './life.ts';
import { intentHashesOf, type Leg, type TransferPlan } from './plan.ts';
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

/** The deposit gateway's word for each of the status endpoint's. */
export const GATEWAY_WORDS = {
  pending: 'PENDING',
  submitted: 'PERMIT_SENT',
  published: 'COMPLETED',
  failed: 'FAILED',
} as const satisfies Record<JobStatus, GatewayJobStatus>;

/** What a record says of the step that bridges. */
const BRIDGE_WORDS = {
  nothing: 'CREATED',
  source: 'CREATED',
  failure: 'FAILED',
  destination: 'FULFILLED',
  refund: 'REFUNDED',
} as const satisfies Record<Shown, Step['status']>;

type Moving = { plan: TransferPlan; shown: Shown; updatedAt: number };

/** What the status endpoint says about an intent. */
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

/** What the status endpoint says about a quote: only once it is funded, what it became. */
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
  job: { uuid: string; permitTxHash: string };
  status: JobStatus;
};

/** What the status endpoint says about a gasless job. */
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

/** What the deposit gateway says about the same job. */
export function gatewayJobRecord({ plan, job, status }: JobAt): GatewayJobRecord {
  return {
    id: job.uuid,
    status: GATEWAY_WORDS[status],
    amount: plan.source.amount,
    ...(status === 'pending' ? {} : { permitTxHash: job.permitTxHash }),
    ...(status === 'published' ? { transferTxHash: plan.source.txHash, intentHash: plan.intentHash } : {}),
    ...(status === 'failed' ? { error: 'the transfer reverted: transfer amount exceeds balance' } : {}),
  };
}

/** What a vault lookup says. `deadline` is Unix seconds. */
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

/** What arrives first, and is swapped into the token that was wanted; one to one, for the price is in the fees. */
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

/** What the status endpoint says about the intent that swaps what arrives: no transaction before it is done. */
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

/** What a wallet page says about an address that was paid to. */
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
  { intentHash, source, destination, refundTxHash, swap }: TransferPlan,
  shown: Shown,
): Step {
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
      ...(shown === 'destination'
        ? { fulfilled: { chainId: destination.chain.chainId, txHash: destination.txHash } }
        : {}),
      ...(shown === 'refund' ? { refunded: { chainId: source.chain.chainId, txHash: refundTxHash } } : {}),
    },
  };
}

/** What arrives: what was agreed on, unless the plan says otherwise. */
function delivered({ destination, delivers }: TransferPlan): Leg {
  return { ...destination, amount: delivers ?? destination.amount };
}

function summary({ chain, txHash, token, amount }: Leg): TransactionSummary {
  return { chainId: chain.chainId, txHash, token, amount };
}
