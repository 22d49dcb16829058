import type { AbiEvent } from 'viem';
import { z } from 'zod';
import { viem } from '../evm.ts';
import { keccak256 } from '../keccak256.ts';
import type { BurnMessage } from './burn.ts';
import type { Found, Move } from './proof.ts';

/** Both parties are topics and the amount is the data. */
const TRANSFER_TOPIC = `0x${keccak256('Transfer(address,address,uint256)')}`;

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

type EvmLog = z.infer<typeof LOG>;

/** The used part of the answer to `eth_getTransactionReceipt`. */
export const EVM_RECEIPT = z.object({
  transactionHash: HASH,
  blockHash: HASH,
  blockNumber: QUANTITY,
  status: z.enum(['0x0', '0x1']),
  logs: listOf(LOG),
});

export type EvmReceipt = z.infer<typeof EVM_RECEIPT>;

export const EVM_BLOCK = z.object({ number: QUANTITY, hash: HASH, timestamp: QUANTITY });

/** Fault of a receipt that is of another transaction or inconsistent (as one made of two blocks); null without one. */
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

/** `Transfer` logs of a token, or of all for null; without collectibles (four topics) and amount 0, which anybody can log. */
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

/** The address in a topic; null when the topic holds more than an address. */
function addressOf(topic: string | undefined): string | null {
  return topic !== undefined && /^0x0{24}/.test(topic) ? `0x${topic.slice(26)}` : null;
}

/** A contract whose event names the intent that a transaction fulfils, as pinned in the config. */
export type Fulfilments = {
  /** The contract's address in lower case. */
  address: string;
  /** Solidity declaration: `event IntentFulfilled(bytes32 indexed hash, …)`. */
  event: string;
  /** Name of the parameter with the intent's hash; a bytes32. */
  hash: string;
};

type EventFault = { fault: string; in: 'event' | 'hash' };

/** Parses the event of pinned fulfilments; returns a sentence about the fault when it is invalid. */
export function readFulfilmentEvent({ event, hash }: { event: string; hash: string }): AbiEvent | EventFault {
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
    const [item] = viem().parseAbi(texts);
    return item?.type === 'event' ? item : null;
  } catch {
    return null;
  }
}

/** Intent hashes that a transaction fulfils by the pinned contract's events, in lower case. */
export function fulfilledBy(
  logs: readonly EvmLog[],
  { address, abi, hash }: { address: string; abi: AbiEvent; hash: string },
): string[] {
  return logs.flatMap((log) => {
    if (log.address !== address) return [];
    const value = argumentsOf(log, abi)[hash];
    return typeof value === 'string' ? [value.toLowerCase()] : [];
  });
}

let burnEvents: { sent: AbiEvent; received: AbiEvent } | undefined;

function eventsOfBurns() {
  burnEvents ??= {
    sent: viem().parseAbiItem('event MessageSent(bytes message)'),
    received: viem().parseAbiItem(
      'event MessageReceived(address indexed caller, uint32 sourceDomain, uint64 indexed nonce, bytes32 sender, bytes messageBody)',
    ),
  };
  return burnEvents;
}

/** A message of version 0: its source domain, its nonce and its body. Between them are target, sender, recipient and caller. */
const SENT_MESSAGE = /^0x0{8}([0-9a-f]{8})[0-9a-f]{8}([0-9a-f]{16})[0-9a-f]{192}([0-9a-f]+)$/;

/** The body of a burn message of version 0: the recipient, an EVM address, and the amount, between token and sender. */
const BURN_BODY = /^0{8}[0-9a-f]{64}0{24}([0-9a-f]{40})([0-9a-f]{64})[0-9a-f]{64}$/;

const MOST_MESSAGES = 100;

/** Burn messages that a transmitter, by its address in lower case, sent and received; null without any. */
export function burnMessagesOf(logs: readonly EvmLog[], transmitter: string): Found['burns'] | null {
  const own = logs.filter(({ address }) => address === transmitter);
  if (own.length === 0) return null;
  const events = eventsOfBurns();
  const sent = own.flatMap((log) => {
    const { message } = argumentsOf(log, events.sent);
    const [, domain = '', nonce = '', body = ''] = SENT_MESSAGE.exec(hexOf(message)) ?? [];
    return burnMessage({ domain: BigInt(`0x0${domain}`), nonce: BigInt(`0x0${nonce}`), body });
  });
  const received = own.flatMap((log) => {
    const { sourceDomain, nonce, messageBody } = argumentsOf(log, events.received);
    if (typeof sourceDomain !== 'number' || typeof nonce !== 'bigint') return [];
    return burnMessage({ domain: BigInt(sourceDomain), nonce, body: hexOf(messageBody).slice(2) });
  });
  if (sent.length === 0 && received.length === 0) return null;
  return { sent: sent.slice(0, MOST_MESSAGES), received: received.slice(0, MOST_MESSAGES) };
}

function burnMessage({
  domain,
  nonce,
  body,
}: {
  domain: bigint;
  nonce: bigint;
  body: string;
}): BurnMessage[] {
  const [, recipient, amount] = BURN_BODY.exec(body) ?? [];
  if (recipient === undefined || amount === undefined) return [];
  return [
    { key: `${domain}:${nonce}`, recipient: `0x${recipient}`, amount: BigInt(`0x${amount}`).toString() },
  ];
}

function hexOf(value: unknown): string {
  return typeof value === 'string' ? value.toLowerCase() : '';
}

/** Arguments of a log, by name; none for a log of another event. */
function argumentsOf({ topics, data }: EvmLog, abi: AbiEvent): { [name: string]: unknown } {
  try {
    const [signature, ...rest] = topics.map(asHex);
    if (signature === undefined) return {};
    const { args } = viem().decodeEventLog({ abi: [abi], topics: [signature, ...rest], data: asHex(data) });
    return Object.fromEntries(Object.entries(args ?? {}));
  } catch {
    return {};
  }
}

function asHex(text: string): `0x${string}` {
  return `0x${text.slice(2)}`;
}

/** Accounts of this program may charge a fee on the amounts that they receive. */
const TOKEN_2022 = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';

/** An address has at most 44 characters; longer text is not stored. */
const SOLANA_ADDRESS = z.string().max(64, { error: 'an address' });

const TOKEN_BALANCE = z.object({
  accountIndex: z.int().min(0),
  mint: SOLANA_ADDRESS,
  /** Missing on old nodes and blocks. */
  owner: SOLANA_ADDRESS.optional(),
  programId: z.string().optional(),
  uiTokenAmount: z.object({ amount: z.string().regex(/^\d{1,20}$/, { error: 'a whole number' }) }),
});

type TokenBalance = z.infer<typeof TOKEN_BALANCE>;

/** The used part of the answer to `getTransaction` with the encoding `json`. */
export const SOLANA_TRANSACTION = z.object({
  slot: z.int().min(0),
  blockTime: z.int().min(0).nullish(),
  transaction: z.object({
    signatures: listOf(z.string()),
    message: z.object({ accountKeys: listOf(SOLANA_ADDRESS) }),
  }),
  meta: z
    .object({
      err: z.unknown(),
      preTokenBalances: listOf(TOKEN_BALANCE).nullish(),
      postTokenBalances: listOf(TOKEN_BALANCE).nullish(),
      loadedAddresses: z
        .object({ writable: listOf(SOLANA_ADDRESS), readonly: listOf(SOLANA_ADDRESS) })
        .nullish(),
    })
    .nullable(),
});

type SolanaTransaction = z.infer<typeof SOLANA_TRANSACTION>;

/** Reason why an answer is unusable; null for a usable one. */
export function transactionFault(
  { transaction, meta, blockTime }: SolanaTransaction,
  txHash: string,
): string | null {
  if (transaction.signatures[0] !== txHash) return 'the answer is of another transaction';
  if (meta === null) return 'the answer has no meta: the endpoint does not store it';
  if (meta.err === undefined) return 'the answer does not state whether the transaction failed';
  if (blockTime == null) return 'the answer has no blockTime';
  // A failed transaction moved nothing; a successful one without balances may have moved anything.
  const isBlind = meta.err === null && (meta.preTokenBalances == null || meta.postTokenBalances == null);
  if (isBlind) return 'the answer has no token balances: the endpoint does not store them';
  const balances = [...(meta.preTokenBalances ?? []), ...(meta.postTokenBalances ?? [])];
  return balances.every(({ owner }) => owner !== undefined)
    ? null
    : 'the answer does not name the owners of its balances';
}

/**
 * Net gains of the owners of a token (of every token for null) in a transaction, over all their accounts: a move
 * between one's own accounts is 0. An account missing on one side had nothing there.
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

/** Net change of one owner; `byAccount`: by the account's position in the transaction. */
type Change = {
  mint: string;
  owner: string;
  gain: bigint;
  byAccount: Map<number, bigint>;
  mayHaveFee: boolean;
};

/** A list that stops at its first invalid item: an answer may hold a million, whose faults would take minutes and gigabytes. */
function listOf<T>(item: z.ZodType<T>): z.ZodType<T[]> {
  return z.array(z.unknown(), { error: 'a list' }).transform((list, context) => {
    const read: T[] = [];
    for (const [index, value] of list.entries()) {
      const { success, data, error } = item.safeParse(value);
      if (!success) {
        const [issue] = error.issues;
        context.addIssue({ code: 'custom', message: issue?.message, path: [index, ...(issue?.path ?? [])] });
        return z.NEVER;
      }
      read.push(data);
    }
    return read;
  });
}
