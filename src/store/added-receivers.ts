import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { deriveKey, type Secret } from '../secret.ts';
import { type PresentReceiver, receiverText } from './definitions.ts';
import { scripts } from './scripts.ts';
import { RedisStore } from './stored.ts';

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts the URLs, secrets and headers of receivers. A ciphertext decrypts only under the name it was made for. */
export class Encryption {
  readonly #key: Buffer;

  private constructor(key: Buffer) {
    this.#key = key;
  }

  static async create(key: Secret): Promise<Encryption> {
    return new Encryption(await deriveKey(key, 'intentwatch receivers'));
  }

  encrypt(name: string, text: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, iv, { authTagLength: TAG_BYTES }).setAAD(
      Buffer.from(name),
    );
    const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), encrypted]).toString('base64');
  }

  /** Returns the text; null for one that was encrypted with another key or under another name, or was changed. */
  decrypt(name: string, encrypted: string): string | null {
    const bytes = Buffer.from(encrypted, 'base64');
    try {
      const decipher = createDecipheriv(CIPHER, this.#key, bytes.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      })
        .setAAD(Buffer.from(name))
        .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      const text = decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES));
      return Buffer.concat([text, decipher.final()]).toString('utf8');
    } catch {
      return null;
    }
  }
}

/** The result of storing a receiver. */
export type Put = Awaited<ReturnType<typeof scripts.putReceiver>>;

/** Most receivers that can be added. `npm run bench -- receivers` measures the memory of a process with this many. */
export const MOST_ADDED = 2_000;

/** The receivers that were made through the API, stored encrypted and shared by all processes. */
export class AddedReceiverStore extends RedisStore {
  /** Null where no receiver was ever added, or Redis was emptied. */
  async version(): Promise<string | null> {
    return this.redis.get(this.keys.addedReceiversVersion);
  }

  /** Returns the encrypted part of each receiver, by name. */
  async all(): Promise<Map<string, string>> {
    return new Map(Object.entries(await this.redis.hgetall(this.keys.addedReceivers)));
  }

  async of(name: string): Promise<string | null> {
    return this.redis.hget(this.keys.addedReceivers, name);
  }

  /** Stores a receiver, as a new one or in place of an earlier one; with `before`, only in place of that version. */
  async put(
    definition: PresentReceiver,
    { encrypted, as, before }: { encrypted: string; as: 'new' | 'other'; before: string | null },
  ): Promise<Put> {
    const { name } = definition;
    const args = { name, encrypted, definition: receiverText(definition), as, before, most: MOST_ADDED };
    return scripts.putReceiver(this.redis, { keys: this.keys, args });
  }

  /** False when there is none of this name. */
  async remove(name: string): Promise<boolean> {
    return scripts.removeReceiver(this.redis, { keys: this.keys, args: { name } });
  }
}
