import type { AbiEvent } from 'viem';
import type { ChainEndpoint, ChainFinality, CheckedChain } from '../config/config.ts';
import type { JsonObject } from '../domain/json.ts';
import { type Burn, burnOf, localIntent } from '../domain/proof/burn.ts';
import {
  burnMessagesOf,
  type EvmReceipt,
  evmMoves,
  fulfilledBy,
  readFulfilmentEvent,
  receiptFault,
} from '../domain/proof/moves.ts';
import type { Block, TxState } from '../domain/proof/proof.ts';
import { chainFamily, type Stated } from '../domain/proof/statement.ts';
import {
  type ChainSource,
  type EndpointCall,
  EndpointError,
  Refreshed,
  RpcEndpoint,
  shownBlocks,
  type TxFacts,
} from './endpoint.ts';
import { SolanaSource } from './solana-endpoint.ts';

export type { EndpointCall } from './endpoint.ts';

/** Reads transactions at every endpoint of a chain. */
export type ChainReader = {
  chainId: string;
  /** Names of its endpoints, in the order of the config. */
  endpoints: readonly string[];
  /**
   * One observation per endpoint, each requested by itself, never through a failover. Never throws for an endpoint's
   * failure; rejects only with the reason of `signal`. With `token`, only moves of this token are read.
   */
  read(txHash: string, options?: { token?: string | null; signal?: AbortSignal }): Promise<TxState[]>;
  /** Newest final block of one endpoint; null when it has not answered. */
  finalHead(endpoint: string): Promise<Block | null>;
  close(): Promise<void>;
};

/** Time for which the reported chain of an endpoint is trusted. */
const IDENTITY_MS = 60_000;

/** Time for which a final head is reused: it is at most this much too old. */
const HEAD_MS = 2_000;

const SYNCED_MS = 60_000;

/** Makes a reader for each chain with endpoints, by chain id. Sends no request before it is used. */
export function createChainReaders(
  chains: readonly CheckedChain[],
  { onCall }: { onCall(call: EndpointCall): void },
): Map<string, ChainReader> {
  return new Map(chains.map((chain) => [chain.chainId, createReader(chain, onCall)]));
}

function createReader(chain: CheckedChain, onCall: (call: EndpointCall) => void): ChainReader {
  const { chainId } = chain;
  const endpoints = chain.endpoints.map((endpoint) => endpointReader(endpoint, { chain, onCall }));
  return {
    chainId,
    endpoints: chain.endpoints.map(({ name }) => name),
    read: (txHash, { token = null, signal } = {}) =>
      Promise.all(
        endpoints.map(({ read }) => read(txHash, { token, ...(signal === undefined ? {} : { signal }) })),
      ),
    finalHead: async (endpoint) =>
      (await endpoints.find(({ name }) => name === endpoint)?.finalHead()) ?? null,
    close: async () => {
      await Promise.all(endpoints.map(({ close }) => close()));
    },
  };
}

type EndpointReader = {
  name: string;
  finalHead(): Promise<Block | null>;
  read(txHash: string, options: { token: string | null; signal?: AbortSignal }): Promise<TxState>;
  close(): Promise<void>;
};

function endpointReader(
  config: ChainEndpoint,
  { chain, onCall }: { chain: CheckedChain; onCall: (call: EndpointCall) => void },
): EndpointReader {
  const { chainId } = chain;
  const endpoint = new RpcEndpoint(config, { chainId, onCall });
  const source = sourceOf(endpoint, chain);
  const who = { endpoint: config.name, host: hostName(config, chain.endpoints) };
  // A shared request continues when its first caller gives up.
  const identity = new Refreshed({ read: () => identify(source, { endpoint, chainId }), forMs: IDENTITY_MS });
  const head = new Refreshed({ read: () => source.finalHead(), forMs: HEAD_MS });
  const synced = new Refreshed({ read: () => source.isSynced(), forMs: SYNCED_MS });
  const readOnce = async (
    txHash: string,
    options: { token: string | null; signal?: AbortSignal },
  ): Promise<TxState> => {
    await identity.get();
    const final: Block = await head.get();
    const found = await source.find(txHash, { head: final, ...options });
    if (found !== null) return { ...who, outcome: 'found', head: final, ...found };
    return { ...who, outcome: 'absent', isSynced: await synced.get(), head: final };
  };
  return {
    name: config.name,
    finalHead: async () => {
      try {
        await identity.get();
        return await head.get();
      } catch (error) {
        if (!(error instanceof EndpointError)) throw error;
        return null;
      }
    },
    read: async (txHash, options) => {
      try {
        return await readOnce(txHash, options);
      } catch (error) {
        options.signal?.throwIfAborted();
        if (!(error instanceof EndpointError)) throw error;
        return { ...who, outcome: 'failed', reason: error.message };
      }
    },
    close: () => endpoint.close(),
  };
}

/** Throws an EndpointError when the endpoint is of another chain. */
async function identify(
  source: ChainSource,
  { endpoint, chainId }: { endpoint: RpcEndpoint; chainId: string },
): Promise<void> {
  const reported = await source.identity();
  if (reported === chainId) return;
  throw endpoint.error(
    'wrong-chain',
    `found an endpoint of chain ${reported}, expected one of chain ${chainId}`,
  );
}

function sourceOf(endpoint: RpcEndpoint, chain: CheckedChain): ChainSource {
  const { chainId, finality, fulfilments, transmitter } = chain;
  if (chainFamily(chainId) === 'solana') return new SolanaSource(endpoint);
  return new EvmSource(endpoint, { finality, fulfilments: pinned(fulfilments), transmitter });
}

function pinned(fulfilments: CheckedChain['fulfilments']): PinnedFulfilments | null {
  if (fulfilments === null) return null;
  const abi = readFulfilmentEvent(fulfilments);
  // The config is refused when the event cannot be parsed.
  if ('fault' in abi) throw new Error(`fulfilments.event: expected ${abi.fault}`);
  return { address: fulfilments.address.toLowerCase(), hash: fulfilments.hash, abi };
}

/** Represents a secret host: the name of the first endpoint that has it. */
function hostName(config: ChainEndpoint, all: readonly ChainEndpoint[]): string {
  const host = hostOf(config);
  return all.find((other) => hostOf(other) === host)?.name ?? config.name;
}

/** Host of an endpoint, secret like its URL: for comparison only. */
export function hostOf({ url }: ChainEndpoint): string {
  return new URL(url.reveal()).hostname.toLowerCase().replace(/\.$/, '');
}

/**
 * Reads the burn of a local intent at the endpoints of its source chain; null where the payment is not the delivery of one.
 * `ageMs`: time since the payment was stated. Rejects only with the reason of `signal`.
 */
export async function readBurn(
  statement: Stated,
  facts: { promised: { local?: true } | null; record: JsonObject | null },
  {
    readers,
    ageMs,
    signal,
  }: { readers: ReadonlyMap<string, ChainReader>; ageMs: number; signal?: AbortSignal },
): Promise<Burn | null> {
  const local = localIntent(statement, facts);
  if (local === null || statement.intentHash === null) return null;
  const { fulfilledBy } = local;
  const reader = fulfilledBy === null ? null : readers.get(fulfilledBy.chainId);
  if (reader === undefined) return { state: 'none' };
  const options = signal === undefined ? {} : { signal };
  const txStates =
    fulfilledBy === null || reader === null ? [] : await reader.read(fulfilledBy.txHash, options);
  return burnOf(txStates, { intentHash: statement.intentHash, fulfilledBy, ageMs });
}

/** Pinned contract event of a chain's fulfilments. */
export type PinnedFulfilments = { address: string; abi: AbiEvent; hash: string };

/** Settings of a chain. `transmitter`: the contract of burn messages, in lower case; null for none. */
type EvmSettings = {
  finality: ChainFinality;
  fulfilments: PinnedFulfilments | null;
  transmitter: string | null;
};

/** Reads transactions of an EVM chain at one endpoint. */
class EvmSource implements ChainSource {
  readonly #endpoint: RpcEndpoint;
  readonly #finality: ChainFinality;
  readonly #fulfilments: PinnedFulfilments | null;
  readonly #transmitter: string | null;
  readonly #blocks = shownBlocks();

  constructor(endpoint: RpcEndpoint, { finality, fulfilments, transmitter }: EvmSettings) {
    this.#endpoint = endpoint;
    this.#transmitter = transmitter;
    this.#finality = finality;
    this.#fulfilments = fulfilments;
  }

  async identity(): Promise<string> {
    const id = await this.#endpoint.call({ method: 'eth_chainId', params: [], result: 'quantity' });
    return id.toString();
  }

  async isSynced(): Promise<boolean> {
    try {
      return await this.#endpoint.call({ method: 'eth_syncing', params: [], result: 'synced' });
    } catch (error) {
      // Many providers lack this method. The time of their final head shows whether they are behind.
      if (error instanceof EndpointError && error.rpcCode !== null && error.outcome === 'error') return true;
      throw error;
    }
  }

  async finalHead(): Promise<Block> {
    const finality = this.#finality;
    if (typeof finality === 'string') return this.#taggedHead(finality);
    const latest = await this.#endpoint.call({ method: 'eth_blockNumber', params: [], result: 'quantity' });
    const confirmed = latest - BigInt(finality.confirmations);
    const number = confirmed < 0n ? 0n : confirmed;
    const head = await this.#blockAt(`0x${number.toString(16)}`);
    if (head === null) {
      throw this.#endpoint.error(
        'error',
        `found no block ${number}, ${finality.confirmations} behind its newest`,
      );
    }
    return head;
  }

  async find(
    txHash: string,
    { head, token, signal }: { head: Block; token: string | null; signal?: AbortSignal },
  ): Promise<TxFacts | null> {
    const receipt = await this.#endpoint.call(
      { method: 'eth_getTransactionReceipt', params: [txHash], result: 'evmReceipt' },
      signal,
    );
    if (receipt === null) return null;
    const fault = receiptFault(receipt, txHash);
    if (fault !== null) throw this.#endpoint.error('error', fault);
    const isFinal = receipt.blockNumber <= BigInt(head.number);
    const block = await this.#blockOf(receipt, { isFinal, signal });
    const { moves, isPartial } = evmMoves(receipt.logs, token);
    const pinned = this.#fulfilments;
    const burns = this.#transmitter === null ? null : burnMessagesOf(receipt.logs, this.#transmitter);
    return {
      block,
      isFinal,
      succeeded: receipt.status === '0x1',
      moves,
      fulfilled: pinned === null ? null : fulfilledBy(receipt.logs, pinned),
      ...(burns == null ? {} : { burns }),
      ...(isPartial ? { isPartial } : {}),
    };
  }

  /** The final block with a receipt's block number, or the block with its hash if that is not final. */
  async #blockOf(
    { blockNumber, blockHash }: EvmReceipt,
    { isFinal, signal }: { isFinal: boolean; signal: AbortSignal | undefined },
  ): Promise<Block> {
    const key = isFinal ? `final ${blockNumber}` : blockHash;
    const cached = this.#blocks.get(key);
    // A block with too few confirmations may have been reorganised since it was stored.
    const block =
      cached?.hash === blockHash
        ? cached
        : await (isFinal
            ? this.#blockAt(`0x${blockNumber.toString(16)}`, signal)
            : this.#block({ method: 'eth_getBlockByHash', first: blockHash }, signal));
    if (block === null) throw this.#endpoint.error('error', 'it does not know the block of the receipt');
    // The chain was reorganised meanwhile, or nodes behind one name disagree.
    if (block.hash !== blockHash || block.number !== blockNumber.toString()) {
      throw this.#endpoint.error('error', `its block ${blockNumber} is another one than that of the receipt`);
    }
    this.#blocks.set(key, block);
    return block;
  }

  async #taggedHead(tag: 'finalized' | 'safe'): Promise<Block> {
    const expected = `expected one that does, or another finality of the chain: finalized, safe or { confirmations: n }`;
    try {
      const head = await this.#blockAt(tag);
      if (head !== null) return head;
    } catch (error) {
      if (!(error instanceof EndpointError) || error.rpcCode === null || error.outcome !== 'error')
        throw error;
      throw this.#endpoint.error(
        'error',
        `found an endpoint that knows no "${tag}" block (${error.message}), ${expected}`,
      );
    }
    throw this.#endpoint.error('error', `found an endpoint that knows no "${tag}" block, ${expected}`);
  }

  #blockAt(numberOrTag: string, signal?: AbortSignal): Promise<Block | null> {
    return this.#block({ method: 'eth_getBlockByNumber', first: numberOrTag }, signal);
  }

  async #block(
    { method, first }: { method: string; first: string },
    signal?: AbortSignal,
  ): Promise<Block | null> {
    const params = [first, false];
    const block = await this.#endpoint.call({ method, params, result: 'evmBlock' }, signal);
    if (block === null) return null;
    const timestamp = Number(block.timestamp);
    if (!Number.isSafeInteger(timestamp)) throw this.#endpoint.error('error', 'found a block of no time');
    return { number: block.number.toString(), hash: block.hash, timestamp };
  }
}
