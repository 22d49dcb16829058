import { chmod, lstat, readdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { FOLDER_MARKER } from '../files.ts';
import type { Signals } from '../signals.ts';
import { REDIS_FOLDER, type Truncation } from '../store/append-only.ts';
import type { RedisClient } from '../store/commands.ts';
import { EmbeddedRedis } from '../store/embedded.ts';
import { Epoch } from '../store/epoch.ts';
import { EventLog } from '../store/event-log.ts';
import type { Keys } from '../store/keys.ts';
import { reportTruncation } from '../store/operator-event.ts';
import { SchemaVersion, type SchemaVersionError, SchemaWatch } from '../store/schema-version.ts';
import { SeenFile } from '../store/seen-file.ts';
import { UnmatchedStore } from '../store/undelivered.ts';

/** Claims the folder of an embedded Redis for this process. `onTruncated` is called for writes that a crash cut off. */
export async function claimDataDir(
  { dataDir }: Config,
  { log, onTruncated }: { log: Logger; onTruncated: (truncation: Truncation) => void },
): Promise<EmbeddedRedis> {
  const embedded = new EmbeddedRedis({
    dataDir,
    onTrouble: (reason) => log.error({ reason }, 'redis.embedded'),
    onTruncated,
    onGaps: ({ file, gaps, bytes }) => log.warn({ file, gaps, gapBytes: bytes }, 'redis.gaps_removed'),
  });
  await embedded.takeFolder();
  const { repaired, command } = await closeDataFolder(dataDir);
  if (repaired.length > 0) log.info({ dataDir, repaired }, 'data.closed');
  if (command !== null) log.warn({ dataDir, command }, 'data.readable');
  return embedded;
}

/** Detects whether Redis went back while this process did not run, before anything is committed. */
export async function openEpoch(
  { dataDir, redis: { prefix } }: Config,
  data: { redis: RedisClient; keys: Keys; signals: Signals; log: Logger; isTruncated: boolean },
): Promise<Epoch> {
  const { redis, keys, signals, log, isTruncated } = data;
  let isUnwritable = false;
  const epoch = new Epoch({
    redis,
    keys,
    file: new SeenFile(dataDir, prefix),
    onRestored: ({ epoch: number, fromMs, untilMs, reason }) => {
      const [lostFrom, lostUntil] = [fromMs, untilMs].map((ms) =>
        ms === null ? null : new Date(ms).toISOString(),
      );
      log.error({ epoch: number, lostFrom, lostUntil, reason }, 'redis.restored');
    },
    onChecked: (number) => signals.emit('epoch.checked', { epoch: number }),
    onFile: (error) => {
      if (error !== null && !isUnwritable) log.warn({ dataDir, error }, 'data.unwritable');
      isUnwritable = error !== null;
    },
  });
  await epoch.open({ isTruncated });
  return epoch;
}

/** Refuses data of another version before any work on it, and watches that the version stays. */
export async function openSchema(
  redis: RedisClient,
  keys: Keys,
  { log, onChanged }: { log: Logger; onChanged: (error: SchemaVersionError) => void },
): Promise<{ version: SchemaVersion; watch: SchemaWatch }> {
  const version = new SchemaVersion(redis, keys);
  await version.open();
  // Cursors hold the name of the log, and requests that read must not be the first to store it.
  const events = new EventLog(redis, keys);
  await events.ensureName();
  await new UnmatchedStore(redis, keys).begin(await events.newest());
  const fail = (error: SchemaVersionError): void => {
    log.error({ reason: error.message }, 'schema.changed');
    onChanged(error);
  };
  const watch = new SchemaWatch({ version, log, onChanged: fail });
  watch.start();
  return { version, watch };
}

/** Logs writes that the embedded Redis has lost. */
export function logTruncation(truncation: Truncation, log: Logger): void {
  const { file, bytes, lastWriteMs, changedAtMs } = truncation;
  const lostFrom = lastWriteMs === null ? null : new Date(lastWriteMs).toISOString();
  const lostUntil = new Date(changedAtMs).toISOString();
  log.error({ file, lostBytes: bytes, lostFrom, lostUntil }, 'redis.truncated');
}

/** Reports to the operator the losses of the embedded Redis at its start. */
export async function reportTruncations(
  embedded: EmbeddedRedis | null,
  data: { redis: RedisClient; keys: Keys },
): Promise<void> {
  for (const truncation of embedded?.unreported ?? []) {
    await reportTruncation(data, truncation);
    await embedded?.markReported(truncation);
  }
}

const OTHERS = 0o077;

/** Files of the daemon and its Redis in `dataDir`. Sockets are made anew at each start. */
const OWN_FILE =
  /^((daemon|redis-server)\.(lock|pid)|redis-written\.json(\.new)?|redis-seen\.[a-z0-9-]+\.json(\.\d+\.new)?|dump\.rdb|temp-.*\.(rdb|aof)|books\.sqlite(-wal|-shm|-journal)?|\.intentwatch-folder)$/;

const REDIS_FILE = /^(appendonly\.aof\.|temp-)/;

/**
 * The permissions of others on `dataDir` at the start. `repaired`: paths in a folder of the daemon that others lost access to;
 * `command`: for any other folder the command that removes their access, null where they have none.
 */
export type FolderRights = { repaired: string[]; command: string | null };

/**
 * Removes the access of others where the daemon made the folder: to it, to the folders above it that it made, and to its own
 * files in it. A folder that existed before is not changed.
 */
async function closeDataFolder(dataDir: string): Promise<FolderRights> {
  const real = await realpath(dataDir);
  const repaired: string[] = [];
  if (!(await isMarked(real))) {
    const { mode } = await lstat(real);
    return { repaired, command: (mode & OTHERS) === 0 ? null : `chmod 700 ${shellWord(dataDir)}` };
  }
  // Each folder before its content: then nobody else can put a link in the place of a file.
  const close = async (path: string): Promise<void> => {
    if (await takeRights(path)) repaired.push(path);
  };
  for (const folder of await markedAbove(real)) await close(folder);
  await close(real);
  for (const name of await namesIn(real, OWN_FILE)) await close(join(real, name));
  const redis = join(real, REDIS_FOLDER);
  await close(redis);
  for (const name of await namesIn(redis, REDIS_FILE)) await close(join(redis, name));
  return { repaired, command: null };
}

/** Returns the folders above one that were made together with it, the uppermost first. */
async function markedAbove(folder: string): Promise<string[]> {
  const parent = dirname(folder);
  return parent !== folder && (await isMarked(parent)) ? [...(await markedAbove(parent)), parent] : [];
}

async function isMarked(folder: string): Promise<boolean> {
  const marker = await lstat(join(folder, FOLDER_MARKER)).catch(() => null);
  return marker?.isFile() === true && isOurs(marker);
}

async function namesIn(folder: string, pattern: RegExp): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => pattern.test(name));
}

function isOurs({ uid }: { uid: number }): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

/**
 * Removes the access of others to a file, folder or pipe of this user, unless it is a link. Returns whether they had any. It
 * opens no file: closing one would give up the locks that SQLite has on it in this process.
 */
async function takeRights(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  if (found === null || !(found.isFile() || found.isDirectory() || found.isFIFO())) return false;
  if (!isOurs(found) || (found.mode & OTHERS) === 0) return false;
  await chmod(path, found.mode & 0o700);
  return true;
}

function shellWord(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
