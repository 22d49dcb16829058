import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from '../../src/domain/json.ts';
import { inTheInterface } from './deployment.ts';

/** A request to the scripted upstream: its path without query, and the query. */
export type ScriptedRequest = { path: string; query: Record<string, string> };

/** An answer: records for the status endpoint, or a whole answer. */
export type Scripted =
  | { records: JsonObject[]; nextCursor?: string | null }
  | { status: number; body: string | Uint8Array; headers?: Record<string, string> };

/** Requests that a daemon always sends. */
const LISTS: ReadonlySet<string> = new Set(['/v1/chains', '/v1/tokens']);

/**
 * An upstream over real HTTP whose every answer the test writes, and may delay. Its lists of chains and tokens are empty,
 * and the test is not notified of requests for them, unless it writes those too (`lists`).
 */
export class ScriptedUpstream {
  readonly requests: ScriptedRequest[] = [];
  readonly #server: Server;
  readonly #lists: boolean;
  readonly #waiting: { matches: (request: ScriptedRequest) => boolean; resolve: () => void }[] = [];
  answer: (request: ScriptedRequest) => Scripted | Promise<Scripted>;

  constructor(answer: (request: ScriptedRequest) => Scripted | Promise<Scripted>, { lists = false } = {}) {
    this.answer = answer;
    this.#lists = lists;
    this.#server = createServer((request, response) => {
      const url = new URL(request.url ?? '/', 'http://upstream');
      const requested = { path: url.pathname, query: Object.fromEntries(url.searchParams) };
      const { 'x-api-key': key } = request.headers;
      const understood = inTheInterface(requested, key === undefined ? undefined : String(key));
      if (understood === null) response.writeHead(403).end('{"Message":"not at this deployment"}');
      else void this.#serve(understood, response);
    });
  }

  async #serve(request: ScriptedRequest, response: ServerResponse): Promise<void> {
    if (LISTS.has(request.path) && !this.#lists) {
      response.writeHead(200, { 'content-type': 'application/json' }).end('[]');
      return;
    }
    this.requests.push(request);
    for (const waiting of this.#waiting.filter(({ matches }) => matches(request))) waiting.resolve();
    const scripted = await this.answer(request);
    if ('body' in scripted) {
      response.writeHead(scripted.status, { 'content-type': 'application/json', ...scripted.headers });
      response.end(scripted.body);
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ results: scripted.records, nextCursor: scripted.nextCursor ?? null }));
  }

  async awaitRequest(matches: (request: ScriptedRequest) => boolean): Promise<void> {
    await new Promise<void>((resolve) => this.#waiting.push({ matches, resolve }));
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** A record of the status endpoint about an intent. */
export function intentRecord(
  hash: string,
  status: string,
  updatedAt: number | null,
  more: JsonObject = {},
): JsonObject {
  return { id: `intent:${hash}`, type: 'intent', status, updatedAt, ...more };
}

/** The hash of an invented intent. */
export function hashOf(number: number): string {
  return `0x${number.toString(16).padStart(64, '0')}`;
}

/** An upstream that answers with the status of each intent in a map, which a test may change, and knows no other. */
export function upstreamOfStatuses(statuses: ReadonlyMap<string, string>): ScriptedUpstream {
  return new ScriptedUpstream(({ query }) => {
    const hash = query.intentHash ?? '';
    const status = statuses.get(hash) ?? 'unknown';
    return { records: [intentRecord(hash, status, status === 'unknown' ? null : 1_763_638_259)] };
  });
}
