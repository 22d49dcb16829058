import { encodeAbiParameters, type Hex, isHex, numberToHex, pad, toEventSelector, zeroHash } from 'viem';
import { FULFILMENT_EVENT, PORTAL_ADDRESS } from '../contracts/portal.ts';
import type { Block } from './blocks.ts';
import type { AskableChain } from './chains.ts';
import type { Included } from './ledger.ts';
import { outcomeOf } from './moves.ts';

/** Topic of `Transfer(address indexed from, address indexed to, uint256 value)`. */
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** Topic of the portal's event. */
const FULFILLED = toEventSelector(FULFILMENT_EVENT);

/** A contract that logs the same event but is not trusted. */
const FORGER_ADDRESS = '0x00000000000000000000000000000000f0e9edf1';

const NO_BLOOM: Hex = `0x${'0'.repeat(512)}`;
const NOBODY = '0x0000000000000000000000000000000000000000';

/** Number of log indexes per transaction within its block. */
const LOGS_PER_TRANSACTION = 8;

/** Position of a transaction. */
export type ReceiptInput = { included: Included; on: AskableChain; block: Block; index: number };

type Log = { address: Hex; topics: Hex[]; data: Hex } & Record<string, unknown>;

/** The logs of a transaction as `eth_getTransactionReceipt` and `eth_getLogs` return them. */
export function logsOf({ included, on, block, index }: ReceiptInput): Log[] {
  const { moves, fulfilled, forged } = outcomeOf(included, on.chain);
  const logs: Pick<Log, 'address' | 'topics' | 'data'>[] = moves.map(({ token, from, to, amount }) => ({
    address: hex(token),
    topics: [TRANSFER, topic(from), topic(to)],
    data: encodeAbiParameters([{ type: 'uint256' }], [amount]),
  }));
  const naming = (intent: string): Hex[] => [FULFILLED, hex(intent), topic(included.from)];
  if (fulfilled !== null) logs.push({ address: PORTAL_ADDRESS, topics: naming(fulfilled), data: '0x' });
  if (forged !== undefined) logs.push({ address: FORGER_ADDRESS, topics: naming(forged), data: '0x' });
  return logs.map((log, at) => ({
    ...log,
    blockNumber: numberToHex(block.number),
    blockHash: block.hash,
    blockTimestamp: numberToHex(block.timestamp),
    transactionHash: included.txHash,
    transactionIndex: numberToHex(index),
    logIndex: numberToHex(index * LOGS_PER_TRANSACTION + at),
    removed: false,
  }));
}

export function receiptOf(receipt: ReceiptInput): Record<string, unknown> {
  const { included, on, block, index } = receipt;
  return {
    type: '0x2',
    status: outcomeOf(included, on.chain).succeeded ? '0x1' : '0x0',
    transactionHash: included.txHash,
    transactionIndex: numberToHex(index),
    blockHash: block.hash,
    blockNumber: numberToHex(block.number),
    from: hex(included.from),
    to: hex(included.token),
    contractAddress: null,
    gasUsed: '0xfde8',
    cumulativeGasUsed: numberToHex(65_000 * (index + 1)),
    effectiveGasPrice: '0x3b9aca00',
    logsBloom: NO_BLOOM,
    logs: logsOf(receipt),
  };
}

export function transactionShape({ included, on, block, index }: ReceiptInput): Record<string, unknown> {
  return {
    type: '0x2',
    hash: included.txHash,
    blockHash: block.hash,
    blockNumber: numberToHex(block.number),
    transactionIndex: numberToHex(index),
    chainId: numberToHex(on.chain.chainId),
    from: hex(included.from),
    to: hex(included.token),
    value: '0x0',
    input: '0x',
    nonce: '0x0',
    gas: '0xfde8',
    gasPrice: '0x3b9aca00',
    maxFeePerGas: '0x3b9aca00',
    maxPriorityFeePerGas: '0x3b9aca00',
    accessList: [],
    r: zeroHash,
    s: zeroHash,
    v: '0x0',
    yParity: '0x0',
  };
}

/** A block as nodes return it; `transactions` are hashes, or whole. */
export function blockShape(block: Block, transactions: readonly unknown[]): Record<string, unknown> {
  return {
    number: numberToHex(block.number),
    hash: block.hash,
    parentHash: block.parentHash,
    timestamp: numberToHex(block.timestamp),
    transactions,
    nonce: '0x0000000000000000',
    sha3Uncles: zeroHash,
    logsBloom: NO_BLOOM,
    transactionsRoot: zeroHash,
    stateRoot: zeroHash,
    receiptsRoot: zeroHash,
    mixHash: zeroHash,
    miner: NOBODY,
    difficulty: '0x0',
    totalDifficulty: '0x0',
    extraData: '0x',
    size: '0x3e8',
    gasLimit: '0x1c9c380',
    gasUsed: numberToHex(65_000 * transactions.length),
    baseFeePerGas: '0x3b9aca00',
    uncles: [],
  };
}

/** A hash that no other endpoint gives for a block; applied to that hash, the true one. */
export function otherHash(hash: string): string {
  const head = Number.parseInt(hash.slice(2, 4), 16) ^ 0xff;
  return `0x${head.toString(16).padStart(2, '0')}${hash.slice(4).toLowerCase()}`;
}

function topic(text: string): Hex {
  return pad(hex(text), { size: 32 });
}

/** Hex as nodes write it, in lower case; the zero address for a text that is no hex. */
function hex(text: string): Hex {
  const lower = text.toLowerCase();
  return isHex(lower) ? lower : NOBODY;
}
