import { scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import type { Secret } from './secret.ts';

const KEY_BYTES = 32;

const derive: (secret: string, purpose: string, bytes: number) => Promise<Buffer> = promisify(scrypt);

/** Derives the key of one purpose from a secret, slowly (some 70 ms) and outside the event loop. */
export async function deriveKey(secret: Secret, purpose: string): Promise<Buffer> {
  return derive(secret.reveal(), purpose, KEY_BYTES);
}
