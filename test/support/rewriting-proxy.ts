import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { request } from 'undici';

/** A request on its way through; `path` has the query. */
type Passing = { method: string; path: string; headers: Record<string, string>; body: string };

type Returning = { status: number; headers: Record<string, string>; body: string };

/** Changes requests and answers on their way. */
export type Rewriting = {
  request?: (passing: Passing) => Passing;
  answer?: (returning: Returning, passing: Passing) => Returning | Promise<Returning>;
};

/** An HTTP proxy that rewrites its traffic. The service sees the proxy's own address as its host. */
export class RewritingProxy {
  readonly #server: Server;
  readonly #origin: string;
  rewriting: Rewriting = {};

  constructor(origin: string) {
    this.#origin = origin;
    this.#server = createServer((incoming, response) => {
      this.#pass(incoming, response).catch((error: unknown) => {
        response.writeHead(599, { 'content-type': 'text/plain' }).end(`the proxy failed: ${String(error)}`);
      });
    });
  }

  async #pass(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const came: Passing = {
      method: incoming.method ?? 'GET',
      path: incoming.url ?? '/',
      headers: passedOn(incoming.headers),
      body: Buffer.concat(chunks).toString(),
    };
    const rewritten = this.rewriting.request?.(came) ?? came;
    const answered = await request(this.#origin + rewritten.path, {
      method: rewritten.method,
      headers: rewritten.headers,
      ...(rewritten.body === '' ? {} : { body: rewritten.body }),
    });
    const returning = {
      status: answered.statusCode,
      headers: passedOn(answered.headers),
      body: await answered.body.text(),
    };
    // `answer` gets the original request, so that a rewriting can recognise it.
    const { status, headers, body } = (await this.rewriting.answer?.(returning, came)) ?? returning;
    // The service's own header, if a rewriting leaves it.
    response.sendDate = false;
    response.writeHead(status, headers).end(body);
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  /** Its address. Throws before `start`. */
  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy is not started');
    return `http://127.0.0.1:${address.port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

function passedOn(headers: IncomingMessage['headers']): Record<string, string> {
  const own = new Set(['connection', 'keep-alive', 'transfer-encoding', 'content-length']);
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || own.has(name) ? [] : [[name, String(value)]],
    ),
  );
}
