import { lookupKey } from '../world/identifiers.ts';
import type { Lie } from './lies.ts';

/** Kind of a transfer's payment. `swap`: of a token that arrived in place of another. `burn`: fulfils a local intent. */
export type PaymentKind = 'source' | 'destination' | 'swap' | 'burn' | 'refund';

/** A payment as the upstream states it; amounts in base units. */
export type Payment = {
  intentHash: string;
  payment: PaymentKind;
  chainId: number;
  txHash: string;
  token: string;
  amount: string;
  from: string;
  recipient: string;
  lie: Lie | null;
};

/** A payment in the block that holds its transaction. */
export type Included = Payment & { block: number };

/** Transactions of all chains, by hash and by block. */
export type Ledger = {
  include(included: Included): void;
  get(chainId: number, txHash: string): Included | undefined;
  inBlock(chainId: number, block: number): readonly string[];
  drop(chainId: number, txHash: string): void;
};

/** Number of transactions that all chains store: the oldest are pruned, as nodes do. */
const CAPACITY = 200_000;

export function createLedger(capacity = CAPACITY): Ledger {
  // Invariant: both maps hold the same transactions; the first in the order of their arrival.
  const byHash = new Map<string, Included>();
  const byBlock = new Map<string, string[]>();

  const hashKey = (chainId: number, txHash: string): string => `${chainId} ${lookupKey(txHash)}`;
  const blockKey = (chainId: number, block: number): string => `${chainId} ${block}`;

  function drop(chainId: number, txHash: string): void {
    const included = byHash.get(hashKey(chainId, txHash));
    if (included === undefined) return;
    byHash.delete(hashKey(chainId, txHash));
    const key = blockKey(chainId, included.block);
    const others = byBlock.get(key)?.filter((hash) => hash !== included.txHash) ?? [];
    if (others.length === 0) byBlock.delete(key);
    else byBlock.set(key, others);
  }

  return {
    include(included) {
      const { chainId, txHash, block } = included;
      drop(chainId, txHash);
      byHash.set(hashKey(chainId, txHash), included);
      const key = blockKey(chainId, block);
      const hashes = byBlock.get(key);
      if (hashes === undefined) byBlock.set(key, [txHash]);
      else hashes.push(txHash);
      if (byHash.size <= capacity) return;
      const [oldest] = byHash.values();
      if (oldest !== undefined) drop(oldest.chainId, oldest.txHash);
    },
    get: (chainId, txHash) => byHash.get(hashKey(chainId, txHash)),
    inBlock: (chainId, block) => byBlock.get(blockKey(chainId, block)) ?? [],
    drop,
  };
}
