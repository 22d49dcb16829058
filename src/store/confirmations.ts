import { createHmac, randomBytes } from 'node:crypto';
import type { JsonObject } from '../domain/json.ts';
import type { Secret } from '../secret.ts';
import { removeReport, reportToOperator } from './operator-event.ts';
import { RedisStore } from './stored.ts';

/** Validity of a confirmation. A file reaches all processes within that time; a file that comes back later is held again. */
const HOLDS_MS = 86_400_000;

const DIGEST_LETTERS = 32;
const KEY_BYTES = 32;

const NAME = 'config';
const WORD = 'large_removal';

/** The confirmations of files that remove much, for all processes on one Redis, and the operator's events about them. */
export class ConfirmationStore extends RedisStore {
  /**
   * Returns the digest by which a file is confirmed, the same in all processes that read the same file. It covers secrets and
   * is shown to every reader: only the random key prevents that it confirms a guess of one.
   */
  async digestOf({ fingerprint }: { fingerprint: Secret }): Promise<string> {
    const { fileDigestKey } = this.keys;
    await this.redis.setnx(fileDigestKey, randomBytes(KEY_BYTES).toString('hex'));
    const key = (await this.redis.get(fileDigestKey)) ?? '';
    return createHmac('sha256', key).update(fingerprint.reveal()).digest('hex').slice(0, DIGEST_LETTERS);
  }

  async confirm(digest: string): Promise<void> {
    await this.redis.set(this.keys.confirmation(digest), '1', 'PX', HOLDS_MS);
  }

  async isConfirmed(digest: string): Promise<boolean> {
    return (await this.redis.exists(this.keys.confirmation(digest))) === 1;
  }

  /** Reports a removal to the operator, once for all processes that hold the same file. */
  async report(record: JsonObject & { digest: string; held: boolean }): Promise<void> {
    const mark = [record.digest, String(record.held)];
    await reportToOperator({ redis: this.redis, keys: this.keys }, { name: NAME, word: WORD, mark, record });
  }

  /** Makes the next removal reported, also one of the same file. */
  async removeReport(): Promise<void> {
    await removeReport({ redis: this.redis, keys: this.keys }, NAME);
  }
}
