import type { Director, Life } from '../faults/director.ts';
import { type Intent, type Intents, isCarriedByIssuer } from '../quotes/intents.ts';
import type { Generator, Order } from './generator.ts';
import { transactionHash } from './identifiers.ts';
import { lifeOfFunded } from './life.ts';
import {
  type Fate,
  type Job,
  QUOTE_VALIDITY_SECONDS,
  type TransferPlan,
  VAULT_VALIDITY_SECONDS,
} from './plan.ts';
import type { PublishedIntent } from './published.ts';
import { randomStream } from './random.ts';
import { vaultKey, type World } from './world.ts';

/** End of a transfer that a client ordered. */
export type OrderedFate = Exclude<Fate, 'unborn'>;

/** Life of a transfer that a client ordered: its funding transaction, and in `states` the stated delivery transaction. */
export type OrderedLife = {
  fate: OrderedFate;
  sourceTxHash: string;
  states?: { txHash: string; chainId?: number | undefined; token?: string | undefined };
} & Pick<TransferPlan, 'showsDepositAddress' | 'delivers' | 'stepFails' | 'lie'>;

/** A client's quote or vault. It can be funded once, before `expiresAt` (Unix seconds). */
export type Fundable = {
  readonly plan: TransferPlan;
  readonly expiresAt: number;
  /** The intents of the plan, the main one first. */
  readonly intents: readonly [Intent, ...Intent[]];
  /** A description of its funding; null while it is not funded. */
  readonly fundedBy: string | null;
};

/** Quotes and vaults that clients made, and their lives. */
export type Orders = {
  /** Draws a transfer, the end of its funding, and its intents. It is unknown to all before `open`. */
  prepare(order: Order, validity?: { seconds: number }): Fundable;
  open(fundable: Fundable): void;
  quote(uuid: string): Fundable | undefined;
  vault(vault: { chainId: number; address: string }): Fundable | undefined;
  /** The vault or quote whose tokens are held at an address. */
  heldAt(holder: { chainId: number; address: string }): Fundable | undefined;
  isExpired(fundable: Fundable): boolean;
  fundByTransaction(fundable: Fundable, how: OrderedLife): void;
  fundByJob(fundable: Fundable, by: { job: Job; funder: string }): void;
  /** Begins the transfer of an intent that a client published by itself. */
  publish(intent: PublishedIntent, how: { txHash: string; fate: OrderedFate }): void;
};

export function createOrders({
  world,
  director,
  generator,
  intents,
  hasLocalIntents,
  timeScale,
  nowMs,
  changed,
  at,
  prepare = (plan) => plan,
}: {
  world: World;
  director: Director;
  generator: Generator;
  intents: Intents;
  /** True where the quotes that a token's issuer can carry have local intents. */
  hasLocalIntents: boolean;
  timeScale: number;
  nowMs: () => number;
  changed: () => void;
  /** Schedules work; `dueMs` is Unix milliseconds. */
  at: (dueMs: number, work: (nowMs: number) => void) => void;
  /** Called for everything that is funded; returns its plan. */
  prepare?: (plan: TransferPlan) => TransferPlan;
}): Orders {
  const quotes = new Map<string, Fundable>();
  /** By the address at which their tokens are held: a vault, or that of a quote's intent. */
  const byHolder = new Map<string, Fundable>();
  let drafted = 0;
  let published = 0;

  function live(life: Life): void {
    director.live(life, nowMs());
    changed();
  }

  function store(fundable: Fundable): void {
    const { quoteUuid, vaultAddress, intentVault, source } = fundable.plan;
    if (quoteUuid !== null) quotes.set(quoteUuid, fundable);
    const address = vaultAddress ?? intentVault;
    if (address !== null) byHolder.set(vaultKey({ chainId: source.chain.chainId, address }), fundable);
  }

  function fund(
    fundable: Fundable,
    { plan: agreed, fundedBy }: { plan: TransferPlan; fundedBy: string },
  ): void {
    if (fundable.fundedBy !== null) throw new Error(`already funded by ${fundable.fundedBy}`);
    const plan = prepare(agreed);
    store({ ...fundable, plan, fundedBy });
    live({ plan, deadline: fundable.expiresAt, steps: lifeOfFunded(plan) });
  }

  /** A token that is swapped after its arrival goes to the Portal, where a second intent waits for it. */
  function intentsOf(
    { funder, recipient, refundRecipient, source, destination, swap }: TransferPlan,
    terms: { name: string; expiresAt: number; isLocal: boolean },
  ): Fundable['intents'] {
    const creator = refundRecipient ?? funder;
    if (swap === null) return [intents.make({ ...terms, source, destination, recipient, creator })];
    const { portal } = intents.contractsOf(destination.chain.kind);
    const arriving = { ...destination, token: swap.token };
    const name = `${terms.name}, swap`;
    return [
      intents.make({ ...terms, source, destination: arriving, recipient: portal, creator }),
      intents.make({ ...terms, name, source: arriving, destination, recipient, creator: recipient }),
    ];
  }

  const quoteOf = (uuid: string): Fundable | undefined => quotes.get(uuid.toLowerCase());
  const heldAt = (holder: { chainId: number; address: string }): Fundable | undefined =>
    byHolder.get(vaultKey(holder));
  const vaultOf = (vault: { chainId: number; address: string }): Fundable | undefined => {
    const held = heldAt(vault);
    return held?.plan.vaultAddress === null ? undefined : held;
  };

  return {
    prepare(order, validity) {
      const name = `order ${drafted}`;
      const drawn = generator.ordered(drafted++, order);
      const usual = order.origin === 'quote' ? QUOTE_VALIDITY_SECONDS : VAULT_VALIDITY_SECONDS;
      // Rounded up, so that it can be funded for a time at any time scale.
      const expiresAt = Math.ceil(nowMs() / 1000 + (validity?.seconds ?? usual) / timeScale);
      const isLocal = hasLocalIntents && order.origin === 'quote' && isCarriedByIssuer(order);
      const made = intentsOf(drawn, { name, expiresAt, isLocal });
      const [main, second] = made;
      const swap =
        drawn.swap === null || second === undefined ? null : { ...drawn.swap, intentHash: second.hash };
      const isHeld = drawn.quoteUuid !== null && drawn.source.chain.kind === 'evm';
      const intentVault = isHeld ? intents.funding(main).vault : null;
      const burn = isLocal
        ? { txHash: transactionHash(randomStream('burn', main.hash), order.source.chain.kind) }
        : null;
      const plan = { ...drawn, intentHash: main.hash, intentVault, burn, swap };
      return { plan, expiresAt, intents: made, fundedBy: null };
    },
    open(fundable) {
      store(fundable);
      const { plan, expiresAt: deadline } = fundable;
      if (plan.quoteUuid !== null) {
        const active = { thing: 'quote', status: 'active', shown: 'nothing' } as const;
        live({ plan, deadline, steps: [{ afterSeconds: 0, changes: [active] }] });
      }
      const { vaultAddress: address, source } = plan;
      if (address !== null) {
        const pending = { thing: 'vault', state: 'PENDING' } as const;
        live({ plan, deadline, steps: [{ afterSeconds: 0, changes: [pending] }] });
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
    heldAt,
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
    publish({ hash, vault, deadline, order }, { txHash, fate }) {
      // A count of its own: what is published does not change the quotes that follow.
      published += 1;
      const drawn = generator.ordered(-published, order);
      const source = { ...drawn.source, txHash };
      const plan = prepare({ ...drawn, intentHash: hash, intentVault: vault, source, fate });
      live({ plan, deadline, steps: lifeOfFunded(plan) });
    },
  };
}
