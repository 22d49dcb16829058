import { open, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { JSON_TEXT } from './stored.ts';

/** The folder in `dataDir` that only has the files of Redis. */
export const REDIS_FOLDER = 'appendonlydir';

/** The file in it that names the others; Redis reads no part that it does not name. */
const MANIFEST = 'appendonly.aof.manifest';

const PART = /^appendonly\.aof\.(\d+)\.(base|incr)\.(?:rdb|aof)$/;

/** The file in `dataDir` with this daemon's record of the append-only file. */
const RECORD_NAME = 'redis-written.json';

/** A base, which is written once, or the writes since; Redis appends to the newest. `isNamed`: the manifest names it. */
export type AppendOnlyPart = {
  name: string;
  sequence: number;
  kind: 'base' | 'incr';
  bytes: number;
  changedAtMs: number;
  isNamed: boolean;
};

/** The append-only file of a folder; without parts where Redis has never run. */
export type AppendOnly = { hasManifest: boolean; parts: readonly AppendOnlyPart[] };

const TRUNCATION = z.object({
  file: z.string(),
  bytes: z.int().positive(),
  lastWriteMs: z.int().nullable(),
  changedAtMs: z.int(),
});

/**
 * A loss at the end of the append-only file, or before a gap in it, found at a start. `bytes`: at least how many; `lastWriteMs`: the second of the newest
 * write that remains before the loss, null where none is known; `changedAtMs`: the last change of the file before the start, which no lost
 * write is later than.
 */
export type Truncation = z.infer<typeof TRUNCATION>;

const RECORD = z.object({
  file: z.string(),
  bytes: z.int().nonnegative(),
  unreported: z.array(TRUNCATION),
});

/** The newest part's last measured size, which shows a cut between two commands; `unreported`: not yet in an operator event. */
export type WriteRecord = z.infer<typeof RECORD>;

export async function readAppendOnly(dataDir: string): Promise<AppendOnly> {
  const folder = join(dataDir, REDIS_FOLDER);
  const names = (await unlessMissing(readdir(folder))) ?? [];
  const manifest = await unlessMissing(readFile(join(folder, MANIFEST), 'utf8'));
  const named = new Set(
    [...(manifest ?? '').matchAll(/^file (\S+) seq \d+ type [bi]\b/gm)].map(([, name]) => name),
  );
  const parts = await Promise.all(
    names.map(async (name): Promise<AppendOnlyPart | null> => {
      const match = PART.exec(name);
      // Redis itself removes the parts that a rewrite has replaced.
      const found = match === null ? null : await unlessMissing(stat(join(folder, name)));
      if (match === null || found === null) return null;
      const kind = match[2] === 'base' ? 'base' : 'incr';
      const { size, mtimeMs } = found;
      return {
        name,
        sequence: Number(match[1]),
        kind,
        bytes: size,
        changedAtMs: Math.floor(mtimeMs),
        isNamed: named.has(name),
      };
    }),
  );
  return { hasManifest: manifest !== null, parts: parts.filter((part) => part !== null) };
}

/** Returns the files with writes that Redis reads, oldest first. */
export function writesOf({ parts }: AppendOnly): AppendOnlyPart[] {
  const writes = parts.filter(({ kind, isNamed }) => kind === 'incr' && isNamed);
  return writes.toSorted((one, other) => one.sequence - other.sequence);
}

/** Returns the part that Redis appends to; null where there is none. */
export function newestPart(files: AppendOnly): AppendOnlyPart | null {
  return writesOf(files).at(-1) ?? null;
}

/**
 * Returns the damage with which Redis would start without the data: parts that the manifest does not name, or a base without
 * content. Null where there is none. Redis refuses all other damage. A crash can leave an empty part, or a base that the
 * manifest does not name yet; neither has an acknowledged write.
 */
export function silentLoss(files: AppendOnly): string | null {
  const { hasManifest, parts } = files;
  const emptied = parts.find(({ kind, isNamed, bytes }) => kind === 'base' && isNamed && bytes === 0);
  if (emptied !== undefined) return `found ${emptied.name} empty, expected the state that it began with`;
  const newest = newestPart(files)?.sequence ?? 0;
  const lost = parts.filter(
    ({ kind, sequence, bytes }) =>
      (kind === 'incr' && sequence > newest && bytes > 0) || (!hasManifest && sequence > 1),
  );
  if (lost.length === 0) return null;
  const names = lost.map(({ name }) => name).join(', ');
  return hasManifest
    ? `found ${names} with data, expected ${MANIFEST} to name it`
    : `found ${names} with data but no ${MANIFEST}, expected the file that names them`;
}

/**
 * Returns the loss of the newest part at a start; null for none. It compares the sizes before and after, or the record where a
 * cut was made while no server ran. Redis may have appended before the size was read: where its output names the offset of the
 * cut, that counts.
 */
export async function findTruncation(
  dataDir: string,
  { before, record, output }: { before: AppendOnlyPart; record: WriteRecord | null; output: string },
): Promise<Truncation | null> {
  const path = join(dataDir, REDIS_FOLDER, before.name);
  const offset = /truncat\w* the AOF\b.*\boffset (\d+)/i.exec(output)?.[1];
  // A rewrite has removed the part: Redis had read it whole, or had logged its cut.
  const after = (await unlessMissing(stat(path)))?.size ?? before.bytes;
  const left = Math.min(before.bytes, offset === undefined ? after : Number(offset));
  const written = Math.max(before.bytes, record?.file === before.name ? record.bytes : 0);
  if (left >= written) return null;
  return {
    file: before.name,
    bytes: written - left,
    lastWriteMs: await lastWriteMs(path, left),
    changedAtMs: before.changedAtMs,
  };
}

/** Reads the record; null where no readable one exists. */
export async function readRecord(dataDir: string): Promise<WriteRecord | null> {
  const text = await readFile(join(dataDir, RECORD_NAME), 'utf8').catch(() => '');
  return JSON_TEXT.pipe(RECORD).safeParse(text).data ?? null;
}

/** Replaces the record in one step. */
export async function writeRecord(dataDir: string, record: WriteRecord): Promise<void> {
  const file = join(dataDir, RECORD_NAME);
  await writeFile(`${file}.new`, `${JSON.stringify(record)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

const CHUNK_BYTES = 1_048_576;

/** A line that Redis writes before the first write of each second. The line before a value like it has the value's length. */
const TIMESTAMP = /(\$\d+)?\r\n#TS:(\d{1,11})(?=\r\n)/g;

/** Chunks overlap by more than such a line. A line within `EDGE_BYTES` of a chunk's begin is read whole in the other. */
const OVERLAP_BYTES = 64;
const EDGE_BYTES = 16;

/** Returns the time of the newest write before an offset of a part, ms; null where the part has no such time. */
export async function lastWriteMs(path: string, offset: number): Promise<number | null> {
  const file = await unlessMissing(open(path));
  if (file === null) return null;
  try {
    let end = offset;
    while (end > 0) {
      const start = Math.max(0, end - CHUNK_BYTES);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(end - start), 0, end - start, start);
      const text = `${start === 0 ? '\r\n' : ''}${buffer.toString('latin1', 0, bytesRead)}`;
      const newest = [...text.matchAll(TIMESTAMP)].findLast(
        ({ index, 1: length }) => length === undefined && (start === 0 || index >= EDGE_BYTES),
      );
      if (newest !== undefined) return Number(newest[2]) * 1_000;
      end = start === 0 ? 0 : start + OVERLAP_BYTES;
    }
    return null;
  } finally {
    await file.close();
  }
}

async function unlessMissing<T>(work: Promise<T>): Promise<T | null> {
  return work.catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  });
}
