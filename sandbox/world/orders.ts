import type { Director, Life } from '../faults/director.ts';
import type { Generator, Order } from './generator.ts';
import { lifeOfFunded } from './life.ts';
import { type Fate, QUOTE_VALIDITY_SECONDS, type TransferPlan, VAULT_VALIDITY_SECONDS } from './plan.ts';
import { vaultKey, type World } from './world.ts';

/** How a transfer that a client ordered can end. */
export type OrderedFate = Exclude<Fate, 'unborn'>;

/** What becomes of a transfer that a client ordered: the transaction that funds it, and in `states` the one that is stated to have delivered. */
export type OrderedLife = {
  fate: OrderedFate;
  sourceTxHash: string;
  states?: { txHash: string; chainId?: number | undefined; token?: string | undefined };
} & Pick<TransferPlan, 'showsDepositAddress' | 'delivers' | 'stepFails' | 'lie'>;

/** A quote or vault that a client made. It can be funded once, before `expiresAt` (Unix seconds). */
export type Fundable = {
  readonly plan: TransferPlan;
  readonly expiresAt: number;
  /** What has funded it, in words; null while nothing has. */
  readonly fundedBy: string | null;
};

/** The quotes and vaults that clients made, and what becomes of them. */
export type Orders = {
  /** Draws a transfer and until when it can be funded. Nobody knows of it before `open`. */
  draft(order: Order): Fundable;
  open(fundable: Fundable): void;
  quote(uuid: string): Fundable | undefined;
  vault(vault: { chainId: number; address: string }): Fundable | undefined;
  isExpired(fundable: Fundable): boolean;
  /** The chain has seen the transaction that funds it. */
  fundByTransaction(fundable: Fundable, how: OrderedLife): void;
  /** A gasless job is queued that will fund it. */
  fundByJob(fundable: Fundable, by: { job: NonNullable<TransferPlan['job']>; funder: string }): void;
};

export function createOrders({
  world,
  director,
  generator,
  timeScale,
  nowMs,
  changed,
  at,
  prepare = (plan) => plan,
}: {
  world: World;
  director: Director;
  generator: Generator;
  timeScale: number;
  nowMs: () => number;
  /** To be called when there is something new to do later. */
  changed: () => void;
  /** Does something later; `dueMs` is Unix milliseconds. */
  at: (dueMs: number, work: (nowMs: number) => void) => void;
  /** Asked for everything that is funded: the plan by which it lives. */
  prepare?: (plan: TransferPlan) => TransferPlan;
}): Orders {
  const quotes = new Map<string, Fundable>();
  const vaults = new Map<string, Fundable>();
  let drafted = 0;

  function live(life: Life): void {
    director.live(life, nowMs());
    changed();
  }

  function store(fundable: Fundable): void {
    const { quoteUuid, vaultAddress, source } = fundable.plan;
    if (quoteUuid !== null) quotes.set(quoteUuid, fundable);
    if (vaultAddress !== null) {
      vaults.set(vaultKey({ chainId: source.chain.chainId, address: vaultAddress }), fundable);
    }
  }

  function fund(
    fundable: Fundable,
    { plan: agreed, fundedBy }: { plan: TransferPlan; fundedBy: string },
  ): void {
    if (fundable.fundedBy !== null) throw new Error(`already funded by ${fundable.fundedBy}`);
    const plan = prepare(agreed);
    store({ plan, expiresAt: fundable.expiresAt, fundedBy });
    live({ plan, deadline: fundable.expiresAt, moments: lifeOfFunded(plan) });
  }

  const quoteOf = (uuid: string): Fundable | undefined => quotes.get(uuid.toLowerCase());
  const vaultOf = (vault: { chainId: number; address: string }): Fundable | undefined =>
    vaults.get(vaultKey(vault));

  return {
    draft(order) {
      const plan = generator.ordered(drafted++, order);
      const validitySeconds = order.origin === 'quote' ? QUOTE_VALIDITY_SECONDS : VAULT_VALIDITY_SECONDS;
      // Rounded up, so that it can be funded for a time at any time scale.
      return {
        plan,
        expiresAt: Math.ceil(nowMs() / 1000 + validitySeconds / timeScale),
        fundedBy: null,
      };
    },
    open(fundable) {
      store(fundable);
      const { plan, expiresAt: deadline } = fundable;
      if (plan.quoteUuid !== null) {
        const active = { thing: 'quote', status: 'active', shown: 'nothing' } as const;
        live({ plan, deadline, moments: [{ afterSeconds: 0, changes: [active] }] });
      }
      const { vaultAddress: address, source } = plan;
      if (address !== null) {
        const pending = { thing: 'vault', state: 'PENDING' } as const;
        live({ plan, deadline, moments: [{ afterSeconds: 0, changes: [pending] }] });
        at(deadline * 1000, (dueNowMs) => {
          if (vaultOf({ chainId: source.chain.chainId, address })?.fundedBy !== null) return;
          const change = { thing: 'vault', state: 'EXPIRED_UNFUNDED' } as const;
          world.apply({ plan, deadline, change, nowMs: dueNowMs });
        });
        changed();
      }
    },
    quote: quoteOf,
    vault: vaultOf,
    isExpired: ({ expiresAt }) => nowMs() >= expiresAt * 1000,
    fundByTransaction(fundable, how) {
      const { states, sourceTxHash, ...rest } = how;
      const { destination } = fundable.plan;
      const source = { ...fundable.plan.source, txHash: sourceTxHash };
      const { txHash = destination.txHash, token = destination.token } = states ?? {};
      const chain = { ...destination.chain, chainId: states?.chainId ?? destination.chain.chainId };
      const plan = {
        ...fundable.plan,
        ...rest,
        source,
        destination: { ...destination, chain, txHash, token },
      };
      fund(fundable, { plan, fundedBy: `transaction ${plan.source.txHash}` });
    },
    fundByJob(fundable, { job, funder }) {
      const plan = { ...fundable.plan, job, funder };
      fund(fundable, { plan, fundedBy: `job ${job.uuid}` });
    },
  };
}
