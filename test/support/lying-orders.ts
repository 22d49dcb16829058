import type { Lie } from '../../src/sandbox/chains/lies.ts';
import { address } from '../../src/sandbox/world/identifiers.ts';
import { between, chance, integer, pick, type Random, randomStream } from '../../src/sandbox/world/random.ts';
import type { SandboxOrder } from './sandbox-order.ts';

const SOLANA = 1399811149;
const EVM_CHAINS = [1, 10, 8453, 42161];

/** All chains on which payments are checked. */
export const CHECKED_CHAINS = [...EVM_CHAINS, SOLANA];

/** Chains of which no fulfilment is pinned: there, what a fulfilment says is not looked at. */
export const UNPINNED = new Set([42161, SOLANA]);

/** Lies about a delivery that are told while others are; `reused` comes after all others. */
const LIES: readonly Lie[] = [
  'reverted',
  'no-log',
  'short',
  'other-recipient',
  'worthless-token',
  'other-intent',
  'two-logs',
  'absent',
  'moved',
  'dropped',
];

const REFUND_LIES: readonly Lie[] = ['reverted', 'no-log', 'absent'];

const SHARE_OF_LIES = 0.4;
const SHARE_OF_REFUNDS = 0.06;
const SHARE_OF_REUSED = 0.04;

/** The wallets among which a seed's transfers go. */
export function walletsOf(seed: number): { evm: string[]; solana: string } {
  const drawn = (index: number, kind: 'evm' | 'solana') =>
    address(randomStream(seed, 'lying', 'wallet', index), kind);
  return { evm: [0, 1, 2, 3].map((index) => drawn(index, 'evm')), solana: drawn(4, 'solana') };
}

/** So many transfers: first those that can be made at any time, then those that state a payment of another. */
export function ordersOf(seed: number, fills: number): { first: SandboxOrder[]; reused: SandboxOrder[] } {
  const reused = Math.round(fills * SHARE_OF_REUSED);
  return {
    first: Array.from({ length: fills - reused }, (_, index) => anyOrder(seed, index)),
    reused: Array.from({ length: reused }, (_, index) => {
      const random = randomStream(seed, 'lying', 'reused', index);
      return { ...parties(random, seed), lie: 'reused' as const };
    }),
  };
}

function anyOrder(seed: number, index: number): SandboxOrder {
  const random = randomStream(seed, 'lying', 'order', index);
  const order = parties(random, seed);
  const isLie = chance(random, SHARE_OF_LIES);
  if (chance(random, SHARE_OF_REFUNDS)) {
    return { ...order, fate: 'refunded', ...(isLie ? { lie: pick(random, REFUND_LIES) } : {}) };
  }
  const fate = chance(random, 0.2) ? ('late-details' as const) : ('settled' as const);
  return { ...order, fate, ...(isLie ? { lie: pick(random, LIES) } : {}) };
}

/** Between two chains and two wallets that are drawn. */
function parties(random: Random, seed: number): SandboxOrder {
  const { evm, solana } = walletsOf(seed);
  const from = pick(random, EVM_CHAINS);
  const to = pick(
    random,
    CHECKED_CHAINS.filter((chain) => chain !== from),
  );
  return {
    from,
    to,
    funder: pick(random, evm),
    recipient: to === SOLANA ? solana : pick(random, evm),
    amount: String(Math.round(between(random, 1, 1_000)) * 1_000_000 + integer(random, 1_000_000)),
  };
}
