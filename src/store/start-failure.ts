/** A failure of the embedded Redis: another daemon uses its `dataDir`, or none does; damaged files; or no `redis-server`. */
export class EmbeddedRedisError extends Error {
  readonly code: 'in-use' | 'not-running' | 'not-installed' | 'not-started' | 'damaged';

  constructor(code: EmbeddedRedisError['code'], message: string) {
    super(message);
    this.name = 'EmbeddedRedisError';
    this.code = code;
  }
}

/** The exit code of a shell that has not found a program. */
export const NOT_FOUND = 127;

/** Makes the error of a redis-server that has not started; `ended` is null where it gave no answer for `timeoutMs`. */
export function startError(
  ended: { code: number | null } | null,
  { output, dataDir, timeoutMs }: { output: string; dataDir: string; timeoutMs: number },
): EmbeddedRedisError {
  if (ended?.code === NOT_FOUND) {
    return new EmbeddedRedisError(
      'not-installed',
      'redis-server is not installed; install it (Debian: apt-get install redis-server) or set redis.url',
    );
  }
  const how =
    ended === null
      ? `gave no answer for ${timeoutMs / 1_000} s`
      : ended.code === null
        ? 'was killed'
        : `ended with ${ended.code}`;
  const reason = reasonOfOutput(output);
  const remedy = remedyOf(reason, dataDir);
  const message = `the embedded redis-server ${how}: ${reason}${remedy === null ? '' : `; ${remedy}`}`;
  return new EmbeddedRedisError('not-started', message);
}

/** Lines with which every redis-server begins, and hints about the machine. */
const ROUTINE =
  /oO0Oo|^(?:Redis|Valkey) version=|^Configuration loaded|^Server initialized|^WARNING\b|^Warning: no config file|^\*\*\*/;

/** Prefix of a message in the log of a redis-server: pid and role, the time, the level. */
const PREFIX = /^\d+:[A-Z] .{10,40}? [.\-*#] /;

const LONGEST_REASON = 600;

/** Returns the reason of a redis-server's end, from its output: its own messages without those of every start. */
export function reasonOfOutput(output: string): string {
  const lines = output.split('\n').map((line) => line.trim());
  const logged = lines.filter((line) => PREFIX.test(line)).map((line) => line.replace(PREFIX, ''));
  const reasons = logged.filter((line) => line !== '' && !ROUTINE.test(line));
  const others = lines.filter((line) => line !== '' && !PREFIX.test(line)).slice(-3);
  return (reasons.length > 0 ? reasons : others).join(' | ').slice(0, LONGEST_REASON);
}

/** Returns the remedy for such a reason; null where it does not concern the files. */
export function remedyOf(reason: string, dataDir: string): string | null {
  if (/no space left|disk full/i.test(reason)) return `free space on the disk of ${dataDir}`;
  if (/read-only file system/i.test(reason)) return `make the file system of ${dataDir} writable`;
  if (/permission denied|not permitted/i.test(reason)) {
    return `give all files in ${dataDir} to the user that runs the daemon (chown -R)`;
  }
  if (/\b(?:AOF|RDB)\b|append[ -]only|manifest/i.test(reason)) return repairHint(dataDir);
  return null;
}

/** Describes the repair of damaged files. */
export function repairHint(dataDir: string): string {
  return `repair a copy of ${dataDir}/appendonlydir with \`redis-check-aof --fix appendonly.aof.manifest\`, or put a backup in its place (docs/redis.md, "Damaged files")`;
}
