import { lookup } from 'node:dns/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import { LIMITS as INPUT_LIMITS } from '../domain/limits.ts';
import { codeOf, messageOf } from '../errors.ts';
import { withTimeout } from '../with-timeout.ts';
import { Access, type AccessRules } from './api/access.ts';
import { type ApiOptions, announcesBody, routeApi } from './api/api.ts';
import { API_BASE } from './api/route.ts';
import { routeConsole } from './console/console.ts';
import { refuseRequest, sendProblem } from './problem.ts';

/** One check of readiness. */
export type ReadinessCheck = { name: string; ok: boolean; detail: string };

/** Options of the server; port 0 takes a free port. */
export type ServerOptions = {
  host: string;
  port: number;
  metrics: { expose(accept?: string): Promise<{ contentType: string; body: string }> };
  readiness: () => Promise<ReadinessCheck[]>;
  /** Checks of faults that a restart of the process would fix. The process is alive while all are ok. */
  health: () => ReadinessCheck[];
  /** Null: there is no API. */
  api: ApiOptions | null;
};

const READINESS_TIMEOUT_MS = 2_000;

/** Enough for scrapers, probes and a few readers of events. Further connections are closed at once. */
const MOST_CONNECTIONS = 256;

/** From this number on, each new connection ends an idle one. The rest is a reserve for probes and scrapes. */
const MANY_CONNECTIONS = 192;

/** Number of unread answers of one connection. A client that sends ahead and reads no answer would fill the memory. */
const MOST_AHEAD = 16;

/** Characters of a part of a path, such as a subject's id. */
const MOST_PART = 500;

/** Limits for unknown clients: no request is longer than its headers, and none is sent slowly. */
const LIMITS = {
  // Scrapers leave connections open; closing must not wait for them.
  forceCloseConnections: true,
  bodyLimit: INPUT_LIMITS.signIn.bytes,
  requestTimeout: 1_000 * INPUT_LIMITS.api.seconds,
  // Ends a connection without traffic, also one whose answer nobody reads.
  connectionTimeout: 30_000,
  // Node waits 1 s longer. A scraper with an interval of 10 s reconnects, and never while its connection ends.
  keepAliveTimeout: 8_000,
  routerOptions: { maxParamLength: MOST_PART },
  // No route has a schema of the framework. Its own compilers would cost 4 MB and a tenth of the start.
  schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
  http: {
    headersTimeout: 1_000 * INPUT_LIMITS.requestHead.seconds,
    connectionsCheckingInterval: 1_000,
    maxHeaderSize: INPUT_LIMITS.requestHead.bytes,
  },
} as const;

function noSchemas(): never {
  throw new Error('found a route with a schema of the framework, expected none');
}

/** The HTTP server: `/metrics`, `/healthz` and `/readyz` without a token, the API with one, and the console. */
export class Server {
  readonly #options: ServerOptions;
  readonly #app: FastifyInstance;
  #access: Access | null = null;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#app = fastify({
      ...LIMITS,
      clientErrorHandler: refuseRequest,
      frameworkErrors: ({ code }, _request, reply) =>
        code === 'FST_ERR_MAX_PARAM_LENGTH'
          ? sendProblem(
              reply,
              414,
              `found a longer part of the path, expected at most ${MOST_PART} characters`,
            )
          : sendProblem(reply, 400, 'found a path that cannot be decoded, expected %XX of UTF-8'),
    });
    this.#app.server.maxConnections = MOST_CONNECTIONS;
    this.#holdReserve();
    this.#refuseBodies();
  }

  /** Starts to listen. Rejects with a message that names the config's key. */
  async start(): Promise<{ url: string }> {
    const { host, port, api } = this.#options;
    this.#access =
      api === null ? null : await Access.create(api, () => api.deps()?.operations.stores.sessions ?? null);
    this.#route();
    try {
      await this.#app.listen({ host: await addressToListenOn(host), port });
    } catch (error) {
      throw listenError(error, { host, port });
    }
    const address = this.#app.server.address();
    const listening = address === null || typeof address === 'string' ? port : address.port;
    return { url: `http://${host.includes(':') ? `[${host}]` : host}:${listening}` };
  }

  async changeAccess(rules: AccessRules): Promise<void> {
    await this.#access?.change(rules);
  }

  async close(): Promise<void> {
    await this.#app.close();
  }

  /**
   * Reserves connections. Above the limit, each new connection ends the longest idle one, and answers end theirs. A
   * connection that sends too many requests ahead ends at once.
   */
  #holdReserve(): void {
    const { server } = this.#app;
    /** The requests of each connection, with their answers; ordered by the last end of a request. */
    const requests = new Map<Socket, Map<IncomingMessage, ServerResponse>>();
    this.#app.addHook('onSend', async (_request, reply) => {
      if (requests.size >= MANY_CONNECTIONS) reply.header('connection', 'close');
    });
    // Before the framework: the parser goes on with the data of a connection that has ended.
    const handlers = server.listeners('request');
    server.removeAllListeners('request');
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      const own = requests.get(socket);
      if (own === undefined || own.size >= MOST_AHEAD) {
        requests.delete(socket);
        socket.destroy();
        return;
      }
      own.set(request, response);
      response.once('close', () => {
        own.delete(request);
        if (!requests.delete(socket)) return;
        requests.set(socket, own);
      });
      for (const handle of handlers) Reflect.apply(handle, server, [request, response]);
    });
    server.on('connection', (socket) => {
      if (requests.size >= MANY_CONNECTIONS) endLongestIdle(requests);
      requests.set(socket, new Map());
      socket.once('close', () => requests.delete(socket));
    });
  }

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
      const checks = await checkReadiness(readiness);
      const notReady = checks.filter((check) => !check.ok).map((check) => check.name);
      const ready = notReady.length === 0;
      return reply
        .code(ready ? 200 : 503)
        .header('cache-control', 'no-store')
        .send({ status: ready ? 'ready' : 'not ready', notReady, checks });
    });
    const route =
      api === null
        ? '/metrics, /healthz or /readyz'
        : `/metrics, /healthz, /readyz or what ${API_BASE}/openapi.json describes`;
    this.#app.setNotFoundHandler((request, reply) =>
      sendProblem(reply, 404, `found ${request.method} ${pathOf(request.url)}, expected GET ${route}`),
    );
  }
}

/** Ends the first idle connection: no request is complete, or its client does not read the answers. */
function endLongestIdle(requests: Map<Socket, Map<IncomingMessage, ServerResponse>>): void {
  for (const [socket, own] of requests) {
    if ([...own].some(([request, response]) => request.complete && !response.writableEnded)) continue;
    requests.delete(socket);
    socket.destroy();
    return;
  }
}

/** Runs the readiness checks. A failure, or more than 2 s, becomes a check that is not ok. */
async function checkReadiness(readiness: ServerOptions['readiness']): Promise<ReadinessCheck[]> {
  const unusable = (detail: string): ReadinessCheck[] => [{ name: 'readiness', ok: false, detail }];
  try {
    const checks = await withTimeout(readiness(), READINESS_TIMEOUT_MS);
    return checks ?? unusable(`the checks gave no answer within ${READINESS_TIMEOUT_MS / 1_000} s`);
  } catch (error) {
    // Not its message: this client has no token, and a message may quote any text.
    return unusable(`the checks failed with ${error instanceof Error ? error.name : 'no error'}`);
  }
}

function takesBody(config: object): boolean {
  return 'takesBody' in config && config.takesBody === true;
}

function pathOf(url: string): string {
  return url.split('?')[0] ?? '';
}

/** Resolves `localhost` to one address. For several, the framework starts a server each, and only the first has our limits. */
async function addressToListenOn(host: string): Promise<string> {
  return host === 'localhost' ? (await lookup(host)).address : host;
}

/** Explains in the config's terms why a server could not listen. `cause` is the system's error. */
function listenError(cause: unknown, at: { host: string; port: number }): Error {
  return new Error(reason(codeOf(cause) ?? messageOf(cause), at), { cause });
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
