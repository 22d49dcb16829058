import { hexToNumber, isHex, numberToHex } from 'viem';
import { z } from 'zod';
import { lookupKey } from '../world/identifiers.ts';
import type { Block } from './blocks.ts';
import {
  blockShape,
  logsOf,
  otherHash,
  type ReceiptInput,
  receiptOf,
  transactionShape,
} from './evm-shapes.ts';
import type { Included } from './ledger.ts';
import { type Methods, param, RpcError, transactionOf, type View } from './rpc.ts';

/** Chain id of an endpoint of another chain, as after a swap of two URLs. */
const OTHER_CHAIN_ID = 31337;

const MOST_BLOCKS = 1_000;

const TAGS = ['latest', 'pending', 'safe', 'finalized', 'earliest'] as const;

const hash = z.string().regex(/^0x[0-9a-fA-F]{64}$/, { error: 'expected 0x and 64 hex digits' });
const quantity = z.string().regex(/^0x[0-9a-fA-F]{1,13}$/, { error: 'hex string without 0x prefix' });
const blockTag = z.union([z.enum(TAGS), quantity], { error: 'hex string without 0x prefix' });
const topics = z.array(z.union([z.null(), z.string(), z.array(z.string())])).default([]);
const filterSchema = z.object({
  fromBlock: blockTag.optional(),
  toBlock: blockTag.optional(),
  blockHash: hash.optional(),
  address: z.union([z.string(), z.array(z.string())]).optional(),
  topics,
});

/** Methods of an EVM node. All are read-only. */
export const EVM_METHODS: Methods = {
  eth_chainId: (view) => numberToHex(view.isOtherChain ? OTHER_CHAIN_ID : view.on.chain.chainId),
  net_version: (view) => String(view.isOtherChain ? OTHER_CHAIN_ID : view.on.chain.chainId),
  web3_clientVersion: () => 'intentwatch-sandbox',
  eth_syncing: () => false,
  eth_blockNumber: ({ on, nowMs }) => numberToHex(on.blocks.head(nowMs)),
  eth_getBlockByNumber: (view, params) => {
    const number = numberOf(view, param(params, 0, blockTag));
    return number === null ? null : block(view, number, param(params, 1, z.boolean().default(false)));
  },
  eth_getBlockByHash: (view, params) => {
    const number = numberByHash(view, param(params, 0, hash));
    return number === null ? null : block(view, number, param(params, 1, z.boolean().default(false)));
  },
  eth_getTransactionReceipt: (view, params) => {
    const known = transactionOf(view, param(params, 0, hash));
    return known === undefined ? null : receiptOf(shownReceipt(view, known));
  },
  eth_getTransactionByHash: (view, params) => {
    const known = transactionOf(view, param(params, 0, hash));
    return known === undefined ? null : transactionShape(receiptInput(view, known));
  },
  eth_getLogs: (view, params) => logs(view, param(params, 0, filterSchema)),
};

function numberOf({ on, nowMs, knowsTags }: View, tag: z.infer<typeof blockTag>): number | null {
  const head = on.blocks.head(nowMs);
  switch (tag) {
    case 'latest':
    case 'pending':
      return head;
    case 'earliest':
      return 0;
    case 'safe':
    case 'finalized':
      if (!knowsTags) throw new RpcError(-32602, `invalid argument 0: unknown block tag ${tag}`);
      return tag === 'safe' ? on.blocks.safe(nowMs) : on.blocks.finalized(nowMs);
    default: {
      const number = isHex(tag) ? hexToNumber(tag) : head + 1;
      return number > head ? null : number;
    }
  }
}

function block(view: View, number: number, isWhole: boolean): Record<string, unknown> {
  const { on, ledger } = view;
  const found = blockAt(view, number);
  const hashes = ledger.inBlock(on.chain.chainId, number);
  if (!isWhole) return blockShape(found, hashes);
  return blockShape(
    found,
    inBlock(view, number).map((included) => transactionShape(receiptInput(view, included))),
  );
}

function inBlock({ on, ledger }: View, number: number): Included[] {
  const { chainId } = on.chain;
  return ledger.inBlock(chainId, number).flatMap((txHash) => ledger.get(chainId, txHash) ?? []);
}

function receiptInput(view: View, included: Included): ReceiptInput {
  const { on, ledger } = view;
  const index = ledger.inBlock(on.chain.chainId, included.block).indexOf(included.txHash);
  const half = { ...included, amount: (BigInt(included.amount) / 2n + 1n).toString() };
  const reported = view.contradicts('amount', included.txHash) ? half : included;
  return { included: reported, on, block: blockAt(view, included.block), index };
}

function shownReceipt(view: View, included: Included): ReceiptInput {
  const receipt = receiptInput(view, included);
  if (!view.contradicts('receipt', included.txHash)) return receipt;
  return { ...receipt, block: { ...receipt.block, hash: otherHash(receipt.block.hash) } };
}

function blockAt(view: View, number: number): Block {
  const truth = view.on.blocks.at(number);
  return view.contradicts('block', number) ? { ...truth, hash: otherHash(truth.hash) } : truth;
}

function numberByHash(view: View, blockHash: string): number | null {
  const { blocks } = view.on;
  const number = blocks.numberOf(blockHash) ?? blocks.numberOf(otherHash(blockHash));
  if (number === null || number > blocks.head(view.nowMs)) return null;
  return blockAt(view, number).hash === lookupKey(blockHash) ? number : null;
}

function logs(view: View, filter: z.infer<typeof filterSchema>): unknown[] {
  const { blocks } = view.on;
  const head = blocks.head(view.nowMs);
  let [from, to] = [
    numberOf(view, filter.fromBlock ?? 'latest') ?? head + 1,
    numberOf(view, filter.toBlock ?? 'latest') ?? head,
  ];
  if (filter.blockHash !== undefined) {
    const number = numberByHash(view, filter.blockHash);
    if (number === null) throw new RpcError(-32000, 'unknown block');
    from = number;
    to = number;
  }
  if (to - from >= MOST_BLOCKS) {
    throw new RpcError(-32005, `found ${to - from + 1} blocks, expected at most ${MOST_BLOCKS}`);
  }
  const addresses = filter.address === undefined ? null : new Set([filter.address].flat().map(lookupKey));
  const wanted = filter.topics.map((topic) =>
    topic === null ? null : new Set([topic].flat().map(lookupKey)),
  );
  const found: unknown[] = [];
  for (let number = from; number <= to && !view.hides; number++) {
    for (const included of inBlock(view, number)) {
      for (const log of logsOf(receiptInput(view, included))) {
        const isWanted = wanted.every((set, at) => set === null || set.has(String(log.topics[at])));
        if ((addresses === null || addresses.has(log.address)) && isWanted) found.push(log);
      }
    }
  }
  return found;
}
