import type { Hex } from 'viem';

/** Position and time (Unix seconds) of a block. */
export type BlockPlace = { number: number; timestamp: number };

/** A call that is not signed; amounts in wei. */
export type CallRequest = {
  from: Hex;
  to: Hex | null;
  data: Hex;
  value: bigint;
  gas: bigint;
};

/** Result of a call. `failed`: it ended without returned data, for example out of gas. */
export type CallOutcome =
  | { type: 'returned'; data: Hex }
  | { type: 'reverted'; data: Hex }
  | { type: 'failed'; message: string };

export type RawLog = { address: Hex; topics: Hex[]; data: Hex };

/** Effect of a transaction. `contract` is the one that it created. */
export type Execution = { succeeded: boolean; gasUsed: bigint; logs: RawLog[]; contract: Hex | null };

/** The state of one EVM chain, and what executes on it. One call at a time. */
export type Engine = {
  call(request: CallRequest, place: BlockPlace): Promise<CallOutcome>;
  /** The least gas with which a call succeeds, or its failure. */
  estimate(request: CallRequest, place: BlockPlace): Promise<bigint | CallOutcome>;
  /** Executes a signed transaction in a block. Throws when it is not valid on this state. */
  execute(raw: Hex, place: BlockPlace): Promise<Execution>;
  account(address: Hex): Promise<{ balance: bigint; nonce: number }>;
  code(address: Hex): Promise<Hex>;
  storage(address: Hex, slot: Hex): Promise<Hex>;
  setBalance(address: Hex, balance: bigint): Promise<void>;
  setCode(address: Hex, code: Hex): Promise<void>;
  setStorage(address: Hex, slot: Hex, value: Hex): Promise<void>;
  close(): Promise<void>;
};

/** Most gas of one transaction (EIP-7825), and of one block. */
export const MOST_GAS = 16_777_216n;
export const BLOCK_GAS = 30_000_000n;

/** Base fee of every block, in wei. */
export const BASE_FEE = 1_000_000_000n;

/** Gas that a transaction takes before it executes, by the rules of Cancun without its access list. */
export function intrinsicGas({
  data,
  to,
  accessList = [],
}: {
  data: Hex;
  to: Hex | null;
  accessList?: readonly { storageKeys: readonly Hex[] }[];
}): bigint {
  let gas = to === null ? 53_000n + 2n * BigInt(Math.ceil((data.length - 2) / 64)) : 21_000n;
  for (let at = 2; at < data.length; at += 2) gas += data.slice(at, at + 2) === '00' ? 4n : 16n;
  for (const { storageKeys } of accessList) gas += 2_400n + 1_900n * BigInt(storageKeys.length);
  return gas;
}
