import { type Hex, hexToBigInt, numberToHex } from 'viem';
import { balanceSlot, nonceSlot, placedContracts, SUPPLY_SLOT } from '../contracts/genesis.ts';
import { type Chain, TOKENS } from '../world/chains.ts';
import { lookupKey } from '../world/identifiers.ts';
import type { Blocks } from './blocks.ts';
import { createDrift } from './drift.ts';
import { BASE_FEE, type BlockPlace, type Engine } from './engine.ts';
import type { ShownTransaction } from './evm-shapes.ts';
import type { Move } from './moves.ts';
import { createPool, readSigned, type Signed, type Waiting } from './pool.ts';
import { RpcError } from './rpc-error.ts';

const MAX_UINT256 = 2n ** 256n - 1n;

/** Part of a chain that executes clients' transactions. Its engine is loaded at the first need. */
export type Machine = {
  /** Accepts a raw transaction for the next block; returns its hash. Throws `RpcError` as a node refuses. */
  send(raw: Hex): Promise<Hex>;
  /** Executes what is due by now. */
  catchUp(): Promise<void>;
  /** Reads the state with all that is due by now, and the payments of the world. */
  read<T>(work: (engine: Engine, place: BlockPlace) => Promise<T>): Promise<T>;
  /** The count of a sender's transactions, with those that wait. */
  nextNonce(address: Hex): Promise<number>;
  get(txHash: string): ShownTransaction | undefined;
  waiting(txHash: string): Signed | undefined;
  inBlock(block: number): readonly ShownTransaction[];
  /** Changes balances as payments of the world do; `isUndone` takes them back. */
  move(moves: readonly Move[], isUndone?: boolean): void;
  /** Counts a permit that the service has used: the owner's next one has the next nonce. */
  countPermit(permit: { token: string; owner: string }): void;
  /** Adds tokens, or wei where `token` is null. */
  give(gift: { token: Hex | null; owner: Hex; amount: bigint }): Promise<void>;
  close(): Promise<void>;
};

/** Transactions of clients that one chain takes: its whole state stays in memory. */
const MOST_TRANSACTIONS = 5_000;

export function createMachine(deps: {
  chain: Chain;
  blocks: Blocks;
  nowMs: () => number;
  start: (chainId: number) => Promise<Engine>;
  /** Schedules work at a time in Unix ms. */
  at: (dueMs: number, work: () => void) => void;
  /** Called for each executed transaction that succeeded, in order. */
  executed: (transaction: ShownTransaction, engine: Engine) => Promise<void>;
}): Machine {
  const { chain, blocks, nowMs, start, at, executed } = deps;
  const pool = createPool();
  const drift = createDrift();
  const permits: { token: Hex; owner: Hex }[] = [];
  const tokens = new Set(
    TOKENS.filter(({ chainId }) => chainId === chain.chainId).map(({ address }) => lookupKey(address)),
  );
  const byHash = new Map<string, ShownTransaction>();
  const byBlock = new Map<number, ShownTransaction[]>();
  let engine: Promise<Engine> | null = null;
  let turn: Promise<unknown> = Promise.resolve();
  let accepted = 0;
  /** The newest block with a transaction: none is put into an earlier one. */
  let newest = 0;

  /** Runs work alone, after all work before it. */
  function alone<T>(work: (engine: Engine) => Promise<T>): Promise<T> {
    const result = turn.then(async () => {
      engine ??= begin().catch((error: unknown) => {
        engine = null;
        throw error;
      });
      return work(await engine);
    });
    turn = result.catch(() => {});
    return result;
  }

  async function begin(): Promise<Engine> {
    const started = await start(chain.chainId);
    try {
      for (const { address, code, storage } of placedContracts(chain.chainId)) {
        await started.setCode(address, code);
        for (const { slot, value } of storage) await started.setStorage(address, slot, value);
      }
    } catch (error) {
      await started.close();
      throw error;
    }
    return started;
  }

  const placeOf = (number: number): BlockPlace => ({ number, timestamp: blocks.at(number).timestamp });

  async function addTo(started: Engine, token: Hex, slot: Hex, change: (before: bigint) => bigint) {
    const before = hexToBigInt(await started.storage(token, slot));
    const changed = change(before);
    const after = changed > MAX_UINT256 ? MAX_UINT256 : changed;
    if (after !== before) await started.setStorage(token, slot, numberToHex(after, { size: 32 }));
    return after - before;
  }

  async function writeDrift(started: Engine): Promise<void> {
    for (const { token, owner, apply } of drift.take()) {
      const gained = await addTo(started, token, balanceSlot(owner), apply);
      await addTo(started, token, SUPPLY_SLOT, (supply) => supply + gained);
    }
    for (const { token, owner } of permits.splice(0)) {
      await addTo(started, token, nonceSlot(owner), (count) => count + 1n);
    }
  }

  async function executeDue(started: Engine): Promise<void> {
    const head = blocks.head(nowMs());
    await writeDrift(started);
    let progressed = true;
    while (progressed) {
      progressed = false;
      for (const one of pool.due(head)) progressed = (await executeOne(started, one)) || progressed;
    }
  }

  /** False when it must wait for an earlier nonce; a transaction that became impossible is dropped. */
  async function executeOne(started: Engine, one: Waiting): Promise<boolean> {
    const { signed, due } = one;
    const { balance, nonce } = await started.account(signed.from);
    if (signed.nonce > nonce) return false;
    const isPossible = signed.nonce === nonce && balance >= signed.gas * signed.maxFee + signed.value;
    try {
      if (isPossible) await executeIn(started, { signed, due });
    } finally {
      // Until now, readers find it among those that wait.
      pool.remove(one);
    }
    return true;
  }

  async function executeIn(started: Engine, { signed, due }: Waiting): Promise<void> {
    // One that waited for an earlier nonce comes after it.
    newest = Math.max(newest, due);
    const block = newest;
    const result = await started.execute(signed.raw, placeOf(block));
    const shown: ShownTransaction = {
      txHash: signed.hash,
      block,
      from: signed.from,
      to: signed.to,
      fields: fieldsOf(signed),
      gasPrice: priceOf(signed),
      ...result,
    };
    byHash.set(signed.hash, shown);
    byBlock.set(block, [...(byBlock.get(block) ?? []), shown]);
    if (shown.succeeded) await executed(shown, started);
  }

  return {
    async send(text) {
      const signed = await readSigned(text, chain.chainId);
      if (accepted >= MOST_TRANSACTIONS) {
        throw new RpcError(
          -32000,
          `the sandbox takes ${MOST_TRANSACTIONS} transactions per chain; start it anew`,
        );
      }
      await alone(async (started) => {
        await executeDue(started);
        // Also where its block was born just now.
        if (byHash.has(signed.hash)) throw new RpcError(-32000, 'already known');
        const next = blocks.head(nowMs()) + 1;
        const { due } = pool.add(signed, { ...(await started.account(signed.from)), next });
        accepted += 1;
        // A failure is that of the engine: the next call meets it too, and reports it.
        at(blocks.bornMs(due), () => void alone(executeDue).catch(() => {}));
      });
      return signed.hash;
    },
    async catchUp() {
      if (pool.size > 0) await alone(executeDue);
    },
    read: (work) =>
      alone(async (started) => {
        await executeDue(started);
        return work(started, placeOf(blocks.head(nowMs())));
      }),
    nextNonce: (address) =>
      alone(async (started) => {
        await executeDue(started);
        return pool.nextNonce(address, (await started.account(address)).nonce);
      }),
    get: (txHash) => byHash.get(lookupKey(txHash)),
    waiting: (txHash) => pool.get(lookupKey(txHash))?.signed,
    inBlock: (block) => byBlock.get(block) ?? [],
    move(moves, isUndone = false) {
      for (const { token, from, to, amount } of moves) {
        const key = lowerHex(token);
        if (!tokens.has(key)) continue;
        drift.add(key, lowerHex(from), isUndone ? amount : -amount);
        drift.add(key, lowerHex(to), isUndone ? -amount : amount);
      }
    },
    countPermit: ({ token, owner }) => void permits.push({ token: lowerHex(token), owner: lowerHex(owner) }),
    give: ({ token, owner, amount }) =>
      alone(async (started) => {
        if (token !== null) return drift.add(lowerHex(token), lowerHex(owner), amount);
        const { balance } = await started.account(owner);
        return started.setBalance(owner, balance + amount);
      }),
    async close() {
      if (engine === null) return;
      await turn;
      await (await engine.catch(() => null))?.close();
    },
  };
}

function priceOf({ maxFee, tip }: Signed): bigint {
  return BASE_FEE + tip < maxFee ? BASE_FEE + tip : maxFee;
}

/** Members of a transaction that only its signer decides, as nodes show them. */
export function fieldsOf(signed: Signed): Record<string, unknown> {
  const { type, nonce, gas, value, data, maxFee, tip, v, r, s, accessList } = signed;
  const fees =
    type === 'eip1559' ? { maxFeePerGas: numberToHex(maxFee), maxPriorityFeePerGas: numberToHex(tip) } : {};
  const parity = type === 'legacy' ? {} : { accessList, yParity: numberToHex(v) };
  return {
    type: type === 'legacy' ? '0x0' : type === 'eip2930' ? '0x1' : '0x2',
    nonce: numberToHex(nonce),
    gas: numberToHex(gas),
    value: numberToHex(value),
    input: data,
    gasPrice: numberToHex(priceOf(signed)),
    ...fees,
    ...parity,
    v: numberToHex(v),
    r,
    s,
  };
}

function lowerHex(text: string): Hex {
  return `0x${text.slice(2).toLowerCase()}`;
}
