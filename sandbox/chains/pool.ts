import {
  type Hex,
  hexToBigInt,
  isHex,
  keccak256,
  parseTransaction,
  recoverTransactionAddress,
  type TransactionSerializedLegacy,
} from 'viem';
import { z } from 'zod';
import { BASE_FEE, BLOCK_GAS, intrinsicGas, MOST_GAS } from './engine.ts';
import { RpcError } from './rpc-error.ts';

/** Largest code of a new contract's constructor, in bytes (EIP-3860). */
const MOST_INIT_CODE_BYTES = 49_152;

/** A signed transaction of a client. Amounts in wei; `maxFee` and `tip` are per gas. */
export type Signed = {
  raw: Hex;
  hash: Hex;
  from: Hex;
  to: Hex | null;
  nonce: number;
  gas: bigint;
  maxFee: bigint;
  tip: bigint;
  value: bigint;
  data: Hex;
  type: 'legacy' | 'eip2930' | 'eip1559';
  v: bigint;
  r: Hex;
  s: Hex;
  accessList: readonly unknown[];
};

/** A transaction and the block that will hold it. */
export type Waiting = { signed: Signed; due: number };

/** Transactions that wait for their block, by sender and nonce. */
export type Pool = {
  /** Adds one, or replaces that of the same nonce. Throws `RpcError` as a node refuses. */
  add(signed: Signed, state: { balance: bigint; nonce: number; next: number }): Waiting;
  get(hash: string): Waiting | undefined;
  /** The nonce after those that wait in a row from this one. */
  nextNonce(from: Hex, nonce: number): number;
  /** Those due by a block, in their order. */
  due(block: number): Waiting[];
  remove(waiting: Waiting): void;
  readonly size: number;
};

const MOST_BYTES = 131_072;
const MOST_WAITING = 500;
const MOST_WAITING_OF_SENDER = 64;

/** Percent by which a replacement must pay more. */
const REPLACEMENT_PERCENT = 10n;

const HALF_CURVE = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

export function createPool(): Pool {
  const waiting = new Map<string, Waiting>();
  const byHash = new Map<string, Waiting>();
  const keyOf = ({ from, nonce }: { from: Hex; nonce: number }): string => `${from} ${nonce}`;

  function nextNonce(from: Hex, nonce: number): number {
    let next = nonce;
    while (waiting.has(keyOf({ from, nonce: next }))) next += 1;
    return next;
  }

  /** The first block from this one that can hold that much more gas. */
  function freeBlock(first: number, gas: bigint): number {
    const reserved = new Map<number, bigint>();
    for (const { due, signed } of waiting.values()) reserved.set(due, (reserved.get(due) ?? 0n) + signed.gas);
    let block = first;
    while ((reserved.get(block) ?? 0n) + gas > BLOCK_GAS) block += 1;
    return block;
  }

  return {
    add(signed, { balance, nonce, next }) {
      if (byHash.has(signed.hash)) throw new RpcError(-32000, 'already known');
      if (signed.nonce < nonce) {
        throw new RpcError(-32000, `nonce too low: next nonce ${nonce}, tx nonce ${signed.nonce}`);
      }
      if (signed.nonce > nonce + MOST_WAITING_OF_SENDER) {
        throw new RpcError(-32000, `nonce too high: next nonce ${nonce}, tx nonce ${signed.nonce}`);
      }
      const former = waiting.get(keyOf(signed));
      if (former !== undefined && !paysMore(signed, former.signed)) {
        throw new RpcError(-32000, 'replacement transaction underpriced');
      }
      const others = [...waiting.values()].filter(({ signed: { from } }) => from === signed.from);
      const costs = others.filter((one) => one !== former).reduce((sum, one) => sum + costOf(one.signed), 0n);
      const cost = costOf(signed);
      if (balance < costs + cost) {
        const overshot = `overshot ${costs + cost - balance}`;
        throw new RpcError(
          -32000,
          `insufficient funds for gas * price + value: balance ${balance}, tx cost ${cost}, ${overshot}`,
        );
      }
      if (former === undefined && waiting.size >= MOST_WAITING) throw new RpcError(-32000, 'txpool is full');
      if (former !== undefined) byHash.delete(former.signed.hash);
      const one = { signed, due: former?.due ?? freeBlock(next, signed.gas) };
      waiting.set(keyOf(signed), one);
      byHash.set(signed.hash, one);
      return one;
    },
    get: (hash) => byHash.get(hash),
    nextNonce,
    due: (block) =>
      [...waiting.values()]
        .filter((one) => one.due <= block)
        .sort((a, b) => a.due - b.due || a.signed.nonce - b.signed.nonce),
    remove({ signed }) {
      if (byHash.delete(signed.hash)) waiting.delete(keyOf(signed));
    },
    get size() {
      return waiting.size;
    },
  };
}

/** Reads a raw transaction and its sender. Throws `RpcError` for what no node of this chain takes. */
export async function readSigned(text: Hex, chainId: number): Promise<Signed> {
  const raw = lower(text);
  if (raw.length > 2 * MOST_BYTES + 2) {
    throw new RpcError(-32000, `oversized data: transaction size ${raw.length / 2 - 1}, limit ${MOST_BYTES}`);
  }
  const { transaction, from } = await parse(raw);
  const { gas, nonce, value, data, to, type, accessList, r, s } = transaction;
  if (transaction.chainId !== chainId) {
    const found = `have ${transaction.chainId ?? 'none'}`;
    throw new RpcError(-32000, `invalid chain id for signer: ${found} want ${chainId}`);
  }
  const maxFee = transaction.maxFeePerGas ?? transaction.gasPrice;
  const tip = type === 'eip1559' ? transaction.maxPriorityFeePerGas : maxFee;
  if (tip > maxFee) {
    throw new RpcError(-32000, 'max priority fee per gas higher than max fee per gas');
  }
  if (maxFee < BASE_FEE) {
    const fees = `maxFeePerGas: ${maxFee}, baseFee: ${BASE_FEE}`;
    throw new RpcError(-32000, `max fee per gas less than block base fee: ${fees}`);
  }
  if (gas > MOST_GAS) {
    throw new RpcError(-32000, `transaction gas limit too high (cap: ${MOST_GAS}, tx: ${gas})`);
  }
  if (to === null && (data.length - 2) / 2 > MOST_INIT_CODE_BYTES) {
    throw new RpcError(-32000, `max initcode size exceeded: limit ${MOST_INIT_CODE_BYTES}`);
  }
  const least = intrinsicGas({ data, to, accessList });
  if (gas < least) {
    throw new RpcError(-32000, `intrinsic gas too low: gas ${gas}, minimum needed ${least}`);
  }
  // viem gives a typed transaction a `v` of 27 or 28 as well, where nodes have its parity.
  const v = type === 'legacy' ? transaction.v : BigInt(transaction.yParity);
  return {
    raw,
    hash: keccak256(raw),
    from,
    to,
    nonce,
    gas,
    maxFee,
    tip,
    value,
    data,
    type,
    v,
    r,
    s,
    accessList,
  };
}

const hex = z.custom<Hex>((text) => isHex(text));

/** A transaction as viem parses it: members that are zero are absent. */
const parsedSchema = z.object({
  type: z.enum(['legacy', 'eip2930', 'eip1559']),
  chainId: z.number().optional(),
  to: hex.transform(lower).nullable().default(null),
  nonce: z.number().default(0),
  gas: z.bigint().default(0n),
  gasPrice: z.bigint().default(0n),
  maxFeePerGas: z.bigint().optional(),
  maxPriorityFeePerGas: z.bigint().default(0n),
  value: z.bigint().default(0n),
  data: hex.default('0x'),
  accessList: z.array(z.object({ address: hex, storageKeys: z.array(hex) })).default([]),
  v: z.bigint().default(0n),
  yParity: z.number().default(0),
  r: hex,
  s: hex.refine((text) => hexToBigInt(text) <= HALF_CURVE, { error: 'expected the lower half of the curve' }),
});

async function parse(raw: Hex): Promise<{ transaction: z.infer<typeof parsedSchema>; from: Hex }> {
  try {
    // The type is a brand: any type of transaction is read.
    const from = await recoverTransactionAddress({
      serializedTransaction: raw as TransactionSerializedLegacy,
    });
    return { transaction: parsedSchema.parse(parseTransaction(raw)), from: lower(from) };
  } catch (error) {
    if (error instanceof z.ZodError) {
      const [issue] = error.issues;
      const place = issue?.path.join('.') ?? '';
      throw new RpcError(-32000, place === 'type' ? 'transaction type not supported' : `invalid ${place}`);
    }
    const reason = error instanceof Error ? error.message.split('\n')[0] : '';
    throw new RpcError(-32000, `invalid transaction: ${reason}`);
  }
}

function paysMore(signed: Signed, former: Signed): boolean {
  const enough = (fee: bigint, than: bigint): boolean => fee * 100n >= than * (100n + REPLACEMENT_PERCENT);
  return enough(signed.maxFee, former.maxFee) && enough(signed.tip, former.tip);
}

function costOf({ gas, maxFee, value }: Signed): bigint {
  return gas * maxFee + value;
}

function lower(address: Hex): Hex {
  return `0x${address.slice(2).toLowerCase()}`;
}
