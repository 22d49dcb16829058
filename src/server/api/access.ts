import { createHash, timingSafeEqual } from 'node:crypto';
import { isIPv4 } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { Secret } from '../../secret.ts';
import type { EventLinks } from '../event-links.ts';
import { FailedLogins } from '../failed-logins.ts';
import type { ApiRoute, Scope } from './route.ts';

/** Who may use the API: one token to read, several to do all. */
export type ApiTokens = { read: Secret | null; admin: readonly Secret[] };

/** Why a request is refused, as a problem. */
export type Denial = { status: 400 | 401 | 403 | 429; detail: string; headers?: Record<string, string> };

/**
 * Who may do what. With tokens, a request needs one. Without any, there is only the loopback, and a request must come from
 * this machine itself: neither from a page of the web that has its name point here (Host), nor from one that sends
 * requests elsewhere (Origin, Sec-Fetch-Site).
 */
export class Access {
  readonly #tokens: readonly { scope: Scope; digest: Buffer }[];
  readonly #links: EventLinks | null;
  readonly #failures = new FailedLogins();

  constructor(tokens: ApiTokens, links: EventLinks | null) {
    const { read, admin } = tokens;
    this.#tokens = [
      ...(read === null ? [] : [{ scope: 'read' as const, digest: digest(read.reveal()) }]),
      ...admin.map((token) => ({ scope: 'admin' as const, digest: digest(token.reveal()) })),
    ];
    this.#links = links;
  }

  /** Null when a request may be made. Failed logins are answered late. */
  async check(
    request: FastifyRequest,
    route: Pick<ApiRoute, 'scope' | 'acceptsLink'>,
  ): Promise<Denial | null> {
    if (this.#tokens.length === 0) return checkLoopback(request);
    const link = route.acceptsLink === true ? this.#checkLink(request) : null;
    if (link !== null) return link === 'good' ? null : link;
    const scope = this.#scopeOf(request);
    if (scope === null) {
      const waited = await this.#failures.wait(request.ip, performance.now());
      return waited ? UNAUTHORIZED : TOO_MANY;
    }
    return route.scope === 'admin' && scope === 'read' ? READ_ONLY : null;
  }

  /** What the token of a request allows; null where it has none of ours. All are compared, each in constant time. */
  #scopeOf({ headers }: FastifyRequest): Scope | null {
    const [, given = ''] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
    const asked = digest(given);
    const [found] = this.#tokens.filter((token) => timingSafeEqual(token.digest, asked));
    return found?.scope ?? null;
  }

  /** What a signed link is worth; null where the request is none. */
  #checkLink({ params, query }: FastifyRequest): 'good' | Denial | null {
    const { signature, expires, receiver } = fieldsOf(query);
    const { id } = fieldsOf(params);
    if (signature === undefined) return null;
    if (typeof id !== 'string' || typeof receiver !== 'string') {
      return { status: 400, detail: 'expected ?receiver= with the name of a receiver' };
    }
    const word = this.#links?.check({ id, receiver }, { expires, signature, nowMs: Date.now() }) ?? 'forged';
    return word === 'good' ? word : { status: 403, detail: BAD_LINKS[word] };
  }
}

const BAD_LINKS = {
  expired: 'this link has expired; the event can still be read with a token of the API',
  forged: 'this link was not made here for this event and receiver; expected the whole link as it was sent',
} as const;

const UNAUTHORIZED: Denial = {
  status: 401,
  detail: 'expected the header Authorization: Bearer and a token of the config (server.token, server.tokens)',
  headers: { 'www-authenticate': 'Bearer' },
};

const TOO_MANY: Denial = {
  status: 429,
  detail: 'found too many failed logins, expected a token of the config',
  headers: { 'retry-after': '60', connection: 'close' },
};

const READ_ONLY: Denial = {
  status: 403,
  detail: 'found server.tokens.read, expected an admin token (server.token or server.tokens.admin)',
};

/** Whether the server can be reached from this machine alone. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}

function checkLoopback({ headers, socket }: FastifyRequest): Denial | null {
  const host = headers.host ?? '';
  const [, name = '', port = '80'] = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(host.toLowerCase()) ?? [];
  if (!isLoopbackHost(name.replace(/^\[(.*)\]$/, '$1')) || Number(port) !== socket.localPort) {
    const expected = `localhost or a loopback address, with the port ${socket.localPort}`;
    return {
      status: 403,
      detail: `found Host ${JSON.stringify(host.slice(0, 80))}, expected ${expected}: without a token (server.token) the API is for this machine alone`,
    };
  }
  const { origin } = headers;
  const site = headers['sec-fetch-site'];
  const isForeign = origin !== undefined && origin !== `http://${host}`;
  if (isForeign || (site !== undefined && site !== 'same-origin' && site !== 'none')) {
    return { status: 403, detail: 'found a request of another site’s page, expected one of this machine' };
  }
  return null;
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

/** Digests of equal length are compared, so that the time tells nothing about the token. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
