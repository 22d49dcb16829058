import type { Lie } from '../../sandbox/chains/lies.ts';
import { address, transactionHash } from '../../sandbox/world/identifiers.ts';
import { between, chance, integer, pick, type Random, randomStream } from '../../sandbox/world/random.ts';
import type { SandboxOrder } from './sandbox-order.ts';

export const SOLANA = 1399811149;

/** All chains on which payments are checked. */
export const CHECKED_CHAINS = [1, 10, 8453, 42161, SOLANA];

/** Chains without a pinned fulfilment: a fulfilment there is not checked. */
export const UNPINNED = new Set([10, SOLANA]);

/** Chains whose endpoints are on one host: a false statement there can never be reported. */
export const ONE_HOST = new Set([42161]);

/** A lie as the sandbox states it, or an unlisted token: a statement about that is true, but worth nothing. */
type Kind = Lie | 'unlisted-token';

/** Kinds of lies about a delivery that are stated alongside others; `reused` comes after all others. */
const KINDS: readonly Kind[] = [
  'reverted',
  'no-log',
  'short',
  'other-recipient',
  'worthless-token',
  'other-intent',
  'forged',
  'unlogged',
  'two-logs',
  'in-parts',
  'to-itself',
  'stale',
  'absent',
  'moved',
  'dropped',
  'unlisted-token',
];

const REFUND_LIES: readonly Lie[] = ['reverted', 'no-log', 'funding', 'stale', 'absent', 'moved', 'dropped'];

/** Lies about the fulfilment: no check finds them where none is pinned. */
const OF_FULFILMENTS = new Set<Kind | null>(['other-intent', 'forged', 'unlogged']);

const CONCLUSIVE = CHECKED_CHAINS.filter((chainId) => !UNPINNED.has(chainId) && !ONE_HOST.has(chainId));

/** One of so many transfers is refunded; of so many transfers and refunds two are lies. */
const REFUND_EVERY = 10;
const LIES_AMONG = 4;

const SHARE_OF_REUSED = 0.06;
/** One of so many transfers that state the payment of another does so for its refund. */
const REUSED_REFUND_EVERY = 3;

/** The wallets of a seed's transfers. */
export function walletsOf(seed: number): { evm: string[]; solana: string } {
  const drawn = (index: number, kind: 'evm' | 'solana') =>
    address(randomStream(seed, 'lying', 'wallet', index), kind);
  return { evm: [0, 1, 2, 3].map((index) => drawn(index, 'evm')), solana: drawn(4, 'solana') };
}

/**
 * Makes `fills` transfers: first those that can be made at any time, then those that state a payment of another. Kinds of
 * lies take turns, so that a run of any length has all of them; chains, wallets and amounts are drawn.
 */
export function ordersOf(seed: number, fills: number): { first: SandboxOrder[]; reused: SandboxOrder[] } {
  const reused = Math.round(fills * SHARE_OF_REUSED);
  return {
    first: Array.from({ length: fills - reused }, (_, index) => anyOrder(seed, index)),
    reused: Array.from({ length: reused }, (_, index): SandboxOrder => {
      const random = randomStream(seed, 'lying', 'reused', index);
      const fate = index % REUSED_REFUND_EVERY === 0 ? 'refunded' : 'settled';
      return { ...parties(random, seed), fate, lie: 'reused' };
    }),
  };
}

function anyOrder(seed: number, index: number): SandboxOrder {
  const random = randomStream(seed, 'lying', 'order', index);
  const refunds = Math.floor(index / REFUND_EVERY);
  if (index % REFUND_EVERY === REFUND_EVERY - 1) {
    const lie = lieAt(REFUND_LIES, refunds);
    return { ...parties(random, seed), fate: 'refunded', ...(lie === null ? {} : { lie }) };
  }
  const place = index - refunds;
  const kind = lieAt(KINDS, place);
  // Every other time on any chain: the run also shows that no payment is disputed where none is pinned.
  const isFoundOut = OF_FULFILMENTS.has(kind) && roundOf(KINDS, place) % 2 === 0;
  const order = parties(random, seed, isFoundOut ? CONCLUSIVE : CHECKED_CHAINS);
  const fate = chance(random, 0.2) ? ('late-details' as const) : ('settled' as const);
  if (kind !== 'unlisted-token') return { ...order, fate, ...(kind === null ? {} : { lie: kind }) };
  const chainKind = order.to === SOLANA ? 'solana' : 'evm';
  const states = { txHash: transactionHash(random, chainKind), token: address(random, chainKind) };
  return { ...order, fate, states };
}

/** The lie at this place of all; null for none. Of every few two are lies, one of each kind after the other. */
function lieAt<K extends Kind>(kinds: readonly K[], place: number): K | null {
  const within = place % LIES_AMONG;
  if (within >= 2) return null;
  return kinds[liesBefore(place) % kinds.length] ?? null;
}

/** Number of times that all kinds had their turn before this place. */
function roundOf(kinds: readonly Kind[], place: number): number {
  return Math.floor(liesBefore(place) / kinds.length);
}

function liesBefore(place: number): number {
  return Math.floor(place / LIES_AMONG) * 2 + Math.min(2, place % LIES_AMONG);
}

/** Draws two chains and two wallets; the destination is one of these chains. */
function parties(random: Random, seed: number, destinations: readonly number[] = CHECKED_CHAINS) {
  const { evm, solana } = walletsOf(seed);
  const from = pick(random, CHECKED_CHAINS);
  const to = pick(
    random,
    destinations.filter((chain) => chain !== from),
  );
  return {
    from,
    to,
    funder: from === SOLANA ? solana : pick(random, evm),
    recipient: to === SOLANA ? solana : pick(random, evm),
    amount: String(Math.round(between(random, 1, 1_000)) * 1_000_000 + integer(random, 1_000_000)),
  };
}
