import { createHmac, timingSafeEqual } from 'node:crypto';
import { deriveKey, type Secret } from '../secret.ts';

/** Lifetime of a link: at least 7 days, until the next midnight (UTC), so that attempts of one day carry the same. */
const GOOD_MS = 7 * 86_400_000;
const DAY_MS = 86_400_000;

/** One event as one receiver gets it. */
export type LinkedEvent = { id: string; receiver: string };

/**
 * Signs and checks links to single events. The holder of a link reads that event as that receiver gets it, and nothing else.
 * The key is derived from `server.token`, slowly, so that a link does not help to guess the token. All processes with one
 * token accept each other's links; another token ends them.
 */
export class EventLinks {
  readonly #key: Buffer;

  private constructor(key: Buffer) {
    this.#key = key;
  }

  static async create(token: Secret): Promise<EventLinks> {
    return new EventLinks(await deriveKey(token, 'intentwatch event links'));
  }

  query(event: LinkedEvent, nowMs: number): string {
    const expires = String((Math.ceil((nowMs + GOOD_MS) / DAY_MS) * DAY_MS) / 1_000);
    const signature = this.#sign(event, expires).toString('base64url');
    return new URLSearchParams({ receiver: event.receiver, expires, signature }).toString();
  }

  /** Checks a link; `forged` also where a part is missing or malformed. */
  check(
    event: LinkedEvent,
    { expires, signature, nowMs }: { expires: unknown; signature: unknown; nowMs: number },
  ): 'good' | 'expired' | 'forged' {
    if (typeof expires !== 'string' || typeof signature !== 'string') return 'forged';
    const given = Buffer.from(signature, 'base64url');
    const right = this.#sign(event, expires);
    if (given.length !== right.length || !timingSafeEqual(given, right)) return 'forged';
    return nowMs < Number(expires) * 1_000 ? 'good' : 'expired';
  }

  #sign({ id, receiver }: LinkedEvent, expires: string): Buffer {
    return createHmac('sha256', this.#key).update(`${id}\n${receiver}\n${expires}`).digest();
  }
}
