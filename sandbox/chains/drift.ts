import type { Hex } from 'viem';

/** Changes of one balance so far: of a balance x they make the larger of x + `sum` and `least`. */
type BalanceChange = { token: Hex; owner: Hex; sum: bigint; least: bigint };

/** Balances that payments of the world change beside the EVM, until they are written into its state. */
export type Drift = {
  /** Adds an amount, or takes a negative one; no balance falls below zero. */
  add(token: Hex, owner: Hex, amount: bigint): void;
  /** Removes all changes and returns them; `apply` returns the balance after them. */
  take(): { token: Hex; owner: Hex; apply(balance: bigint): bigint }[];
};

/** Most balances that wait: beyond, the oldest changes are lost. */
const CAPACITY = 50_000;

export function createDrift(): Drift {
  const changes = new Map<string, BalanceChange>();
  return {
    add(token, owner, amount) {
      const key = `${token} ${owner}`;
      const { sum, least } = changes.get(key) ?? { sum: 0n, least: 0n };
      // To the end: the first is the one that has not changed for longest.
      changes.delete(key);
      changes.set(key, { token, owner, sum: sum + amount, least: least + amount > 0n ? least + amount : 0n });
      if (changes.size <= CAPACITY) return;
      const [oldest] = changes.keys();
      if (oldest !== undefined) changes.delete(oldest);
    },
    take() {
      const all = [...changes.values()].map(({ token, owner, sum, least }) => ({
        token,
        owner,
        apply: (balance: bigint) => (balance + sum > least ? balance + sum : least),
      }));
      changes.clear();
      return all;
    },
  };
}
