import { z } from 'zod';
import { TOKENS } from '../world/chains.ts';
import { address } from '../world/identifiers.ts';
import { chance, randomStream } from '../world/random.ts';
import type { Included } from './ledger.ts';
import { type Move, outcomeOf } from './moves.ts';
import { type Methods, transactionOf, type View } from './rpc.ts';
import { param, RpcError } from './rpc-error.ts';

const MAINNET = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d';
const DEVNET = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG';

const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';

const SLOTS_PER_EPOCH = 432_000;
const USUAL_DECIMALS = 6;

const commitment = z.enum(['processed', 'confirmed', 'finalized']).default('finalized');
const signature = z.string().max(100);
const slotNumber = z.int().min(0);
const at = z.object({ commitment }).default({ commitment: 'finalized' });
const transactionOptions = z
  .object({
    commitment,
    encoding: z.enum(['json', 'jsonParsed', 'base58', 'base64']).default('json'),
    maxSupportedTransactionVersion: z.number().optional(),
  })
  .default({ commitment: 'finalized', encoding: 'json' });

export const SOLANA_METHODS: Methods = {
  getGenesisHash: ({ isOtherChain }) => (isOtherChain ? DEVNET : MAINNET),
  getHealth: () => 'ok',
  getVersion: () => ({ 'solana-core': '2.0.0', 'feature-set': 0 }),
  getSlot: (view, params) => slotAt(view, param(params, 0, at).commitment),
  getBlockHeight: (view, params) => slotAt(view, param(params, 0, at).commitment),
  getEpochInfo: (view, params) => {
    const slot = slotAt(view, param(params, 0, at).commitment);
    return {
      absoluteSlot: slot,
      blockHeight: slot,
      epoch: Math.floor(slot / SLOTS_PER_EPOCH),
      slotIndex: slot % SLOTS_PER_EPOCH,
      slotsInEpoch: SLOTS_PER_EPOCH,
      transactionCount: null,
    };
  },
  getBlockTime: (view, params) => existing(view, param(params, 0, slotNumber)).timestamp,
  getBlock: (view, params) => {
    const block = existing(view, param(params, 0, slotNumber));
    return {
      blockhash: block.hash,
      previousBlockhash: block.parentHash,
      parentSlot: Math.max(0, block.number - 1),
      blockHeight: block.number,
      blockTime: block.timestamp,
      signatures: view.ledger.inBlock(view.on.chain.chainId, block.number),
    };
  },
  getSignatureStatuses: (view, params) => ({
    context: { slot: slotAt(view, 'confirmed') },
    value: param(params, 0, z.array(signature).max(256)).map((text) => {
      const included = transactionOf(view, text);
      if (included === undefined) return null;
      const isFinal = included.block <= view.on.blocks.finalized(view.nowMs);
      const err = outcomeOf(included, view.on.chain).succeeded ? null : FAILURE;
      return {
        slot: included.block,
        confirmations: isFinal ? null : 1,
        err,
        status: err === null ? { Ok: null } : { Err: err },
        confirmationStatus: isFinal ? 'finalized' : 'confirmed',
      };
    }),
  }),
  getTransaction: (view, params) => {
    const included = transactionOf(view, param(params, 0, signature));
    const options = param(params, 1, transactionOptions);
    if (included === undefined || included.block > slotAt(view, options.commitment)) return null;
    if (options.maxSupportedTransactionVersion === undefined) {
      const message = 'Transaction version (0) is not supported by the requesting client';
      throw new RpcError(
        -32015,
        `${message}. Please try the request again with maxSupportedTransactionVersion`,
      );
    }
    return transaction(view, included);
  },
};

const FAILURE = { InstructionError: [2, { Custom: 1 }] };

function slotAt({ on, nowMs }: View, level: z.infer<typeof commitment>): number {
  return level === 'finalized' ? on.blocks.finalized(nowMs) : on.blocks.head(nowMs);
}

function existing({ on, nowMs }: View, slot: number) {
  if (slot > on.blocks.head(nowMs)) throw new RpcError(-32004, `Block not available for slot ${slot}`);
  return on.blocks.at(slot);
}

/** A token account of the transaction; amounts in base units, null where there was no account before. */
type Account = { owner: string; mint: string; before: bigint | null; after: bigint };

function transaction(view: View, included: Included): Record<string, unknown> {
  const { on } = view;
  const halves = view.contradicts('amount', included.txHash);
  const { succeeded, moves } = outcomeOf(included, on.chain);
  const accounts = accountsOf(
    halves ? moves.map((move) => ({ ...move, amount: move.amount / 2n + 1n })) : moves,
    included.txHash,
  );
  const block = on.blocks.at(included.block + (view.contradicts('block', included.block) ? 1 : 0));
  const balances = (amountOf: (account: Account) => bigint | null) =>
    accounts.flatMap((account, index) => {
      const amount = amountOf(account);
      return amount === null ? [] : [balance(account, { amount, accountIndex: index + 1 })];
    });
  const keys = accounts.map((_, index) => drawnKey(included.txHash, index));
  const err = succeeded ? null : FAILURE;
  return {
    slot: block.number,
    blockTime: block.timestamp,
    version: 0,
    meta: {
      err,
      status: err === null ? { Ok: null } : { Err: err },
      fee: 5_000,
      computeUnitsConsumed: 4_500,
      preBalances: [10_000_000, ...keys.map(() => 2_039_280)],
      postBalances: [9_995_000, ...keys.map(() => 2_039_280)],
      preTokenBalances: balances(({ before }) => before),
      postTokenBalances: balances(({ after }) => after),
      innerInstructions: [],
      logMessages: [],
      rewards: [],
      loadedAddresses: { readonly: [], writable: [] },
    },
    transaction: {
      signatures: [included.txHash],
      message: {
        accountKeys: [drawnKey(included.txHash, -1), ...keys, TOKEN_PROGRAM],
        addressTableLookups: [],
        header: { numReadonlySignedAccounts: 0, numReadonlyUnsignedAccounts: 1, numRequiredSignatures: 1 },
        instructions: [],
        recentBlockhash: on.blocks.at(Math.max(0, block.number - 10)).hash,
      },
    },
  };
}

/** One account per owner and token of the transaction, so that its balances show every move. */
function accountsOf(moves: readonly Move[], txHash: string): Account[] {
  const accounts = new Map<string, Account>();
  const total = moves.reduce((sum, { amount }) => sum + amount, 0n);
  const accountOf = (owner: string, mint: string, isSender: boolean): Account => {
    const key = `${owner} ${mint}`;
    const included = accounts.get(key);
    if (included !== undefined) return included;
    // An owner that never had the token has no account before its first payment.
    const isNew = !isSender && chance(randomStream(txHash, 'account', key), 0.5);
    const held = isSender ? total : 7_000_000n;
    const account = { owner, mint, before: isNew ? null : held, after: isNew ? 0n : held };
    accounts.set(key, account);
    return account;
  };
  for (const { token, from, to, amount } of moves) {
    accountOf(from, token, true).after -= amount;
    accountOf(to, token, false).after += amount;
  }
  return [...accounts.values()];
}

function balance(
  { owner, mint }: Account,
  { amount, accountIndex }: { amount: bigint; accountIndex: number },
): Record<string, unknown> {
  const decimals = TOKENS.find((token) => token.address === mint)?.decimals ?? USUAL_DECIMALS;
  const units = Number(amount) / 10 ** decimals;
  return {
    accountIndex,
    mint,
    owner,
    programId: TOKEN_PROGRAM,
    uiTokenAmount: { amount: amount.toString(), decimals, uiAmount: units, uiAmountString: String(units) },
  };
}

function drawnKey(txHash: string, index: number): string {
  return address(randomStream(txHash, 'key', index), 'solana');
}
