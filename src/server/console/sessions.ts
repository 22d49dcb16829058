import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { deriveKey, type Secret } from '../../secret.ts';
import type { Scope } from '../api/route.ts';

const GOOD_SECONDS = 12 * 3_600;

/** Content of a session: its scope, the token it began with, its id, and its end. */
export type Session = { scope: Scope; token: Secret; id: string; untilMs: number };

/** A token that may sign in, with its scope. */
export type SessionToken = { scope: Scope; token: Secret };

type SessionKey = SessionToken & { key: Buffer };

/**
 * Signs and checks sessions of the console. Only ended sessions are stored. All processes with one token accept each other's
 * sessions; a replaced token ends the sessions that it began. The key is derived from the token, slowly, so that a session
 * does not help to guess it.
 */
export class Sessions {
  readonly #keys: readonly SessionKey[];

  private constructor(keys: readonly SessionKey[]) {
    this.#keys = keys;
  }

  static async create(tokens: readonly SessionToken[]): Promise<Sessions> {
    const keys = tokens.map(async ({ scope, token }) => ({
      scope,
      token,
      key: await deriveKey(token, 'intentwatch console session'),
    }));
    return new Sessions(await Promise.all(keys));
  }

  /** Makes the header that begins a session. `isSecure`: the browser came by https. */
  begin(
    token: Secret,
    { request, nowMs, isSecure }: { request: FastifyRequest; nowMs: number; isSecure: boolean },
  ): string {
    const key = this.#keys.find((one) => one.token === token)?.key;
    if (key === undefined) throw new Error('found a token that is none of the config');
    const payload = `${Math.floor(nowMs / 1_000) + GOOD_SECONDS}.${randomBytes(16).toString('base64url')}`;
    const session = `${payload}.${sign(key, payload)}`;
    return cookie(request, { value: session, seconds: GOOD_SECONDS, isSecure });
  }

  end({ request, isSecure }: { request: FastifyRequest; isSecure: boolean }): string {
    return cookie(request, { value: '', seconds: 0, isSecure });
  }

  /** The session of a request; null: none of this server. All keys are compared, each in constant time. */
  of(request: FastifyRequest): Session | null {
    const session = sessionOf(request);
    const [, payload = '', expires = '', id = '', signature = ''] =
      /^((\d{1,12})\.([\w-]{22}))\.([\w-]{43})$/.exec(session ?? '') ?? [];
    const given = Buffer.from(signature);
    const [found] = this.#keys.filter(({ key }) => isEqual(Buffer.from(sign(key, payload)), given));
    return found === undefined
      ? null
      : { scope: found.scope, token: found.token, id, untilMs: Number(expires) * 1_000 };
  }
}

/**
 * True when a request comes from the console itself, not from a foreign page for which the browser sends the cookie. A
 * request that changes something must name its origin. A proxy may have rewritten Host: then `publicUrl` counts.
 */
export function isOwnPage({ headers, method }: FastifyRequest, publicUrl: string | null): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  if (origin === undefined) return method === 'GET' || site === 'same-origin';
  if (!URL.canParse(origin)) return false;
  const from = new URL(origin);
  return from.host === host || (publicUrl !== null && from.origin === new URL(publicUrl).origin);
}

/** The port distinguishes daemons of one machine: browsers store cookies by host, for any port. */
function nameOf({ socket }: FastifyRequest): string {
  return `intentwatch_${socket.localPort}`;
}

function sessionOf(request: FastifyRequest): string | undefined {
  const name = `${nameOf(request)}=`;
  const pairs = (request.headers.cookie ?? '').split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(name))?.slice(name.length);
}

function cookie(
  request: FastifyRequest,
  { value, seconds, isSecure }: { value: string; seconds: number; isSecure: boolean },
): string {
  const attributes = `Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
  return `${nameOf(request)}=${value}; ${attributes}`;
}

function sign(key: Buffer, payload: string): string {
  return createHmac('sha256', key).update(payload).digest('base64url');
}

function isEqual(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}
