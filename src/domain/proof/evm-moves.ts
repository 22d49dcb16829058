import type { AbiEvent } from 'viem';
import { decodeEventLog, parseAbi, toEventSelector } from 'viem/utils';
import { z } from 'zod';
import { listOf } from './list-of.ts';
import type { Move } from './reading.ts';

/** `Transfer(address,address,uint256)`: both parties are topics and the amount is the data. */
const TRANSFER_TOPIC = toEventSelector('Transfer(address,address,uint256)');

/** More moves of one transaction are not stored. */
const MOST_MOVES = 500;

/** A number as an EVM node writes it, up to 256 bits. */
export const QUANTITY = z
  .string()
  .regex(/^0x[0-9a-fA-F]{1,64}$/, { error: 'a number in hex' })
  .transform((text) => BigInt(text));

const HASH = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/, { error: 'a hash' })
  .transform((text) => text.toLowerCase());

const ADDRESS = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, { error: 'an address' })
  .transform((text) => text.toLowerCase());

const LOG = z.object({
  address: ADDRESS,
  topics: listOf(HASH),
  data: z.string().regex(/^0x([0-9a-fA-F]{2})*$/, { error: 'bytes in hex' }),
  logIndex: QUANTITY.refine((index) => index <= Number.MAX_SAFE_INTEGER, { error: 'a place in a block' }),
  transactionHash: HASH,
  blockHash: HASH,
  removed: z.boolean().optional(),
});

export type EvmLog = z.infer<typeof LOG>;

/** What is read of the answer to `eth_getTransactionReceipt`. */
export const EVM_RECEIPT = z.object({
  transactionHash: HASH,
  blockHash: HASH,
  blockNumber: QUANTITY,
  status: z.enum(['0x0', '0x1']),
  logs: listOf(LOG),
});

export type EvmReceipt = z.infer<typeof EVM_RECEIPT>;

/** What is read of a block. */
export const EVM_BLOCK = z.object({ number: QUANTITY, hash: HASH, timestamp: QUANTITY });

/**
 * Why a receipt cannot be of this transaction, or does not agree with itself; null where it does. One that a node makes up
 * of two blocks proves nothing.
 */
export function receiptFault(
  { transactionHash, blockHash, logs }: EvmReceipt,
  txHash: string,
): string | null {
  if (transactionHash !== txHash) return 'the receipt is of another transaction';
  const isWhole = logs.every(
    (log) => log.blockHash === blockHash && log.transactionHash === txHash && log.removed !== true,
  );
  if (!isWhole) return 'the receipt has logs of another block or transaction';
  const indexes = new Set(logs.map(({ logIndex }) => logIndex));
  return indexes.size === logs.length ? null : 'the receipt has one log index twice';
}

/**
 * The `Transfer` logs of a token, or of every token where it is null. Those of collectibles (four topics) are none, and those
 * of amount 0, which anybody can have written, move nothing.
 */
export function evmMoves(
  logs: readonly EvmLog[],
  token: string | null,
): { moves: Move[]; isPartial: boolean } {
  const moves = logs.flatMap((log): Move[] => {
    const { address, topics, data, logIndex } = log;
    const [topic, from, to] = topics;
    if (topic !== TRANSFER_TOPIC || (token !== null && address !== token)) return [];
    if (topics.length !== 3 || data.length !== 66) return [];
    const [sender, receiver] = [addressOf(from), addressOf(to)];
    if (sender === null || receiver === null) return [];
    const amount = BigInt(data);
    if (amount === 0n) return [];
    return [
      { token: address, from: sender, to: receiver, amount: amount.toString(), index: Number(logIndex) },
    ];
  });
  return { moves: moves.slice(0, MOST_MOVES), isPartial: moves.length > MOST_MOVES };
}

/** The address in a topic; null where more than an address stands in it. */
function addressOf(topic: string | undefined): string | null {
  return topic !== undefined && /^0x0{24}/.test(topic) ? `0x${topic.slice(26)}` : null;
}

/** A contract whose event says which intent a transaction fulfils, as it is pinned in the config. */
export type Fulfilments = {
  /** Of the contract, in lower case. */
  address: string;
  /** As Solidity declares it: `event IntentFulfilled(bytes32 indexed hash, …)`. */
  event: string;
  /** The parameter that is the intent's hash; a bytes32. */
  hash: string;
};

/** The event of pinned fulfilments, read; a sentence about what is wrong with it where it cannot be. */
export function readFulfilmentEvent({
  event,
  hash,
}: Pick<Fulfilments, 'event' | 'hash'>): AbiEvent | { fault: string; in: 'event' | 'hash' } {
  const read = parsedEvent(event);
  if (read === null)
    return {
      in: 'event',
      fault: 'an event as Solidity declares it, like event Filled(bytes32 indexed intent)',
    };
  const parameter = read.inputs.find(({ name }) => name === hash);
  if (parameter?.type === 'bytes32') return read;
  const names = read.inputs.flatMap(({ name, type }) => (name && type === 'bytes32' ? [name] : []));
  return {
    in: 'hash',
    fault: `the name of a bytes32 parameter of the event (${names.join(', ') || 'it has none'})`,
  };
}

function parsedEvent(text: string): AbiEvent | null {
  try {
    const texts: string[] = [text];
    const [item] = parseAbi(texts);
    return item?.type === 'event' ? item : null;
  } catch {
    return null;
  }
}

/** The intent hashes that a transaction fulfils by the events of the pinned contract, in lower case. */
export function fulfilledBy(
  logs: readonly EvmLog[],
  { address, abi, hash }: { address: string; abi: AbiEvent; hash: string },
): string[] {
  return logs.flatMap((log) => {
    if (log.address !== address) return [];
    const value = new Map(Object.entries(argumentsOf(log, abi))).get(hash);
    return typeof value === 'string' ? [value.toLowerCase()] : [];
  });
}

/** The arguments of a log, by name; none of one that is of another event. */
function argumentsOf({ topics, data }: EvmLog, abi: AbiEvent): object {
  try {
    const [signature, ...rest] = topics.map(asHex);
    if (signature === undefined) return {};
    const { args } = decodeEventLog({ abi: [abi], topics: [signature, ...rest], data: asHex(data) });
    return args ?? {};
  } catch {
    return {};
  }
}

function asHex(text: string): `0x${string}` {
  return `0x${text.slice(2)}`;
}
