import type { OpenTransfer } from '../../src/domain/cadence/wallet.ts';
import type { SubjectId } from '../../src/domain/subjects/subject.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import type { Keys } from '../../src/store/keys.ts';
import { openText, parseOpen } from '../../src/store/wallets.ts';

/** Reads the open transfers of a wallet from Redis. */
export async function storedOpen(redis: RedisClient, keys: Keys, wallet: SubjectId): Promise<OpenTransfer[]> {
  return parseOpen(await redis.hgetall(keys.open(wallet)));
}

/** The subjects of some open transfers with their stored texts, in order. */
export function openTexts(transfers: readonly OpenTransfer[]): [string, string][] {
  return transfers.map((transfer): [string, string] => [transfer.subject, openText(transfer)]).sort();
}
