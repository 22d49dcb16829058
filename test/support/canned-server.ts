import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';

/** A received request. */
export type SeenRequest = { method: string; url: string; headers: IncomingHttpHeaders; body: string };

/** An answer: JSON, or text as it is. */
export type CannedAnswer = { status: number; body: unknown };

/** A real HTTP server that answers as the test decides and records its requests. */
export type CannedServer = { url: string; seen: SeenRequest[]; close(): Promise<void> };

/** Starts a server on a free loopback port; `answer` is called for every request. */
export async function cannedServer(answer: (request: SeenRequest) => CannedAnswer): Promise<CannedServer> {
  const seen: SeenRequest[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = '', url = '', headers } = request;
    const came = { method, url, headers, body: Buffer.concat(chunks).toString() };
    seen.push(came);
    const { status, body } = answer(came);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return {
    url: `http://127.0.0.1:${address.port}`,
    seen,
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
