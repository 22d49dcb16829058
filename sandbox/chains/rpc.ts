import { z } from 'zod';
import type { AskableChain } from './chains.ts';
import type { Included, Ledger } from './ledger.ts';

/** View of an endpoint during a call. Its faults are applied, except in the answers about payments. */
export type View = {
  on: AskableChain;
  ledger: Ledger;
  /** The endpoint's own time, in Unix ms. */
  nowMs: number;
  isOtherChain: boolean;
  knowsTags: boolean;
  hides: boolean;
  /** True when it contradicts other endpoints about an amount or a block, or itself about the block of a receipt. */
  contradicts(about: 'amount' | 'block' | 'receipt', what: string | number): boolean;
};

/** The methods of a kind of chain, by name; `params` are the caller's. A promise's value is the result. */
export type Methods = Readonly<Record<string, (view: View, params: readonly unknown[]) => unknown>>;

/** One request of JSON-RPC 2.0; without an id it is a notification, which is answered all the same. */
export const rpcRequestSchema = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.number(), z.string(), z.null()]).default(null),
  method: z.string().max(100),
  params: z.array(z.unknown()).default([]),
});

/** A transaction that this endpoint has by now; undefined also where it hides it. */
export function transactionOf(view: View, txHash: string): Included | undefined {
  if (view.hides) return undefined;
  const { on, ledger, nowMs } = view;
  const included = ledger.get(on.chain.chainId, txHash);
  return included !== undefined && included.block <= on.blocks.head(nowMs) ? included : undefined;
}
