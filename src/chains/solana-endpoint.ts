import { solanaMoves, transactionFault } from '../domain/proof/moves.ts';
import type { Block } from '../domain/proof/proof.ts';
import { SOLANA_GENESIS } from '../domain/proof/statement.ts';
import { type ChainSource, type RpcEndpoint, shownBlocks, type TxFacts } from './endpoint.ts';

const FINALIZED = { commitment: 'finalized' } as const;

/** Reads finalized transactions of Solana at one endpoint: others count as absent. */
export class SolanaSource implements ChainSource {
  readonly #endpoint: RpcEndpoint;
  readonly #blocks = shownBlocks();

  constructor(endpoint: RpcEndpoint) {
    this.#endpoint = endpoint;
  }

  async identity(): Promise<string> {
    const genesis = await this.#endpoint.call({ method: 'getGenesisHash', params: [], result: 'genesis' });
    return [...SOLANA_GENESIS].find(([, hash]) => hash === genesis)?.[0] ?? `of genesis ${genesis}`;
  }

  /** Always true: the older final head shows that a node is behind. */
  async isSynced(): Promise<boolean> {
    return true;
  }

  async finalHead(): Promise<Block> {
    const slot = await this.#endpoint.call({ method: 'getSlot', params: [FINALIZED], result: 'slot' });
    const timestamp = await this.#endpoint.call({
      method: 'getBlockTime',
      params: [slot],
      result: 'blockTime',
    });
    if (timestamp === null) throw this.#endpoint.error('error', `found no time of its final slot ${slot}`);
    return { number: String(slot), hash: '', timestamp };
  }

  async find(
    txHash: string,
    { token, signal }: { head: Block; token: string | null; signal?: AbortSignal },
  ): Promise<TxFacts | null> {
    const options = { ...FINALIZED, encoding: 'json', maxSupportedTransactionVersion: 0 };
    const found = await this.#endpoint.call(
      { method: 'getTransaction', params: [txHash, options], result: 'solanaTransaction' },
      signal,
    );
    if (found === null) return null;
    const fault = transactionFault(found, txHash);
    if (fault !== null) throw this.#endpoint.error('error', fault);
    return {
      block: await this.#block(found.slot, signal),
      isFinal: true,
      succeeded: found.meta?.err === null,
      moves: solanaMoves(found, token),
      fulfilled: null,
    };
  }

  async #block(slot: number, signal: AbortSignal | undefined): Promise<Block> {
    const cached = this.#blocks.get(String(slot));
    if (cached !== undefined) return cached;
    const options = {
      ...FINALIZED,
      encoding: 'json',
      transactionDetails: 'none',
      rewards: false,
      maxSupportedTransactionVersion: 0,
    };
    const read = await this.#endpoint.call(
      { method: 'getBlock', params: [slot, options], result: 'solanaBlock' },
      signal,
    );
    if (read === null || read.blockTime === null) {
      throw this.#endpoint.error('error', `it does not know the block of the transaction, slot ${slot}`);
    }
    const block = { number: String(slot), hash: read.blockhash, timestamp: read.blockTime };
    this.#blocks.set(block.number, block);
    return block;
  }
}
