import type { Agenda } from '../world/agenda.ts';
import { type BoundedLog, createBoundedLog } from '../world/bounded-log.ts';
import { CHAINS, type Chain } from '../world/chains.ts';
import type { TransferPlan } from '../world/plan.ts';
import { between, randomStream } from '../world/random.ts';
import type { IntentStatus } from '../world/record.ts';
import { type Blocks, createBlocks, type FinalityLag } from './blocks.ts';
import type { Engine } from './engine.ts';
import type { ShownTransaction } from './evm-shapes.ts';
import { createLedger, type Included, type Ledger, type Payment, type PaymentKind } from './ledger.ts';
import { createMachine, type Machine } from './machine.ts';
import { NOBODY, outcomeOf, partyOf } from './moves.ts';

/** A payment that the upstream has stated, and its time (Unix ms). */
export type StatedPayment = Payment & { at: number };

/** A chain with endpoints; `machine` executes the transactions of clients, on EVM chains. */
export type AskableChain = { chain: Chain; blocks: Blocks; machine: Machine | null };

/** The chains behind the sandbox, which hold the payments of its transfers. */
export type Chains = {
  /** Chains with endpoints: all but Tron. */
  readonly all: ReadonlyMap<number, AskableChain>;
  readonly ledger: Ledger;
  /** Payments that the upstream has stated, in order; the newest only. */
  readonly stated: BoundedLog<StatedPayment>;
  /** Notes a status of an intent: its payments so far are on their chains from now on. */
  follow(change: { plan: TransferPlan; status: IntentStatus; nowMs: number }): void;
  /** Adds the payments of past intents, without an entry in `stated`. */
  remember(change: { plan: TransferPlan; status: IntentStatus; nowMs: number }): void;
  /** Replaces the plan's payment where its lie requires another one; removes the lie where no such payment exists. */
  withOtherPayment(plan: TransferPlan): TransferPlan;
  close(): Promise<void>;
};

/** A client's transaction that succeeded; `engine` has the state after it. */
export type ExecutedTransaction = { chainId: number; transaction: ShownTransaction; engine: Engine };

/** Execution of the transactions of clients. */
export type EvmOptions = {
  nowMs: () => number;
  /** Starts an engine for a chain. */
  start: (chainId: number) => Promise<Engine>;
  /** Called when the agenda has new work. */
  scheduled: () => void;
  executed: (executed: ExecutedTransaction) => Promise<void>;
};

const STATED_CAPACITY = 200_000;

/** Age of a stale payment before the transfer. */
const STALE_MS = 86_400_000;

/** Longest time from a payment's block until the upstream knows of it, before time is scaled. */
const LONGEST_LAG_SECONDS = 2;

/** Share of the time to finality after which a reorganisation comes; a moved transaction follows after twice that. */
const REORGANISED_SHARE = 0.3;

const LONGEST_REORGANISATION_MS = 600_000;

/** Creates the chains. `finality` is that of all chains until it is set for one. */
export function createChains(options: {
  seed: number;
  timeScale: number;
  finality: FinalityLag;
  agenda: Agenda;
  evm: EvmOptions;
}): Chains {
  const { seed, timeScale, finality, agenda, evm } = options;
  const ledger = createLedger();
  const stated = createBoundedLog<StatedPayment>(STATED_CAPACITY);
  const all = new Map(
    CHAINS.filter(({ kind }) => kind !== 'tron').map((chain): [number, AskableChain] => {
      const blocks = createBlocks({ seed, chain, timeScale, finality });
      const machine =
        chain.kind === 'evm' ? createMachine({ chain, blocks, ...machineOptions(chain) }) : null;
      return [chain.chainId, { chain, blocks, machine }];
    }),
  );

  function machineOptions({ chainId }: Chain) {
    return {
      nowMs: evm.nowMs,
      start: evm.start,
      at: (dueMs: number, work: () => void) => {
        agenda.add(dueMs, work);
        evm.scheduled();
      },
      executed: (transaction: ShownTransaction, engine: Engine) =>
        evm.executed({ chainId, transaction, engine }),
    };
  }

  /** The last delivery of each chain, for a lie that claims it again. */
  const delivered = new Map<number, Payment>();
  const reported = new WeakMap<TransferPlan, Set<PaymentKind>>();

  function include(payment: Payment, nowMs: number): void {
    const on = all.get(payment.chainId);
    if (on === undefined || payment.lie === 'absent') return;
    if (ledger.get(payment.chainId, payment.txHash) !== undefined) return;
    // A client's own transaction made this payment.
    if (on.machine?.get(payment.txHash) !== undefined) return;
    const lagSeconds = between(randomStream(seed, 'lag', payment.txHash), 0, LONGEST_LAG_SECONDS);
    const staleMs = payment.lie === 'stale' ? STALE_MS : 0;
    const block = on.blocks.head(nowMs - staleMs - (lagSeconds * 1000) / timeScale);
    put({ ...payment, block }, on);
    if (payment.lie === 'moved' || payment.lie === 'dropped') disturb(payment, { on, nowMs });
  }

  function put(included: Included, { chain, machine }: AskableChain): void {
    ledger.include(included);
    machine?.move(outcomeOf(included, chain).moves);
  }

  /** Moves the funds of a filled intent from their holder to the solver; no transaction shows it. */
  function claim({ vaultAddress, intentVault, source }: TransferPlan): void {
    const from = vaultAddress ?? intentVault;
    if (from === null) return;
    const to = partyOf(source.chain.kind, 'solver');
    const { chain, token, amount } = source;
    all.get(chain.chainId)?.machine?.move([{ token, from, to, amount: BigInt(amount) }]);
  }

  function disturb(payment: Payment, { on, nowMs }: { on: AskableChain; nowMs: number }): void {
    const waitMs = msToFinality(on.blocks, nowMs) * REORGANISED_SHARE;
    agenda.add(nowMs + waitMs, (dueMs) => {
      if (!reorganiseOut(payment, { on, nowMs: dueMs }) || payment.lie === 'dropped') return;
      agenda.add(dueMs + waitMs, (laterMs) => put({ ...payment, block: on.blocks.head(laterMs) }, on));
    });
  }

  /** Drops the block that holds a payment, and the payment with it; false when it is final, or absent. */
  function reorganiseOut(payment: Payment, { on, nowMs }: { on: AskableChain; nowMs: number }): boolean {
    const included = ledger.get(payment.chainId, payment.txHash);
    if (included === undefined || included.block <= on.blocks.finalized(nowMs)) return false;
    on.blocks.reorganise(included.block, nowMs);
    ledger.drop(payment.chainId, payment.txHash);
    on.machine?.move(outcomeOf(included, on.chain).moves, true);
    return true;
  }

  return {
    all,
    ledger,
    stated,
    follow(change) {
      const { plan, status, nowMs } = change;
      const [first] = paymentsOf(plan, 'filled').slice(1);
      const on = all.get(plan.destination.chain.chainId);
      // The upstream reverts a fill when its chain was reorganised.
      if (status === 'pending' && first !== undefined && on !== undefined) {
        const included = ledger.get(first.chainId, first.txHash);
        if (included?.intentHash === plan.intentHash && reorganiseOut(first, { on, nowMs })) {
          reported.get(plan)?.delete(first.payment);
        }
      }
      const kinds = reported.get(plan) ?? new Set();
      reported.set(plan, kinds);
      for (const payment of paymentsOf(plan, status)) {
        if (kinds.has(payment.payment)) continue;
        kinds.add(payment.payment);
        include(payment, nowMs);
        if (payment.payment === 'destination') claim(plan);
        stated.add({ ...payment, at: nowMs });
        const isTrue = payment.payment === 'destination' && payment.lie === null;
        if (isTrue) delivered.set(payment.chainId, payment);
      }
    },
    remember({ plan, status, nowMs }) {
      for (const payment of paymentsOf(plan, status)) include(payment, nowMs);
    },
    async close() {
      await Promise.all([...all.values()].map(({ machine }) => machine?.close()));
    },
    withOtherPayment(plan) {
      const isRefund = plan.fate === 'refunded';
      if (plan.lie === 'funding') {
        return isRefund ? { ...plan, refundTxHash: plan.source.txHash } : { ...plan, lie: null };
      }
      if (plan.lie !== 'reused') return plan;
      const earlier = delivered.get((isRefund ? plan.source : plan.destination).chain.chainId);
      if (earlier === undefined || plan.swap !== null) return { ...plan, lie: null };
      const { token, amount, txHash, recipient } = earlier;
      if (isRefund) return { ...plan, refundTxHash: txHash };
      return { ...plan, recipient, destination: { ...plan.destination, token, amount, txHash } };
    },
  };
}

/** Time until the newest block is final, in ms; a limited time for a chain without finality. */
function msToFinality(blocks: Blocks, nowMs: number): number {
  const lag = blocks.finality();
  if ('seconds' in lag) return Math.min(lag.seconds * 1000, LONGEST_REORGANISATION_MS);
  const head = blocks.head(nowMs);
  const { timestamp } = blocks.at(Math.max(0, head - lag.blocks));
  return Math.min(nowMs - timestamp * 1000, LONGEST_REORGANISATION_MS);
}

/** Payments on chains for a status of an intent, its source first. */
function paymentsOf(plan: TransferPlan, status: IntentStatus): Payment[] {
  const { intentHash, source, destination, burn, swap, funder, recipient, vaultAddress, delivers } = plan;
  const portal = vaultAddress ?? plan.intentVault ?? partyOf(source.chain.kind, 'portal');
  const paid: Payment = {
    intentHash,
    payment: 'source',
    chainId: source.chain.chainId,
    txHash: source.txHash,
    token: source.token,
    amount: source.amount,
    from: funder,
    recipient: portal,
    lie: null,
  };
  if (status === 'refunded') {
    const back = {
      txHash: plan.refundTxHash,
      from: portal,
      recipient: plan.refundRecipient ?? funder,
      lie: plan.lie,
    };
    return [paid, { ...paid, ...back, payment: 'refund' }];
  }
  if (status !== 'filled' && status !== 'settled') return [paid];
  const arrived: Payment = {
    intentHash,
    payment: 'destination',
    chainId: destination.chain.chainId,
    txHash: destination.txHash,
    token: destination.token,
    amount: delivers ?? destination.amount,
    from:
      burn === null || destination.chain.kind !== 'evm' ? partyOf(destination.chain.kind, 'solver') : NOBODY,
    recipient,
    lie: plan.lie,
  };
  if (burn !== null) {
    const from = partyOf(source.chain.kind, 'solver');
    const { amount } = destination;
    return [
      paid,
      arrived,
      { ...paid, payment: 'burn', txHash: burn.txHash, amount, from, recipient: NOBODY },
    ];
  }
  if (swap === null) return [paid, arrived];
  return [paid, arrived, { ...arrived, intentHash: swap.intentHash, payment: 'swap', txHash: swap.txHash }];
}
