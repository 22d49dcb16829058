import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import express from 'express';
import fastify from 'fastify';
import {
  type Consumer,
  fastifyConsumer,
  fetchHandler,
  type NodeRequest,
  nodeHandler,
} from '../../consumer/src/index.ts';

/** A server on loopback that passes its webhooks to a consumer. */
export type ConsumerServer = { url: string; close: () => Promise<void> };

/** Starts a server for a consumer, in one of the ways that the package offers. */
export type Serve = <C>(consumer: Consumer<C>) => Promise<ConsumerServer>;

/** Listens with node:http. */
export async function listen(listener: RequestListener): Promise<ConsumerServer> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return {
    url: `http://127.0.0.1:${address.port}/hooks`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Makes an Express app; `prepare` runs before the route of the webhook. */
export function expressServer(prepare: (app: express.Express) => void): Serve {
  return (consumer) => {
    const app = express();
    prepare(app);
    app.post('/hooks', nodeHandler(consumer));
    return listen(app);
  };
}

async function serveFastify<C>(consumer: Consumer<C>): Promise<ConsumerServer> {
  const app = fastify();
  await app.register(fastifyConsumer, { consumer, path: '/hooks' });
  app.post('/echo', async (request) => request.body);
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  return { url: `${origin}/hooks`, close: () => app.close() };
}

/** Serves as servers of the Fetch API do: a `Request` in, a `Response` out. */
function serveFetch<C>(consumer: Consumer<C>): Promise<ConsumerServer> {
  const handle = fetchHandler(consumer);
  return listen(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const names = Object.entries(request.headers).map(([name, value]): [string, string] => [
      name,
      String(value),
    ]);
    const { method = 'GET' } = request;
    const body = method === 'GET' ? null : new Uint8Array(Buffer.concat(chunks));
    const answer = await handle(new Request('http://consumer/hooks', { method, headers: names, body }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
}

/** The plain server of node:http. */
export const serveNode: Serve = (consumer) => listen(nodeHandler(consumer));

/** Every way to receive a webhook that leaves its bytes available for verification. */
export const SERVERS: readonly [name: string, serve: Serve][] = [
  ['node:http', serveNode],
  ['Express', expressServer(() => undefined)],
  ['Express behind express.raw', expressServer((app) => app.use(express.raw({ type: () => true })))],
  [
    'Express behind an express.json that retains the bytes',
    expressServer((app) =>
      app.use(
        express.json({
          verify: (request: NodeRequest, _response, bytes) => {
            request.rawBody = bytes;
          },
        }),
      ),
    ),
  ],
  ['Fastify', serveFastify],
  ['the Fetch API', serveFetch],
];
