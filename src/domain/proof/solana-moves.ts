import { z } from 'zod';
import { listOf } from './list-of.ts';
import type { Move } from './reading.ts';

/** Its accounts may keep a fee of what they are sent. */
const TOKEN_2022 = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';

/** An address is 44 characters at most: what is longer is none, and is not stored. */
const ADDRESS = z.string().max(64, { error: 'an address' });

const TOKEN_BALANCE = z.object({
  accountIndex: z.int().min(0),
  mint: ADDRESS,
  /** Old nodes and blocks do not say it. */
  owner: ADDRESS.optional(),
  programId: z.string().optional(),
  uiTokenAmount: z.object({ amount: z.string().regex(/^\d{1,20}$/, { error: 'a whole number' }) }),
});

type TokenBalance = z.infer<typeof TOKEN_BALANCE>;

/** What is read of the answer to `getTransaction` with the encoding `json`. */
export const SOLANA_TRANSACTION = z.object({
  slot: z.int().min(0),
  blockTime: z.int().min(0).nullish(),
  transaction: z.object({
    signatures: listOf(z.string()),
    message: z.object({ accountKeys: listOf(ADDRESS) }),
  }),
  meta: z
    .object({
      err: z.unknown(),
      preTokenBalances: listOf(TOKEN_BALANCE).nullish(),
      postTokenBalances: listOf(TOKEN_BALANCE).nullish(),
      loadedAddresses: z.object({ writable: listOf(ADDRESS), readonly: listOf(ADDRESS) }).nullish(),
    })
    .nullable(),
});

export type SolanaTransaction = z.infer<typeof SOLANA_TRANSACTION>;

/** Why an answer says nothing of a transaction; null where it does. */
export function transactionFault(
  { transaction, meta, blockTime }: SolanaTransaction,
  txHash: string,
): string | null {
  if (transaction.signatures[0] !== txHash) return 'the answer is of another transaction';
  if (meta === null) return 'the answer has no meta: the endpoint does not keep it';
  if (meta.err === undefined) return 'the answer does not say whether the transaction failed';
  if (blockTime == null) return 'the answer has no blockTime';
  // A transaction that failed moved nothing; one that did not and shows no balances may have moved anything.
  const isBlind = meta.err === null && (meta.preTokenBalances == null || meta.postTokenBalances == null);
  if (isBlind) return 'the answer has no token balances: the endpoint does not keep them';
  const balances = [...(meta.preTokenBalances ?? []), ...(meta.postTokenBalances ?? [])];
  return balances.every(({ owner }) => owner !== undefined)
    ? null
    : 'the answer does not say whose balances it has';
}

/**
 * What the owners of a token (of every token where it is null) have more of after a transaction than before it, all their
 * accounts together: what somebody moves between his own accounts is 0. An account that is not listed on one side had
 * nothing there.
 */
export function solanaMoves({ meta, transaction }: SolanaTransaction, token: string | null): Move[] {
  if (meta === null || meta.err !== null) return [];
  const accounts = [
    ...transaction.message.accountKeys,
    ...(meta.loadedAddresses?.writable ?? []),
    ...(meta.loadedAddresses?.readonly ?? []),
  ];
  const changes = new Map<string, Change>();
  const add = (balance: TokenBalance, sign: 1n | -1n): void => {
    const { mint, owner, accountIndex, programId, uiTokenAmount } = balance;
    if (owner === undefined || (token !== null && mint !== token)) return;
    const key = `${mint} ${owner}`;
    const change = changes.get(key) ?? { mint, owner, gain: 0n, byAccount: new Map(), mayHaveFee: false };
    const amount = sign * BigInt(uiTokenAmount.amount);
    change.gain += amount;
    change.byAccount.set(accountIndex, (change.byAccount.get(accountIndex) ?? 0n) + amount);
    change.mayHaveFee ||= programId === TOKEN_2022;
    changes.set(key, change);
  };
  for (const balance of meta.preTokenBalances ?? []) add(balance, -1n);
  for (const balance of meta.postTokenBalances ?? []) add(balance, 1n);
  return [...changes.values()].flatMap(({ mint, owner, gain, byAccount, mayHaveFee }) => {
    const gaining = [...byAccount].filter(([, amount]) => amount > 0n).map(([index]) => index);
    const isNetted = [...byAccount.values()].some((amount) => amount < 0n);
    if (gaining.length === 0) return [];
    const index = Math.min(...gaining);
    const account = gaining.length === 1 ? accounts[index] : undefined;
    return [
      {
        token: mint,
        from: null,
        to: owner,
        amount: (gain > 0n ? gain : 0n).toString(),
        index,
        ...(account === undefined ? {} : { account }),
        ...(mayHaveFee ? { mayHaveFee: true as const } : {}),
        ...(isNetted ? { isNetted: true as const } : {}),
      },
    ];
  });
}

/** What one owner has more or less of; `byAccount`: by the place of the account in the transaction. */
type Change = {
  mint: string;
  owner: string;
  gain: bigint;
  byAccount: Map<number, bigint>;
  mayHaveFee: boolean;
};
