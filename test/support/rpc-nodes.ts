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

/** The log of a move of a token. */
export function transferLog(moved: { token?: string; from: string; to: string; amount: string }) {
  const { token = TOKEN, from, to, amount } = moved;
  const topics = [TRANSFER, word(from.slice(2)), word(to.slice(2))];
  return { address: token, topics, data: word(BigInt(amount).toString(16)) };
}

/** A chain that two nodes serve, each over HTTP on a host of its own. All requested transactions are in block 100. */
export class RpcNodes {
  isDown = false;
  finalHead = 110;
  /** The block of a transaction that is not in block 100; null: in none. */
  readonly places = new Map<string, number | null>();
  readonly unreadable = new Set<string>();
  /** The logs of transactions; without an entry a transaction paid the payee 1,000. */
  readonly logs = new Map<string, readonly { address: string; topics: readonly string[]; data: string }[]>();
  readonly calls: EndpointCall[] = [];
  readonly #servers: RpcServer[] = [];
  readonly #endpoints: ChainEndpoint[] = [];
  readonly #readers: ChainReader[] = [];
  readonly #chainId: string;

  constructor(chainId = CHAIN) {
    this.#chainId = chainId;
  }

  /** The nodes as a config names them. */
  get rpc(): object[] {
    return this.#endpoints.map(({ name, url }) => ({ name, url: url.reveal(), requestsPerSecond: 1_000 }));
  }

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
      chainId: this.#chainId,
      finality: 'finalized',
      fulfilments: null,
      transmitter: null,
      endpoints: this.#endpoints,
    } as const;
    const reader = createChainReaders([chain], { onCall: (call) => this.calls.push(call) }).get(
      this.#chainId,
    );
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
        return { result: hex(Number(this.#chainId)) };
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
    const logged = this.logs.get(txHash) ?? [transferLog({ from: SOLVER, to: PAYEE, amount: '1000' })];
    const logs = logged.map((log, index) => ({ ...at, ...log, logIndex: hex(index), removed: false }));
    return { ...at, blockNumber: hex(number), status: '0x1', logs };
  }
}

const block = (number: number) => ({
  number: hex(number),
  hash: hashOfBlock(number),
  timestamp: hex(1_795_000_000 + number * BLOCK_SECONDS),
});
