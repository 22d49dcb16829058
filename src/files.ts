import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf } from './errors.ts';

/** Marker file in each folder that this program made. Later starts restrict the permissions of marked folders only. */
export const FOLDER_MARKER = '.intentwatch-folder';

const MARKER_TEXT =
  'Intentwatch made this folder. At each start it takes the rights of others on the folder and on its own files away.\n';

/** Makes missing folders for this user alone, with a marker. `mkdir` with `recursive` hangs in a folder such as `/proc`. */
export async function makeFolder(folder: string): Promise<void> {
  const parent = dirname(folder);
  // Parents come first: another process may make the same folders at the same time.
  if (!existsSync(parent)) await makeFolder(parent);
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    const exists = codeOf(error) === 'EEXIST';
    if (!exists || !(await stat(folder)).isDirectory()) throw error;
    return;
  }
  await writeFile(join(folder, FOLDER_MARKER), MARKER_TEXT, { mode: 0o600 });
}

/**
 * Makes a missing file, empty and for this user alone. SQLite would apply the umask of the process. An existing file is not
 * opened: closing it would release the locks that SQLite has on it in this process.
 */
export function makePrivateFile(file: string): void {
  try {
    closeSync(openSync(file, 'ax', 0o600));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/** A file that cannot be read whole: it is too large, or not a regular file. */
type Endless = { isFile: boolean; found: string; expected: string };

/** Explains why a path cannot be read whole; null where it can. A pipe or device could block its reader, and the exit. */
export function whyEndless(path: string, mostBytes: number): Endless | null {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined || stat.isDirectory()) return null;
  if (!stat.isFile()) return { isFile: false, found: 'a pipe or a device', expected: 'a file' };
  if (stat.size <= mostBytes) return null;
  return {
    isFile: true,
    found: `a file of ${stat.size} bytes`,
    expected: `one of at most ${mostBytes} bytes`,
  };
}

/** Size of a file in bytes; 0 where it is unknown. */
export function sizeOf(path: string): number {
  try {
    return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  } catch {
    return 0;
  }
}
