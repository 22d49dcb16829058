import {
  type FileHandle,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { codeOf } from '../errors.ts';
import { type Cut, findCuts } from './append-only-scan.ts';
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
 * A loss at the end of the append-only file, or before a gap in it, found at a start. `bytes`: at least how many;
 * `lastWriteMs`: the second of the newest write that remains before the loss, null where none is known; `changedAtMs`: the
 * last change of the file before the start, which no lost write is later than.
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
function writesOf({ parts }: AppendOnly): AppendOnlyPart[] {
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
async function lastWriteMs(path: string, offset: number): Promise<number | null> {
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
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  });
}

/*
 * Gaps in the append-only file. When the disk is full, a redis-server (7.0 to 8) cuts off a part of a write that it could not
 * finish, but goes on behind that part: it opens the file that a rewrite begins without O_APPEND. NUL bytes are between two
 * complete commands then, and nothing is lost as long as the server runs, or as the gap is removed. At the next start Redis
 * would refuse the file. When the disk is full a second time, the server cuts as many bytes too many as the first gap has: the
 * last commands before the second gap are lost, and the last one that remains may be incomplete. Redis would take the gap and
 * what follows as its value, and cut off all of it where the file ends within that.
 *
 * A second cut that ends within the first gap leaves no trace in the file. The epoch finds it, by what each process has seen.
 */

/** The gaps of one part of the append-only file. `lost`: writes before one of them that are lost; null for none. */
export type RemovedGaps = { file: string; gaps: number; bytes: number; lost: Truncation | null };

/** Redis removes files with such names too. */
const REPAIRED_NAME = 'temp-repaired.aof';

/**
 * Removes the gaps from all files with writes, while no server runs, and returns them. The lost writes are in the record
 * before a part is replaced: a crash reports them twice rather than never. `unreported`: those that are in the record already.
 * No copy of the damaged part remains, as it may be large, and the disk was full. Other damage is left to Redis, which refuses
 * it.
 */
export async function removeGaps(
  dataDir: string,
  { files, unreported }: { files: AppendOnly; unreported: readonly Truncation[] },
): Promise<RemovedGaps[]> {
  const repaired = join(dataDir, REDIS_FOLDER, REPAIRED_NAME);
  const removed: RemovedGaps[] = [];
  const losses = [...unreported];
  for (const part of writesOf(files)) {
    const path = join(dataDir, REDIS_FOLDER, part.name);
    const cuts = await repair({ path, repaired, part });
    if (cuts.length === 0) continue;
    const lost = await lossOf(path, { part, cuts });
    losses.push(...lost);
    await adjustRecord(dataDir, { part, cuts, unreported: losses });
    await rename(repaired, path);
    await syncFolder(join(dataDir, REDIS_FOLDER));
    const bytes = cuts.reduce((sum, { zeros }) => sum + zeros, 0);
    removed.push({ file: part.name, gaps: cuts.length, bytes, lost: lost[0] ?? null });
  }
  return removed;
}

/** Writes a part without its gaps to `repaired`, and returns the cuts; an empty list, and no file, where nothing can be mended. */
async function repair({
  path,
  repaired,
  part,
}: {
  path: string;
  repaired: string;
  part: AppendOnlyPart;
}): Promise<readonly Cut[]> {
  const file = await open(path);
  try {
    const cuts = (await findCuts(file, part.bytes)) ?? [];
    if (cuts.length === 0) return [];
    const copy = await open(repaired, 'w', 0o600);
    try {
      let at = 0;
      for (const { from, to } of cuts) {
        await copyRange(file, copy, { from: at, to: from });
        at = to;
      }
      await copyRange(file, copy, { from: at, to: part.bytes });
      await copy.sync();
    } catch (error) {
      // On a full disk others need the space.
      await rm(repaired, { force: true });
      throw error;
    } finally {
      await copy.close();
    }
    // The time of the newest write, which a later loss is dated by.
    await utimes(repaired, part.changedAtMs / 1_000, part.changedAtMs / 1_000);
    return cuts;
  } finally {
    await file.close();
  }
}

const COPY_BYTES = 1_048_576;

async function copyRange(
  file: FileHandle,
  copy: FileHandle,
  { from, to }: { from: number; to: number },
): Promise<void> {
  const buffer = Buffer.alloc(Math.min(COPY_BYTES, to - from));
  let at = from;
  while (at < to) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, to - at), at);
    if (bytesRead === 0) throw new Error(`found ${at} bytes in the file, expected ${to}`);
    await copy.writeFile(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
}

/** Returns the loss of a part, in a list; an empty one where only gaps are removed. */
async function lossOf(
  path: string,
  { part, cuts }: { part: AppendOnlyPart; cuts: readonly Cut[] },
): Promise<Truncation[]> {
  const lossy = cuts.filter(({ from, to, zeros }) => to - from > zeros);
  const [first] = lossy;
  if (first === undefined) return [];
  return [
    {
      file: part.name,
      bytes: lossy.reduce((sum, { from, to, zeros }) => sum + to - from - zeros, 0),
      lastWriteMs: await lastWriteMs(path, first.from),
      changedAtMs: part.changedAtMs,
    },
  ];
}

/** Takes the cuts off the recorded size of the part: without that, the next comparison would find them lost. */
async function adjustRecord(
  dataDir: string,
  {
    part,
    cuts,
    unreported,
  }: { part: AppendOnlyPart; cuts: readonly Cut[]; unreported: readonly Truncation[] },
): Promise<void> {
  const record = await readRecord(dataDir);
  const { file, bytes } = record ?? { file: part.name, bytes: 0 };
  const cutBytes = cuts.reduce((sum, { from, to }) => sum + Math.max(0, Math.min(bytes, to) - from), 0);
  const isOfPart = file === part.name;
  await writeRecord(dataDir, {
    file,
    bytes: isOfPart ? bytes - cutBytes : bytes,
    unreported: [...unreported],
  });
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
