import { hexToNumber, isHex, numberToHex } from 'viem';
import { z } from 'zod';
import { lookupKey } from '../world/identifiers.ts';
import type { Block } from './blocks.ts';
import {
  blockShape,
  halved,
  logsOf,
  otherHash,
  type Placed,
  paymentShown,
  receiptOf,
  type ShownTransaction,
  transactionShape,
} from './evm-shapes.ts';
import { EVM_STATE_METHODS } from './evm-state.ts';
import { fieldsOf } from './machine.ts';
import { type Methods, transactionOf, type View } from './rpc.ts';
import { param, RpcError } from './rpc-error.ts';

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

/** Methods of an EVM node. */
export const EVM_METHODS: Methods = {
  ...EVM_STATE_METHODS,
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
    const shown = shownOf(view, param(params, 0, hash));
    return shown === undefined ? null : receiptOf(placedReceipt(view, shown));
  },
  eth_getTransactionByHash: (view, params) => {
    const txHash = param(params, 0, hash);
    const shown = shownOf(view, txHash);
    return shown === undefined ? waiting(view, txHash) : transactionShape(placed(view, shown));
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
  const found = inBlock(view, number);
  const gasUsed = found.reduce((sum, { gasUsed }) => sum + gasUsed, 0n);
  const transactions = found.map((shown) => (isWhole ? transactionShape(placed(view, shown)) : shown.txHash));
  return blockShape(blockAt(view, number), { transactions, gasUsed });
}

/** The transactions of a block: those of clients, which were all there when it was born, before payments. */
function inBlock({ on, ledger }: View, number: number): ShownTransaction[] {
  const { chain, machine } = on;
  const payments = ledger
    .inBlock(chain.chainId, number)
    .flatMap((txHash) => ledger.get(chain.chainId, txHash) ?? [])
    .map((included) => paymentShown(included, chain));
  return [...(machine?.inBlock(number) ?? []), ...payments];
}

/** A transaction that this endpoint has by now; undefined also where it hides it. */
function shownOf(view: View, txHash: string): ShownTransaction | undefined {
  const { on, nowMs, hides } = view;
  const executed = on.machine?.get(txHash);
  if (executed !== undefined) {
    return hides || executed.block > on.blocks.head(nowMs) ? undefined : executed;
  }
  const payment = transactionOf(view, txHash);
  return payment === undefined ? undefined : paymentShown(payment, on.chain);
}

/** A client's transaction before its block, as this endpoint shows it. */
function waiting({ on, hides }: View, txHash: string): Record<string, unknown> | null {
  const signed = hides ? undefined : on.machine?.waiting(txHash);
  if (signed === undefined) return null;
  const { from, to } = signed;
  const unplaced = { blockHash: null, blockNumber: null, transactionIndex: null };
  return {
    hash: signed.hash,
    ...unplaced,
    chainId: numberToHex(on.chain.chainId),
    from,
    to,
    ...fieldsOf(signed),
  };
}

function placed(view: View, shown: ShownTransaction): Placed {
  const all = inBlock(view, shown.block);
  const index = all.findIndex(({ txHash }) => txHash === shown.txHash);
  const before = all.slice(0, index);
  return {
    shown: view.contradicts('amount', shown.txHash) ? halved(shown) : shown,
    chainId: view.on.chain.chainId,
    block: blockAt(view, shown.block),
    index,
    gasBefore: before.reduce((sum, { gasUsed }) => sum + gasUsed, 0n),
    logsBefore: before.reduce((sum, { logs }) => sum + logs.length, 0),
  };
}

function placedReceipt(view: View, shown: ShownTransaction): Placed {
  const receipt = placed(view, shown);
  if (!view.contradicts('receipt', shown.txHash)) return receipt;
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
    for (const shown of inBlock(view, number)) {
      for (const log of logsOf(placed(view, shown))) {
        const isWanted = wanted.every((set, at) => set === null || set.has(String(log.topics[at])));
        if ((addresses === null || addresses.has(log.address)) && isWanted) found.push(log);
      }
    }
  }
  return found;
}
