import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import { withTimeout } from '../with-timeout.ts';
import { Access, type AccessRules } from './api/access.ts';
import { API_BASE, type ApiOptions, announcesBody, routeApi } from './api/api.ts';
import { routeConsole } from './console/console.ts';
import { sendProblem } from './problem.ts';

/** What readiness says of one thing. */
export type ReadinessCheck = { name: string; ok: boolean; detail: string };

/** What the server serves, and where; port 0 takes a free one. */
export type ServerOptions = {
  host: string;
  port: number;
  metrics: { expose(accept?: string): Promise<{ contentType: string; body: string }> };
  readiness: () => Promise<ReadinessCheck[]>;
  /** What a restart of the process would mend; it is alive as long as all of it is ok. */
  health: () => ReadinessCheck[];
  /** Null: there is no API. */
  api: ApiOptions | null;
};

const READINESS_TIMEOUT_MS = 2_000;

/** Scrapers, probes and a few readers of events; who comes beyond that is hung up on. */
const MOST_CONNECTIONS = 256;

/** With so many, none is kept for its next request: a probe must not be hung up on for the sake of those that do nothing. */
const MANY_CONNECTIONS = 192;

/** What a stranger can hold: no request is longer than its headers, and none of them comes slowly. */
const LIMITS = {
  // Scrapers keep connections open; closing must not wait for them.
  forceCloseConnections: true,
  bodyLimit: 16 * 1_024,
  // From the first byte to the last of a request.
  requestTimeout: 10_000,
  // Without a byte, also of an answer that nobody reads.
  connectionTimeout: 30_000,
  keepAliveTimeout: 20_000,
  // The ids of subjects are parts of paths.
  routerOptions: { maxParamLength: 500 },
  http: { headersTimeout: 5_000, connectionsCheckingInterval: 1_000, maxHeaderSize: 16 * 1_024 },
} as const;

/** The HTTP server: `/metrics`, `/healthz` and `/readyz`, none of which needs a token, the API, which does, and the console over it. */
export class Server {
  readonly #options: ServerOptions;
  readonly #app: FastifyInstance;
  readonly #access: Access | null;

  constructor(options: ServerOptions) {
    this.#options = options;
    const { api } = options;
    this.#access =
      api === null ? null : new Access(api, () => api.parts()?.operations.stores.sessions ?? null);
    this.#app = fastify(LIMITS);
    this.#app.server.maxConnections = MOST_CONNECTIONS;
    this.#keepRoom();
    this.#refuseBodies();
    this.#route();
  }

  /** Starts to listen. Rejects with a message that names the config's key when it cannot. */
  async start(): Promise<{ url: string }> {
    const { host, port } = this.#options;
    try {
      await this.#app.listen({ host, port });
    } catch (error) {
      throw listenError(error, { host, port });
    }
    const address = this.#app.server.address();
    const listening = address === null || typeof address === 'string' ? port : address.port;
    return { url: `http://${host.includes(':') ? `[${host}]` : host}:${listening}` };
  }

  /** Lets others in from now on, where there is an API. */
  changeAccess(rules: AccessRules): void {
    this.#access?.change(rules);
  }

  /** Ends requests under way and stops listening. */
  async close(): Promise<void> {
    await this.#app.close();
  }

  /**
   * Where there are many connections, closes those that rest after an answer, and the others behind their answers. One that
   * has not sent its first request yet is left alone: `closeIdleConnections` would end it too.
   */
  #keepRoom(): void {
    const { server } = this.#app;
    const resting = new Set<Socket>();
    let count = 0;
    this.#app.addHook('onSend', async (_request, reply) => {
      if (count >= MANY_CONNECTIONS) reply.header('connection', 'close');
    });
    server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
      resting.delete(socket);
      response.once('close', () => {
        if (!socket.destroyed) resting.add(socket);
      });
    });
    server.on('connection', (socket) => {
      count += 1;
      socket.once('close', () => {
        count -= 1;
        resting.delete(socket);
      });
      if (count < MANY_CONNECTIONS) return;
      for (const one of resting) one.destroy();
      resting.clear();
    });
  }

  /** Where no body is taken, the headers that announce one are answered, and the connection ends. */
  #refuseBodies(): void {
    this.#app.addHook('onRequest', async (request, reply) => {
      if (takesBody(request.routeOptions.config) || !announcesBody(request)) return;
      reply.header('connection', 'close');
      return sendProblem(reply, 413, 'found a request with a body, expected none');
    });
  }

  #route(): void {
    const { metrics, readiness, health, api } = this.#options;
    if (api !== null && this.#access !== null) {
      routeApi(this.#app, this.#access, api);
      if (api.console) routeConsole(this.#app, this.#access);
    }
    this.#app.get('/metrics', async ({ headers }, reply) => {
      const { contentType, body } = await metrics.expose(headers.accept);
      return reply.type(contentType).header('vary', 'accept').send(body);
    });
    this.#app.get('/healthz', async (_request, reply) => {
      const stuck = health().filter((check) => !check.ok);
      if (stuck.length === 0) return { status: 'ok' };
      return reply.code(503).header('cache-control', 'no-store').send({ status: 'stuck', checks: stuck });
    });
    this.#app.get('/readyz', async (_request, reply) => {
      const checks = await askReadiness(readiness);
      const notReady = checks.filter((check) => !check.ok).map((check) => check.name);
      const ready = notReady.length === 0;
      return reply
        .code(ready ? 200 : 503)
        .header('cache-control', 'no-store')
        .send({ status: ready ? 'ready' : 'not ready', notReady, checks });
    });
    const known =
      api === null
        ? '/metrics, /healthz or /readyz'
        : `/metrics, /healthz, /readyz or what ${API_BASE}/openapi.json describes`;
    this.#app.setNotFoundHandler((request, reply) =>
      sendProblem(reply, 404, `found ${request.method} ${pathOf(request.url)}, expected GET ${known}`),
    );
  }
}

/** Asks for the checks; when they fail or take longer than 2 s, that is a check that is not ok. */
async function askReadiness(readiness: ServerOptions['readiness']): Promise<ReadinessCheck[]> {
  const unusable = (detail: string): ReadinessCheck[] => [{ name: 'readiness', ok: false, detail }];
  try {
    const checks = await withTimeout(readiness(), READINESS_TIMEOUT_MS);
    return checks ?? unusable(`the checks gave no answer within ${READINESS_TIMEOUT_MS / 1_000} s`);
  } catch (error) {
    // Not its message: whoever asks here has no token, and a message may quote anything.
    return unusable(`the checks failed with ${error instanceof Error ? error.name : 'no error'}`);
  }
}

/** Whether a route was declared with a body. */
function takesBody(config: object): boolean {
  return 'takesBody' in config && config.takesBody === true;
}

/** The path of a request without its query, which may hold a secret. */
function pathOf(url: string): string {
  return url.split('?')[0] ?? '';
}

/** Why a server could not listen, in the words of the config. `cause` is the system's error. */
function listenError(cause: unknown, at: { host: string; port: number }): Error {
  return new Error(reason(codeOf(cause), at), { cause });
}

function reason(code: string, { host, port }: { host: string; port: number }): string {
  switch (code) {
    case 'EADDRINUSE':
      return `server.port ${port} on ${host} is in use; expected a free port: stop what listens there, or configure another (0 takes a free one)`;
    case 'EACCES':
      return `server.port ${port} on ${host} needs more rights than this process has; expected a port from 1024 on`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `server.host ${host} is no address of this machine (${code}); expected one, like 127.0.0.1 or 0.0.0.0`;
    default:
      return `server.host ${host}, server.port ${port}: cannot listen there (${code})`;
  }
}

function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error) return String(error.code);
  return error instanceof Error ? error.message : String(error);
}
