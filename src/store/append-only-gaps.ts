import { type FileHandle, open, rename, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type AppendOnly,
  type AppendOnlyPart,
  lastWriteMs,
  REDIS_FOLDER,
  readRecord,
  type Truncation,
  writeRecord,
  writesOf,
} from './append-only.ts';
import { type Cut, findCuts } from './append-only-scan.ts';

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
 * Removes the gaps from all files with writes, while no server runs, and returns them. The lost writes are in the record before a part is
 * replaced: a crash reports them twice rather than never. `unreported`: those that are in the record already. No copy of the
 * damaged part remains, as it may be large, and the disk was full. Other damage is left to Redis, which refuses it.
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
