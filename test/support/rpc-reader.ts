import { type ChainReader, createChainReaders, type EndpointCall } from '../../src/chains/chain-readers.ts';
import type { ChainEndpoint, CheckedChain } from '../../src/config/config.ts';
import { TX_STATE, type TxState } from '../../src/domain/proof/proof.ts';
import { Secret } from '../../src/secret.ts';
import { type RpcAnswer, type RpcRequest, type RpcServer, rpcServer } from './json-rpc-server.ts';

/** The answers of a node, by method; any other method is refused as unknown. */
export type RpcAnswers = Record<string, (request: RpcRequest) => RpcAnswer>;

/** The unusual settings of the chain and its only endpoint. */
export type ReaderOptions = Partial<Omit<CheckedChain, 'endpoints'>> & { endpoint?: Partial<ChainEndpoint> };

/** A reader of one node, over HTTP. `read` requests the transaction of the test. */
export type RpcReader = {
  reader: ChainReader;
  server: RpcServer;
  calls: EndpointCall[];
  read(): Promise<TxState>;
  close(): Promise<void>;
};

/** Starts a node with these answers, under a path, and a reader of it, by default of chain 8453. */
export async function rpcReader(
  answers: RpcAnswers,
  { path, txHash, token }: { path: string; txHash: string; token: string },
  { endpoint = {}, ...chain }: ReaderOptions = {},
): Promise<RpcReader> {
  const server = await rpcServer(
    (request) => answers[request.method]?.(request) ?? { error: { code: -32601, message: 'no such method' } },
  );
  const calls: EndpointCall[] = [];
  const own: ChainEndpoint = {
    name: 'own',
    url: new Secret(`http://localhost:${server.port}${path}`),
    headers: {},
    requestsPerSecond: 1_000,
    timeoutMs: 60_000,
    proxy: null,
    ...endpoint,
  };
  const checked: CheckedChain = {
    chainId: '8453',
    finality: 'finalized',
    fulfilments: null,
    transmitter: null,
    ...chain,
    endpoints: [own],
  };
  const reader = createChainReaders([checked], { onCall: (call) => calls.push(call) }).get(checked.chainId);
  if (reader === undefined) throw new Error('expected a reader');
  return {
    reader,
    server,
    calls,
    read: async () => TX_STATE.parse((await reader.read(txHash, { token }))[0]),
    close: async () => {
      await reader.close();
      await server.close();
    },
  };
}
