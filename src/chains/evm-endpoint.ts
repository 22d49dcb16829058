import type { AbiEvent } from 'viem';
import type { ChainFinality } from '../config/config.ts';
import {
  burnMessagesOf,
  type EvmReceipt,
  evmMoves,
  fulfilledBy,
  receiptFault,
} from '../domain/proof/moves.ts';
import type { Block } from '../domain/proof/proof.ts';
import { type ChainSource, EndpointError, type RpcEndpoint, shownBlocks, type TxFacts } from './endpoint.ts';

/** Pinned contract event of a chain's fulfilments. */
export type PinnedFulfilments = { address: string; abi: AbiEvent; hash: string };

/** Settings of a chain. `transmitter`: the contract of burn messages, in lower case; null for none. */
type EvmSettings = {
  finality: ChainFinality;
  fulfilments: PinnedFulfilments | null;
  transmitter: string | null;
};

/** Reads transactions of an EVM chain at one endpoint. */
export class EvmSource implements ChainSource {
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
