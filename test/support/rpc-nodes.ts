import { type ChainReader, createChainReaders, type EndpointCall } from '../../src/chains/chain-readers.ts';
import type { ChainEndpoint } from '../../src/config/config.ts';
import { Secret } from '../../src/secret.ts';
import { CHAIN, PAYEE, SOLVER, TOKEN } from './checks-stage.ts';
import { type RpcAnswer, type RpcServer, rpcServer } from './json-rpc-server.ts';

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const BLOCK_SECONDS = 12;

const hex = (value: number): string => `0x${value.toString(16)}`;
const word = (text: string): string => `0x${text.padStart(64, '0')}`;
export const hashOfBlock = (number: number): string => `0x${number.toString(16).padStart(64, 'b')}`;

/** A chain that two nodes serve, each over HTTP on a host of its own. All requested transactions are in block 100. */
export class RpcNodes {
  isDown = false;
  finalHead = 110;
  /** The block of a transaction that is not in block 100; null: in none. */
  readonly places = new Map<string, number | null>();
  readonly unreadable = new Set<string>();
  readonly calls: EndpointCall[] = [];
  readonly #servers: RpcServer[] = [];
  readonly #endpoints: ChainEndpoint[] = [];
  readonly #readers: ChainReader[] = [];

  async start({ requestsPerSecond = 1_000 } = {}): Promise<void> {
    for (const [name, host] of [
      ['own', '127.0.0.1'],
      ['other', 'localhost'],
    ] as const) {
      const server = await rpcServer(({ method, params }) => this.#answer(method, params));
      this.#servers.push(server);
      this.#endpoints.push({
        name,
        url: new Secret(`http://${host}:${server.port}`),
        headers: {},
        requestsPerSecond,
        timeoutMs: 60_000,
        proxy: null,
      });
    }
  }

  reader(): ChainReader {
    const chain = {
      chainId: CHAIN,
      finality: 'finalized',
      fulfilments: null,
      endpoints: this.#endpoints,
    } as const;
    const reader = createChainReaders([chain], { onCall: (call) => this.calls.push(call) }).get(CHAIN);
    if (reader === undefined) throw new Error('expected a reader');
    this.#readers.push(reader);
    return reader;
  }

  /** Number of requests to the first node for the receipt of a transaction, or of any. */
  receipts(txHash?: string): number {
    return this.seen.filter(
      ({ method, params: [tx] }) =>
        method === 'eth_getTransactionReceipt' && (txHash === undefined || tx === txHash),
    ).length;
  }

  get seen(): RpcServer['seen'] {
    return this.#servers[0]?.seen ?? [];
  }

  async close(): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.close()));
    await Promise.all(this.#servers.map((server) => server.close()));
  }

  #answer(method: string, [first]: unknown[]): RpcAnswer {
    if (this.isDown) return { status: 503, body: 'down' };
    switch (method) {
      case 'eth_chainId':
        return { result: hex(Number(CHAIN)) };
      case 'eth_syncing':
        return { result: false };
      case 'eth_getBlockByNumber':
        return { result: block(first === 'finalized' ? this.finalHead : Number(first)) };
      case 'eth_getBlockByHash':
        return { result: block(Number.parseInt(String(first).replace(/^0xb*/, ''), 16)) };
      case 'eth_getTransactionReceipt':
        return { result: this.#receipt(String(first)) };
      default:
        return { error: { code: -32601, message: 'no such method' } };
    }
  }

  #receipt(txHash: string): object | null {
    if (this.unreadable.has(txHash)) return { transactionHash: txHash };
    const number = this.places.get(txHash) === undefined ? 100 : (this.places.get(txHash) ?? null);
    if (number === null) return null;
    const at = { transactionHash: txHash, blockHash: hashOfBlock(number) };
    const log = {
      ...at,
      address: TOKEN,
      topics: [TRANSFER, word(SOLVER.slice(2)), word(PAYEE.slice(2))],
      data: word((1_000).toString(16)),
      logIndex: '0x0',
      removed: false,
    };
    return { ...at, blockNumber: hex(number), status: '0x1', logs: [log] };
  }
}

const block = (number: number) => ({
  number: hex(number),
  hash: hashOfBlock(number),
  timestamp: hex(1_795_000_000 + number * BLOCK_SECONDS),
});
