import { scrypt } from 'node:crypto';
import { inspect, promisify } from 'node:util';

const REDACTED = '[secret]';

/** A value that logs, errors, JSON and inspection show as `[secret]`. Only `reveal()` returns it, where it is needed. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [Symbol.toPrimitive](): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}

const KEY_BYTES = 32;

const derive: (secret: string, purpose: string, bytes: number) => Promise<Buffer> = promisify(scrypt);

const derived = new WeakMap<Secret, Map<string, Promise<Buffer>>>();

/** Derives the key of one purpose from a secret, slowly (some 70 ms, 16 MB), once, and outside the event loop. */
export async function deriveKey(secret: Secret, purpose: string): Promise<Buffer> {
  const keys = derived.get(secret) ?? new Map<string, Promise<Buffer>>();
  derived.set(secret, keys);
  const key = keys.get(purpose) ?? derive(secret.reveal(), purpose, KEY_BYTES);
  keys.set(purpose, key);
  return key;
}
