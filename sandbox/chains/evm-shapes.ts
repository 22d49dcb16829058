import { type Hex, hexToBigInt, isHex, numberToHex, pad, toEventSelector, zeroHash } from 'viem';
import { FULFILMENT_EVENT, PORTAL_ADDRESS } from '../contracts/portal.ts';
import type { Chain } from '../world/chains.ts';
import type { Block } from './blocks.ts';
import { BASE_FEE, BLOCK_GAS, type Execution, type RawLog } from './engine.ts';
import type { Included } from './ledger.ts';
import { NOBODY, outcomeOf } from './moves.ts';

/** Topic of `Transfer(address indexed from, address indexed to, uint256 value)`. */
export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** Topic of the portal's event. */
const FULFILLED = toEventSelector(FULFILMENT_EVENT);

/** A contract that logs the same event but is not trusted. */
const FORGER_ADDRESS = '0x00000000000000000000000000000000f0e9edf1';

const NO_BLOOM: Hex = `0x${'0'.repeat(512)}`;

const PAYMENT_GAS = 65_000n;
const PAYMENT_GAS_PRICE = 1_000_000_000n;

/** A transaction as its chain shows it. `fields`: those that only its signer decides. */
export type ShownTransaction = Execution & {
  txHash: string;
  block: number;
  from: Hex;
  to: Hex | null;
  gasPrice: bigint;
  fields: Record<string, unknown>;
};

/** A transaction in its block: its index, and the gas and the logs of those before it. */
export type Placed = {
  shown: ShownTransaction;
  chainId: number;
  block: Block;
  index: number;
  gasBefore: bigint;
  logsBefore: number;
};

type Log = RawLog & Record<string, unknown>;

/** The logs of a transaction as `eth_getTransactionReceipt` and `eth_getLogs` return them. */
export function logsOf({ shown, block, index, logsBefore }: Placed): Log[] {
  return shown.logs.map((log, at) => ({
    ...log,
    blockNumber: numberToHex(block.number),
    blockHash: block.hash,
    blockTimestamp: numberToHex(block.timestamp),
    transactionHash: shown.txHash,
    transactionIndex: numberToHex(index),
    logIndex: numberToHex(logsBefore + at),
    removed: false,
  }));
}

export function receiptOf(placed: Placed): Record<string, unknown> {
  const { shown, block, index, gasBefore } = placed;
  return {
    type: shown.fields.type,
    status: shown.succeeded ? '0x1' : '0x0',
    transactionHash: shown.txHash,
    transactionIndex: numberToHex(index),
    blockHash: block.hash,
    blockNumber: numberToHex(block.number),
    from: shown.from,
    to: shown.to,
    contractAddress: shown.contract,
    gasUsed: numberToHex(shown.gasUsed),
    cumulativeGasUsed: numberToHex(gasBefore + shown.gasUsed),
    effectiveGasPrice: numberToHex(shown.gasPrice),
    logsBloom: NO_BLOOM,
    logs: logsOf(placed),
  };
}

export function transactionShape({ shown, chainId, block, index }: Placed): Record<string, unknown> {
  return {
    hash: shown.txHash,
    blockHash: block.hash,
    blockNumber: numberToHex(block.number),
    transactionIndex: numberToHex(index),
    chainId: numberToHex(chainId),
    from: shown.from,
    to: shown.to,
    ...shown.fields,
  };
}

/** A payment of the world as its chain shows it: a call of its token without contents. */
export function paymentShown(included: Included, chain: Chain): ShownTransaction {
  const { succeeded, moves, fulfilled, forged } = outcomeOf(included, chain);
  const logs: RawLog[] = moves.map(({ token, from, to, amount }) => ({
    address: hex(token),
    topics: [TRANSFER, topic(from), topic(to)],
    data: amountData(amount),
  }));
  const naming = (intent: string): Hex[] => [FULFILLED, hex(intent), topic(included.from)];
  if (fulfilled !== null) logs.push({ address: PORTAL_ADDRESS, topics: naming(fulfilled), data: '0x' });
  if (forged !== undefined) logs.push({ address: FORGER_ADDRESS, topics: naming(forged), data: '0x' });
  return {
    txHash: included.txHash,
    block: included.block,
    from: hex(included.from),
    to: hex(included.token),
    succeeded,
    gasUsed: PAYMENT_GAS,
    gasPrice: PAYMENT_GAS_PRICE,
    contract: null,
    logs,
    fields: PAYMENT_FIELDS,
  };
}

const PAYMENT_FIELDS = {
  type: '0x2',
  value: '0x0',
  input: '0x',
  nonce: '0x0',
  gas: numberToHex(PAYMENT_GAS),
  gasPrice: numberToHex(PAYMENT_GAS_PRICE),
  maxFeePerGas: numberToHex(PAYMENT_GAS_PRICE),
  maxPriorityFeePerGas: numberToHex(PAYMENT_GAS_PRICE),
  accessList: [],
  r: zeroHash,
  s: zeroHash,
  v: '0x0',
  yParity: '0x0',
};

/** The transaction as an endpoint shows it that contradicts others about amounts. */
export function halved(shown: ShownTransaction): ShownTransaction {
  const logs = shown.logs.map((log) =>
    log.topics[0] === TRANSFER ? { ...log, data: amountData(hexToBigInt(log.data) / 2n + 1n) } : log,
  );
  return { ...shown, logs };
}

function amountData(amount: bigint): Hex {
  return numberToHex(amount, { size: 32 });
}

/** A block as nodes return it; `transactions` are hashes, or whole. */
export function blockShape(
  block: Block,
  { transactions, gasUsed }: { transactions: readonly unknown[]; gasUsed: bigint },
): Record<string, unknown> {
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
    gasLimit: numberToHex(BLOCK_GAS),
    gasUsed: numberToHex(gasUsed),
    baseFeePerGas: numberToHex(BASE_FEE),
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
