import { readdirSync, readFileSync } from 'node:fs';
import type { Cluster, Redis, Result } from 'ioredis';

/** A connection to a Redis server, a Sentinel group (both `Redis`) or a Cluster. */
export type RedisClient = Redis | Cluster;

/** An entry of a stream: its id, and names and values of its fields by turns. */
export type LogRow = [id: string, fields: string[]];

declare module 'ioredis' {
  interface RedisCommander<Context> {
    iwCommit(...keysAndArgs: string[]): Result<[string, string, string], Context>;
    iwClaimPolls(...keysAndArgs: string[]): Result<[string, string[], string[], number, string[]], Context>;
    iwTakePoll(...keysAndArgs: string[]): Result<unknown[], Context>;
    iwEndPoll(...keysAndArgs: string[]): Result<string, Context>;
    iwRenewPolls(...keysAndArgs: string[]): Result<number, Context>;
    iwAskPoll(...keysAndArgs: string[]): Result<number, Context>;
    iwTrack(...keysAndArgs: string[]): Result<number, Context>;
    iwReslot(...keysAndArgs: string[]): Result<string, Context>;
    iwSpareSlot(...keysAndArgs: string[]): Result<string, Context>;
    iwRepairPlan(...keysAndArgs: string[]): Result<string[], Context>;
    iwReadSubjects(...keysAndArgs: string[]): Result<unknown[], Context>;
    iwRecount(...keysAndArgs: string[]): Result<string[], Context>;
    iwNoteEnded(...keysAndArgs: string[]): Result<number, Context>;
    iwRepairEnded(...keysAndArgs: string[]): Result<number, Context>;
    iwSettleEnded(...keysAndArgs: string[]): Result<[number, number], Context>;
    iwRetire(...keysAndArgs: string[]): Result<number, Context>;
    iwNoteAnswer(...keysAndArgs: string[]): Result<[string, string, string], Context>;
    iwReportTooLarge(...keysAndArgs: string[]): Result<number, Context>;
    iwReportCursor(...keysAndArgs: string[]): Result<number, Context>;
    iwTakeTurn(...keysAndArgs: string[]): Result<number, Context>;
    iwLearn(...keysAndArgs: string[]): Result<number, Context>;
    iwClaim(...keysAndArgs: string[]): Result<number, Context>;
    iwNoteTransfers(...keysAndArgs: string[]): Result<string[], Context>;
    iwPutReceiver(...keysAndArgs: string[]): Result<string, Context>;
    iwSyncAddedReceiver(...keysAndArgs: string[]): Result<number, Context>;
    iwRemoveReceiver(...keysAndArgs: string[]): Result<number, Context>;
    iwTrackSubject(...keysAndArgs: string[]): Result<[number, string], Context>;
    iwUntrackSubject(...keysAndArgs: string[]): Result<number, Context>;
    iwForgetTracked(...keysAndArgs: string[]): Result<number, Context>;
    iwWant(...keysAndArgs: string[]): Result<number, Context>;
    iwReleaseWaiting(...keysAndArgs: string[]): Result<[string, number], Context>;
    iwDropWaiting(...keysAndArgs: string[]): Result<string[], Context>;
    iwEndSuspended(...keysAndArgs: string[]): Result<number, Context>;
    iwRecallSpare(...keysAndArgs: string[]): Result<[string, string], Context>;
    iwLongestWaiting(...keysAndArgs: string[]): Result<string, Context>;
    iwSince(...keysAndArgs: string[]): Result<[string, string, string], Context>;
    iwLease(...keysAndArgs: string[]): Result<string, Context>;
    iwOpenDeliveries(...keysAndArgs: string[]): Result<string[], Context>;
    iwStanding(...keysAndArgs: string[]): Result<string[], Context>;
    iwClaimDeliveries(...keysAndArgs: string[]): Result<unknown[], Context>;
    iwReleaseDeliveries(...keysAndArgs: string[]): Result<number, Context>;
    iwBeat(...keysAndArgs: string[]): Result<string[], Context>;
    iwTakeOver(...keysAndArgs: string[]): Result<number, Context>;
    iwRepairDeliveries(...keysAndArgs: string[]): Result<string[], Context>;
    iwListUndelivered(...keysAndArgs: string[]): Result<string[], Context>;
    iwAdvance(...keysAndArgs: string[]): Result<number, Context>;
    iwAdvanceUnmatched(...keysAndArgs: string[]): Result<number, Context>;
    iwRecordAttempt(...keysAndArgs: string[]): Result<string[], Context>;
    iwRenewDeliveries(...keysAndArgs: string[]): Result<number, Context>;
    iwJoinBatch(...keysAndArgs: string[]): Result<string[], Context>;
    iwCloseBatch(...keysAndArgs: string[]): Result<string[], Context>;
    iwDisable(...keysAndArgs: string[]): Result<string, Context>;
    iwEnable(...keysAndArgs: string[]): Result<string, Context>;
    iwPause(...keysAndArgs: string[]): Result<string, Context>;
    iwUnpause(...keysAndArgs: string[]): Result<string, Context>;
    iwResume(...keysAndArgs: string[]): Result<string, Context>;
    iwTrimLog(...keysAndArgs: string[]): Result<[number, number], Context>;
    iwTrimDead(...keysAndArgs: string[]): Result<number, Context>;
    iwDropExpired(...keysAndArgs: string[]): Result<number[], Context>;
    iwDropDeliveries(...keysAndArgs: string[]): Result<number, Context>;
    iwDropBehind(...keysAndArgs: string[]): Result<number, Context>;
    iwReportDropped(...keysAndArgs: string[]): Result<string[], Context>;
    iwAdvanceReplay(...keysAndArgs: string[]): Result<number, Context>;
    iwQuarantine(...keysAndArgs: string[]): Result<number, Context>;
    iwReturnEntry(...keysAndArgs: string[]): Result<string, Context>;
    iwAcknowledge(...keysAndArgs: string[]): Result<string, Context>;
    iwBeginAnswer(...keysAndArgs: string[]): Result<string[], Context>;
    iwFeedChecks(...keysAndArgs: string[]): Result<[number, number], Context>;
    iwClaimChecks(...keysAndArgs: string[]): Result<[string, string, unknown[], string[]], Context>;
    iwRenewChecks(...keysAndArgs: string[]): Result<string[], Context>;
    iwNoteHead(...keysAndArgs: string[]): Result<number, Context>;
    iwPostponeCheck(...keysAndArgs: string[]): Result<number, Context>;
    iwEndCheck(...keysAndArgs: string[]): Result<string, Context>;
    iwReopenLeft(...keysAndArgs: string[]): Result<number, Context>;
    iwTrimChecks(...keysAndArgs: string[]): Result<number, Context>;
    iwLookEpoch(...keysAndArgs: string[]): Result<string[], Context>;
    iwBeginEpoch(...keysAndArgs: string[]): Result<number, Context>;
    iwEndEpoch(...keysAndArgs: string[]): Result<number, Context>;
    iwReadClock(...keysAndArgs: string[]): Result<unknown[], Context>;
    iwConfirmTime(...keysAndArgs: string[]): Result<unknown[], Context>;
    iwReport(...keysAndArgs: string[]): Result<number, Context>;
    iwReadLog(...keysAndArgs: string[]): Result<[LogRow[], 0 | 1], Context>;
    iwReadPlaces(...keysAndArgs: string[]): Result<string[][], Context>;
    iwAppendEvent(...keysAndArgs: string[]): Result<string, Context>;
  }
}

const FOLDER = new URL('./commands/', import.meta.url);

/** A line of a script that stands for a file of `commands/include`. */
const INCLUDE = /^-- @include ([a-z-]+)$/gm;
/** What every script finds: the version that entries of the log carry. On the first line, so that errors name the right one. */
/**
 * The version of what this program stores. Every entry of the log carries that of its writer, and Redis that of all:
 * what has none counts as 0. It grows with every change that a program
 * before it could not read.
 */
export const SCHEMA_VERSION = 2;

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
      lua: (PRELUDE + readFileSync(new URL(file, FOLDER), 'utf8')).replace(INCLUDE, (_, included: string) =>
        readFileSync(new URL(`include/${included}.lua`, FOLDER), 'utf8'),
      ),
    });
  }
}
