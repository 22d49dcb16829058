import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { z } from 'zod';

/** A received request: a method and its parameters. */
export type RpcRequest = { method: string; params: unknown[]; headers: IncomingHttpHeaders; path: string };

/** An answer: a result, an error, a whole HTTP answer, one whose connection is cut within it, or nothing at all. */
export type RpcAnswer =
  | { result: unknown }
  | { error: { code: number; message: string } }
  | { status: number; body: string; headers?: Record<string, string> }
  | 'cut'
  | 'nothing';

const REQUEST = z.object({ id: z.int(), method: z.string(), params: z.array(z.unknown()) });

/** A JSON-RPC server over HTTP that answers as the test decides and records its requests. */
export type RpcServer = { port: number; seen: RpcRequest[]; close(): Promise<void> };

export async function rpcServer(answer: (request: RpcRequest) => RpcAnswer): Promise<RpcServer> {
  const seen: RpcRequest[] = [];
  const server = createServer(async (request, response) => {
    const { id, method, params } = REQUEST.parse(JSON.parse(await text(request)));
    const came = { method, params, headers: request.headers, path: request.url ?? '' };
    seen.push(came);
    const reply = answer(came);
    if (reply === 'nothing') return;
    if (reply === 'cut') {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
      response.write('{"jsonrpc":"2.0"', () => response.destroy());
      return;
    }
    if ('status' in reply) {
      response.writeHead(reply.status, { 'content-type': 'text/plain', ...reply.headers });
      response.end(reply.body);
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...reply }));
  });
  server.listen(0);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return {
    port: address.port,
    seen,
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
