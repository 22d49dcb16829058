import { readdirSync, readFileSync } from 'node:fs';
import type { Cluster, Redis, Result } from 'ioredis';
import { SCHEMA_VERSION } from './schema-version.ts';

/** A connection to a Redis server, a Sentinel group (both `Redis`) or a Cluster. */
export type RedisClient = Redis | Cluster;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    iwCommit(...keysAndArgs: string[]): Result<[string, string, string], Context>;
    iwBeginPoll(
      ...keysAndArgs: string[]
    ): Result<[string, string, string, number, string, string[], string[], string], Context>;
    iwEndPoll(...keysAndArgs: string[]): Result<string, Context>;
    iwLearn(...keysAndArgs: string[]): Result<number, Context>;
    iwMovePoll(...keysAndArgs: string[]): Result<string, Context>;
    iwRecountDemand(...keysAndArgs: string[]): Result<number, Context>;
    iwClaim(...keysAndArgs: string[]): Result<number, Context>;
    iwWant(...keysAndArgs: string[]): Result<string, Context>;
    iwSince(...keysAndArgs: string[]): Result<string, Context>;
    iwHealth(...keysAndArgs: string[]): Result<[string, string, string], Context>;
    iwMayAsk(...keysAndArgs: string[]): Result<number, Context>;
    iwPause(...keysAndArgs: string[]): Result<number, Context>;
    iwLease(...keysAndArgs: string[]): Result<string, Context>;
    iwEnqueue(...keysAndArgs: string[]): Result<string, Context>;
    iwAdvance(...keysAndArgs: string[]): Result<number, Context>;
    iwRecordAttempt(...keysAndArgs: string[]): Result<string[], Context>;
    iwRenew(...keysAndArgs: string[]): Result<string, Context>;
    iwGather(...keysAndArgs: string[]): Result<string[], Context>;
    iwFreeze(...keysAndArgs: string[]): Result<string[], Context>;
    iwDisable(...keysAndArgs: string[]): Result<string, Context>;
    iwEnable(...keysAndArgs: string[]): Result<string, Context>;
    iwResume(...keysAndArgs: string[]): Result<number, Context>;
    iwDrop(...keysAndArgs: string[]): Result<number, Context>;
    iwAdvanceReplay(...keysAndArgs: string[]): Result<number, Context>;
    iwAdvanceSchema(...keysAndArgs: string[]): Result<number, Context>;
    iwSetAside(...keysAndArgs: string[]): Result<number, Context>;
    iwReturnEntry(...keysAndArgs: string[]): Result<string, Context>;
    iwAppendEvent(...keysAndArgs: string[]): Result<string, Context>;
  }
}

const FOLDER = new URL('./commands/', import.meta.url);

/** What every script finds: the version that entries of the log carry. On the first line, so that errors name the right one. */
const PRELUDE = `local SCHEMA_VERSION = '${SCHEMA_VERSION}' `;

/** Teaches a connection the scripts in `commands/`: `claim-4.lua` becomes `iwClaim` with four keys. */
export function defineCommands(redis: RedisClient): void {
  for (const file of readdirSync(FOLDER)) {
    const match = /^(.+)-(\d+)\.lua$/.exec(file);
    if (match === null) continue;
    const [, name = '', keys = '0'] = match;
    const words = name.split('-').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
    redis.defineCommand(`iw${words.join('')}`, {
      numberOfKeys: Number(keys),
      lua: PRELUDE + readFileSync(new URL(file, FOLDER), 'utf8'),
    });
  }
}
