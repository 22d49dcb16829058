import { closeSync, existsSync, openSync } from 'node:fs';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

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
    const exists = error instanceof Error && 'code' in error && error.code === 'EEXIST';
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
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}
