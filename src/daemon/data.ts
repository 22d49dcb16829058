import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { Signals } from '../signals.ts';
import type { Truncation } from '../store/append-only.ts';
import type { RedisClient } from '../store/commands.ts';
import { closeDataFolder } from '../store/data-folder.ts';
import { EmbeddedRedis } from '../store/embedded.ts';
import { Epoch } from '../store/epoch.ts';
import { EventLog } from '../store/event-log.ts';
import type { Keys } from '../store/keys.ts';
import { reportTruncation } from '../store/operator-event.ts';
import { SchemaVersion, type SchemaVersionError } from '../store/schema-version.ts';
import { SchemaWatch } from '../store/schema-watch.ts';
import { SeenFile } from '../store/seen-file.ts';
import { UnmatchedStore } from '../store/unmatched.ts';

/** Claims the folder of an embedded Redis for this process. `onTruncated` is called for writes that a crash cut off. */
export async function claimDataDir(
  { dataDir }: Config,
  { log, onTruncated }: { log: Logger; onTruncated: (truncation: Truncation) => void },
): Promise<EmbeddedRedis> {
  const embedded = new EmbeddedRedis({
    dataDir,
    onTrouble: (reason) => log.error({ reason }, 'redis.embedded'),
    onTruncated,
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
