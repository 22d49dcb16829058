import { createHash, timingSafeEqual } from 'node:crypto';
import type { BlockList } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { networkList } from '../../config/fields/http.ts';
import { isLoopbackHost } from '../../config/sections/server.ts';
import type { Secret } from '../../secret.ts';
import type { EndedSessionStore } from '../../store/server-state.ts';
import { withTimeout } from '../../with-timeout.ts';
import { isOwnPage, Sessions } from '../console/sessions.ts';
import { EventLinks } from '../event-links.ts';
import { clientAddress, FailedLogins, MAX_WAITING } from '../failed-logins.ts';
import { type ApiRoute, includesScope, type Scope } from './route.ts';

/** Tokens of the API: one to read, one to consume the log as well, several to do all. */
export type ApiTokens = { read: Secret | null; consume: Secret | null; admin: readonly Secret[] };

/** `console`: true when a browser may sign in with a token; `publicUrl`: address of the page behind a proxy. */
export type AccessRules = {
  tokens: ApiTokens;
  /** Signs links to events; null: no links. */
  linkToken: Secret | null;
  console: boolean;
  publicUrl: string | null;
  /** The networks of proxies whose `X-Forwarded-For` counts. */
  trustProxy: readonly string[];
};

/** The reason of a refusal, as a problem. */
export type Denial = {
  status: 400 | 401 | 403 | 429 | 503;
  detail: string;
  headers?: Record<string, string>;
};

/** The rules in the form that checks use. `sessions` is null where nobody can sign in. */
type Held = {
  tokens: readonly { scope: Scope; token: Secret; digest: Buffer }[];
  links: EventLinks | null;
  sessions: Sessions | null;
  publicUrl: string | null;
  trusted: BlockList;
};

/**
 * Decides about access. With tokens, a request needs one. Without any, the server listens on the loopback only, and a request
 * must come from this machine itself. It must not come from a page of the web whose name resolves to here (Host), nor from a
 * page that sends requests elsewhere (Origin, Sec-Fetch-Site).
 */
export class Access {
  readonly #failures = new FailedLogins();
  readonly #endedSessions: () => EndedSessionStore | null;
  #held: Held;

  private constructor(held: Held, endedSessions: () => EndedSessionStore | null) {
    this.#endedSessions = endedSessions;
    this.#held = held;
  }

  /** Derives the keys of these rules. `endedSessions` returns null before the daemon has started. */
  static async create(rules: AccessRules, endedSessions: () => EndedSessionStore | null): Promise<Access> {
    return new Access(await heldOf(rules), endedSessions);
  }

  /** Replaces the rules. Sessions and streams that began with a removed token end. */
  async change(rules: AccessRules): Promise<void> {
    this.#held = await heldOf(rules);
  }

  /** Null when a request may be made. Wrong sign-ins are answered late. */
  async check(request: FastifyRequest, route: ApiRoute): Promise<Denial | null> {
    // Before any await: of many requests in one packet, each is counted before the token of the next one.
    if (this.#isJudgedByToken(request, route)) {
      if (this.#failures.isFull(this.#addressOf(request))) return TOO_MANY;
      if (this.#tokenOf(request) === undefined) return this.#fail(request);
    }
    const denial = await this.#denialOf(request, route);
    return denial === 'unknown' ? this.#fail(request) : denial;
  }

  callerOf(request: FastifyRequest): string {
    const token = (this.#tokenOf(request) ?? this.#held.sessions?.of(request))?.token;
    const index = this.#held.tokens.findIndex((one) => one.token === token);
    return `${index} ${this.#addressOf(request)}`;
  }

  #isJudgedByToken({ headers, query }: FastifyRequest, { acceptsLink }: ApiRoute): boolean {
    const hasLink = acceptsLink === true && fieldsOf(query).signature !== undefined;
    return this.#held.tokens.length > 0 && headers.authorization !== undefined && !hasLink;
  }

  #addressOf({ socket, headers }: FastifyRequest): string {
    const forwarded = [headers['x-forwarded-for'] ?? []].flat().join(',');
    return clientAddress(socket.remoteAddress ?? '', forwarded, this.#held.trusted);
  }

  /** True when a request that is still being answered would be allowed now as well. */
  async stillMay(request: FastifyRequest, route: ApiRoute): Promise<boolean> {
    const denial = await this.#denialOf(request, route);
    return denial === null || denial === UNSURE;
  }

  async #denialOf(request: FastifyRequest, route: ApiRoute): Promise<Denial | 'unknown' | null> {
    const { tokens, publicUrl } = this.#held;
    if (tokens.length === 0) return checkLoopback(request);
    const link = route.acceptsLink === true ? this.#checkLink(request) : null;
    if (link !== null) return link === 'good' ? null : link;
    const isSession = request.headers.authorization === undefined && request.headers.cookie !== undefined;
    const scope = isSession ? await this.#sessionScope(request) : this.#tokenOf(request)?.scope;
    if (scope === undefined) return 'unknown';
    if (typeof scope === 'object') return scope;
    if (isSession && !isOwnPage(request, publicUrl)) return FOREIGN_PAGE;
    return includesScope(scope, route.scope) ? null : tooLittle(scope, route.scope);
  }

  /** Scope of the session, null for none; `signIn` is false where no sign-in is needed. */
  async session(
    request: FastifyRequest,
  ): Promise<{ signIn: boolean; scope: Scope | null } | { denial: Denial }> {
    if (this.#held.tokens.length === 0) {
      const denial = checkLoopback(request);
      return denial === null ? { signIn: false, scope: 'admin' } : { denial };
    }
    const scope = await this.#sessionScope(request);
    if (scope === UNSURE) return { denial: UNSURE };
    return { signIn: true, scope: typeof scope === 'string' ? scope : null };
  }

  /** Begins a session with a token. Wrong sign-ins are answered late. */
  async signIn(
    request: FastifyRequest,
    given: string,
  ): Promise<{ cookie: string; scope: Scope } | { denial: Denial }> {
    const { sessions, publicUrl } = this.#held;
    if (!isOwnPage(request, publicUrl)) return { denial: FOREIGN_PAGE };
    if (this.#failures.isFull(this.#addressOf(request))) return { denial: TOO_MANY };
    const found = this.#find(given);
    if (found === undefined || sessions === null) return { denial: await this.#fail(request) };
    const { token, scope } = found;
    const isSecure = cameByHttps(request);
    return { cookie: sessions.begin(token, { request, nowMs: Date.now(), isSecure }), scope };
  }

  async signOut(request: FastifyRequest): Promise<{ cookie: string } | { denial: Denial }> {
    const { sessions, publicUrl } = this.#held;
    if (!isOwnPage(request, publicUrl) || sessions === null) return { denial: FOREIGN_PAGE };
    const session = sessions.of(request);
    const validForMs = session === null ? 0 : session.untilMs - Date.now();
    if (session !== null && validForMs > 0) {
      const ended = await this.#tryStore((store) => store.end(session.id, validForMs).then(() => true));
      if (ended === null) return { denial: UNSURE };
    }
    return { cookie: sessions.end({ request, isSecure: cameByHttps(request) }) };
  }

  async #fail(request: FastifyRequest): Promise<Denial> {
    const address = this.#addressOf(request);
    if (this.#failures.isFull(address)) return TOO_MANY;
    await this.#failures.wait(address, performance.now());
    return UNAUTHORIZED;
  }

  /** Scope of a request's session, or the reason why it has none; undefined: no session of this server. */
  async #sessionScope(request: FastifyRequest): Promise<Scope | Denial | undefined> {
    const session = this.#held.sessions?.of(request);
    if (!session) return undefined;
    if (Date.now() >= session.untilMs) return SESSION_ENDED;
    const hasEnded = await this.#tryStore((store) => store.hasEnded(session.id));
    if (hasEnded === null) return UNSURE;
    return hasEnded ? SESSION_ENDED : session.scope;
  }

  /** Reads ended sessions; null when the store is absent or does not answer. */
  async #tryStore(use: (store: EndedSessionStore) => Promise<boolean>): Promise<boolean | null> {
    const store = this.#endedSessions();
    return store === null ? null : withTimeout(use(store), SESSION_TIMEOUT_MS).catch(() => null);
  }

  /** The token of a request; undefined: none of the config's. */
  #tokenOf({ headers }: FastifyRequest): { scope: Scope; token: Secret } | undefined {
    const [, given = ''] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
    return this.#find(given);
  }

  /** Compares all tokens, each in constant time. */
  #find(given: string): { scope: Scope; token: Secret } | undefined {
    const requested = digest(given);
    const [found] = this.#held.tokens.filter((token) => timingSafeEqual(token.digest, requested));
    return found;
  }

  /** Verdict on a signed link; null where the request has none. */
  #checkLink({ params, query }: FastifyRequest): 'good' | Denial | null {
    const { signature, expires, receiver } = fieldsOf(query);
    const { id } = fieldsOf(params);
    if (signature === undefined) return null;
    if (typeof id !== 'string' || typeof receiver !== 'string') {
      return { status: 400, detail: 'expected ?receiver= with the name of a receiver' };
    }
    const word =
      this.#held.links?.check({ id, receiver }, { expires, signature, nowMs: Date.now() }) ?? 'forged';
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

const SESSION_ENDED: Denial = { status: 401, detail: 'this session has ended; sign in again' };

const SESSION_TIMEOUT_MS = 2_000;

const UNSURE: Denial = {
  status: 503,
  detail: 'it is unknown now whether this session was ended; try again later',
  headers: { 'retry-after': '2' },
};

const FOREIGN_PAGE: Denial = {
  status: 403,
  detail: 'found a request of another page, expected one of the console',
};

const TOO_MANY: Denial = {
  status: 429,
  detail: `found ${MAX_WAITING} wrong sign-ins of this address that wait for their answer; try again later`,
  headers: { 'retry-after': '5', connection: 'close' },
};

const ADMIN_NAMES = 'an admin token (server.token or server.tokens.admin)';

function tooLittle(held: Scope, needed: Scope): Denial {
  const expected = needed === 'admin' ? ADMIN_NAMES : `server.tokens.${needed} or ${ADMIN_NAMES}`;
  return { status: 403, detail: `found server.tokens.${held}, expected ${expected}` };
}

async function heldOf({
  tokens: { read, consume, admin },
  linkToken,
  console,
  publicUrl,
  trustProxy,
}: AccessRules): Promise<Held> {
  const all = [
    ...(read === null ? [] : [{ scope: 'read' as const, token: read }]),
    ...(consume === null ? [] : [{ scope: 'consume' as const, token: consume }]),
    ...admin.map((token) => ({ scope: 'admin' as const, token })),
  ];
  // At once: one after the other they take twice as long, and the allocator does not return the memory of the second.
  const [links, sessions] = await Promise.all([
    linkToken === null ? null : EventLinks.create(linkToken),
    console ? Sessions.create(all) : null,
  ]);
  return {
    tokens: all.map((one) => ({ ...one, digest: digest(one.token.reveal()) })),
    links,
    sessions,
    publicUrl,
    trusted: networkList(trustProxy),
  };
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

/** True when the browser states https: behind a proxy nobody else knows. It affects that browser's cookie only. */
function cameByHttps({ headers }: FastifyRequest): boolean {
  return headers.origin?.startsWith('https:') ?? false;
}

/** Digests have equal length, so the time of a comparison reveals nothing about the token. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
