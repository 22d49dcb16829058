import { createHash } from 'node:crypto';
import { base58 } from '@scure/base';
import { bytesToHex, hexToBytes, isHex } from 'viem';
import { z } from 'zod';
import type { Chain } from '../world/chains.ts';

/** A block of a chain; `timestamp` is Unix seconds. */
export type Block = { number: number; hash: string; parentHash: string; timestamp: number };

/** Distance from the newest block to the last final one: in time, or in blocks. */
export const finalitySchema = z.union(
  [z.strictObject({ seconds: z.number().min(0) }), z.strictObject({ blocks: z.int().min(0) })],
  { error: 'expected { seconds } or { blocks }, 0 or more' },
);

export type FinalityLag = z.infer<typeof finalitySchema>;

/** The blocks of one chain. */
export type Blocks = {
  /** The newest block at `nowMs` (Unix ms). */
  head(nowMs: number): number;
  /** The last block that can no longer be reorganised. */
  finalized(nowMs: number): number;
  /** The last block that most treat as final: halfway between both. */
  safe(nowMs: number): number;
  at(number: number): Block;
  /** Unix ms at which a block becomes the newest. */
  bornMs(number: number): number;
  /** The number of a block by its hash; null when the hash is of no block, or of one that was dropped. */
  numberOf(hash: string): number | null;
  /** Replaces every block from this one on; final ones stay. Returns the first replaced block. */
  reorganise(from: number, nowMs: number): number;
  finality(): FinalityLag;
  setFinality(lag: FinalityLag): void;
};

const USUAL_BLOCK_MS = 2_000;

const BLOCK_MS: Readonly<Record<number, number>> = { 1: 12_000, 42161: 250, 1399811149: 400 };

const NUMBER_BYTES = 8;

/**
 * Creates the blocks of a chain: one every so many ms since 1970, whatever they contain. A hash is drawn from seed, chain,
 * number and the count of the block's reorganisations, and ends with the number. So none needs to be stored.
 */
export function createBlocks(options: {
  seed: number;
  chain: Chain;
  timeScale: number;
  finality: FinalityLag;
}): Blocks {
  const { seed, chain, timeScale } = options;
  const blockMs = Math.max(1, Math.round((BLOCK_MS[chain.chainId] ?? USUAL_BLOCK_MS) / timeScale));
  let lag = options.finality;
  /** First block of every reorganisation, ascending. One number each: a week with one per second takes 5 MB. */
  const reorganised: number[] = [];

  const numberAt = (ms: number): number => Math.max(0, Math.floor(ms / blockMs));

  function finalized(nowMs: number): number {
    const number = 'blocks' in lag ? numberAt(nowMs) - lag.blocks : numberAt(nowMs - lag.seconds * 1000);
    return Math.max(0, number);
  }

  function hashOf(number: number): string {
    const version = firstAbove(reorganised, number);
    const drawn = createHash('sha256').update(`${seed}/${chain.chainId}/${number}/${version}`).digest();
    drawn.writeBigUInt64BE(BigInt(number), drawn.length - NUMBER_BYTES);
    return chain.kind === 'solana' ? base58.encode(drawn) : bytesToHex(drawn);
  }

  return {
    head: numberAt,
    finalized,
    safe: (nowMs) => Math.ceil((numberAt(nowMs) + finalized(nowMs)) / 2),
    at: (number) => ({
      number,
      hash: hashOf(number),
      parentHash: hashOf(Math.max(0, number - 1)),
      timestamp: Math.floor((number * blockMs) / 1000),
    }),
    bornMs: (number) => number * blockMs,
    numberOf(hash) {
      const bytes = decode(hash, chain);
      if (bytes?.length !== 32) return null;
      const number = Number(Buffer.from(bytes).readBigUInt64BE(bytes.length - NUMBER_BYTES));
      return hashOf(number) === (chain.kind === 'solana' ? hash : hash.toLowerCase()) ? number : null;
    },
    reorganise(from, nowMs) {
      const first = Math.max(from, finalized(nowMs) + 1);
      reorganised.splice(firstAbove(reorganised, first), 0, first);
      return first;
    },
    finality: () => lag,
    setFinality(wanted) {
      lag = wanted;
    },
  };
}

function decode(hash: string, chain: Chain): Uint8Array | null {
  if (chain.kind !== 'solana') return isHex(hash) && hash.length === 66 ? hexToBytes(hash) : null;
  try {
    return hash.length > 64 ? null : base58.decode(hash);
  } catch {
    return null;
  }
}

function firstAbove(list: readonly number[], limit: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((list[middle] ?? limit) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
