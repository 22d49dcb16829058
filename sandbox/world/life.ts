import { type TransferPlan, VAULT_VALIDITY_SECONDS } from './plan.ts';
import type { IntentStatus, JobStatus, QuoteStatus, VaultState } from './record.ts';

/** Money movements of a transfer that a record shows; `failure` is `source` with a failed step. */
export type Shown = 'nothing' | 'source' | 'failure' | 'destination' | 'refund';

/** One part of a transfer takes a state, or shows more while its state stays. */
export type Change =
  | { thing: 'intent'; status: Exclude<IntentStatus, 'unknown'>; shown: Exclude<Shown, 'nothing'> }
  | { thing: 'quote'; status: QuoteStatus; shown: Shown }
  | { thing: 'job'; status: JobStatus }
  | { thing: 'vault'; state: VaultState };

/** One step of a life: changes that happen together, so many seconds (before time is scaled) after the step before. */
export type LifeStep = {
  afterSeconds: number;
  changes: Change[];
  /** The step waits for the next full second, so that `updatedAt` differs from the one before. */
  newSecond?: true;
};

/**
 * The life of a transfer:
 *
 *   quote    active ─► submitted (funded; shows the destination later)
 *   job      pending ─► submitted ─► published | failed
 *   vault    PENDING ─► FUNDING_DETECTED ─► PUBLISHED, or EXPIRED_UNFUNDED after its deadline
 *   intent   pending ─► filled ─► settled
 *                    ─► expired ─► refundable ─► refunded
 *                    ─► failed
 *
 * The intent is born with the change that names it: the quote's `submitted`, the job's `published`, the vault's `PUBLISHED`.
 */
export function lifeOf(plan: TransferPlan): LifeStep[] {
  return plan.fate === 'unborn' ? before(plan) : [...before(plan), ...after(plan)];
}

/** Steps after the funding of a client's quote or vault: by its job, else by a transaction, which is known at once. */
export function lifeOfFunded(plan: TransferPlan): LifeStep[] {
  const { quoteUuid, job, vaultAddress, waits } = plan;
  const detected: Change[] = vaultAddress === null ? [] : [{ thing: 'vault', state: 'FUNDING_DETECTED' }];
  const published: Change[] = [
    intentBorn,
    ...when(quoteUuid, { thing: 'quote', status: 'submitted', shown: 'source' }),
    ...when(job, { thing: 'job', status: 'published' }),
    ...when(vaultAddress, { thing: 'vault', state: 'PUBLISHED' }),
  ];
  if (job !== null) {
    return [
      { afterSeconds: 0, changes: [{ thing: 'job', status: 'pending' }] },
      { afterSeconds: waits.toPublishing / 2, changes: [{ thing: 'job', status: 'submitted' }, ...detected] },
      { afterSeconds: waits.toPublishing, changes: published },
      ...after(plan),
    ];
  }
  const seen: LifeStep[] = vaultAddress === null ? [] : [{ afterSeconds: 0, changes: detected }];
  const afterSeconds = vaultAddress === null ? 0 : waits.toPublishing;
  return [...seen, { afterSeconds, changes: published }, ...after(plan)];
}

function when(part: unknown, change: Change): Change[] {
  return part === null ? [] : [change];
}

const intentBorn: Change = { thing: 'intent', status: 'pending', shown: 'source' };

/** Steps up to the birth of the intent; for an unborn one, to the end. */
function before({ origin, fate, waits }: TransferPlan): LifeStep[] {
  switch (origin) {
    case 'direct':
      return [{ afterSeconds: 0, changes: [intentBorn] }];
    case 'quote':
      return [
        { afterSeconds: 0, changes: [{ thing: 'quote', status: 'active', shown: 'nothing' }] },
        {
          afterSeconds: waits.toFunding,
          changes: [intentBorn, { thing: 'quote', status: 'submitted', shown: 'source' }],
        },
      ];
    case 'gasless': {
      const started: LifeStep[] = [
        { afterSeconds: 0, changes: [{ thing: 'quote', status: 'active', shown: 'nothing' }] },
        { afterSeconds: waits.toFunding / 4, changes: [{ thing: 'job', status: 'pending' }] },
        { afterSeconds: waits.toFunding / 2, changes: [{ thing: 'job', status: 'submitted' }] },
      ];
      const ended: Change[] =
        fate === 'unborn'
          ? [{ thing: 'job', status: 'failed' }]
          : [
              intentBorn,
              { thing: 'quote', status: 'submitted', shown: 'source' },
              { thing: 'job', status: 'published' },
            ];
      return [...started, { afterSeconds: waits.toPublishing, changes: ended }];
    }
    case 'vault': {
      const created: LifeStep = { afterSeconds: 0, changes: [{ thing: 'vault', state: 'PENDING' }] };
      if (fate === 'unborn') {
        return [
          created,
          {
            afterSeconds: VAULT_VALIDITY_SECONDS + waits.toPublishing,
            changes: [{ thing: 'vault', state: 'EXPIRED_UNFUNDED' }],
          },
        ];
      }
      return [
        created,
        { afterSeconds: waits.toFunding, changes: [{ thing: 'vault', state: 'FUNDING_DETECTED' }] },
        { afterSeconds: waits.toPublishing, changes: [intentBorn, { thing: 'vault', state: 'PUBLISHED' }] },
      ];
    }
    default:
      return origin satisfies never;
  }
}

function after(plan: TransferPlan): LifeStep[] {
  return plan.stepFails ? [stepFailure(plan), ...ending(plan)] : ending(plan);
}

/** A failure of a step while the transfer is under way: in a second of its own, so that `updatedAt` changes. */
function stepFailure({ waits, quoteUuid }: TransferPlan): LifeStep {
  return {
    afterSeconds: waits.toExpiry / 3,
    changes: [
      { thing: 'intent', status: 'pending', shown: 'failure' },
      ...when(quoteUuid, { thing: 'quote', status: 'submitted', shown: 'failure' }),
    ],
    newSecond: true,
  };
}

/** The end of the intent. A failed step stays failed, unless a delivery or refund follows. */
function ending({ fate, waits, quoteUuid, stepFails }: TransferPlan): LifeStep[] {
  const quoteShows = (shown: Shown): Change[] =>
    quoteUuid === null ? [] : [{ thing: 'quote', status: 'submitted', shown }];
  const undelivered = stepFails ? 'failure' : 'source';
  const settled: LifeStep = {
    afterSeconds: waits.toSettlement,
    changes: [{ thing: 'intent', status: 'settled', shown: 'destination' }],
  };
  const filled: Change = { thing: 'intent', status: 'filled', shown: 'destination' };
  switch (fate) {
    case 'settled':
      return [{ afterSeconds: waits.toFill, changes: [filled, ...quoteShows('destination')] }, settled];
    case 'late-details':
      return [
        { afterSeconds: waits.toFill, changes: [{ ...filled, shown: 'source' }] },
        {
          afterSeconds: waits.toDetails,
          changes: [filled, ...quoteShows('destination')],
          newSecond: true,
        },
        settled,
      ];
    case 'refunded':
      return [
        {
          afterSeconds: waits.toExpiry,
          changes: [{ thing: 'intent', status: 'expired', shown: undelivered }],
        },
        {
          afterSeconds: waits.toRefundable,
          changes: [{ thing: 'intent', status: 'refundable', shown: undelivered }],
        },
        {
          afterSeconds: waits.toRefund,
          changes: [{ thing: 'intent', status: 'refunded', shown: 'refund' }, ...quoteShows('refund')],
        },
      ];
    case 'failed':
      return [
        {
          afterSeconds: waits.toFailure,
          changes: [{ thing: 'intent', status: 'failed', shown: undelivered }],
        },
      ];
    case 'unborn':
      return [];
    default:
      return fate satisfies never;
  }
}
