import { existsSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Makes a folder for this user alone, with those above it, where there is none. Node's own `recursive` never ends where a
 * folder exists but takes none, as in `/proc`.
 */
export async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    if (code === 'EEXIST' && (await stat(folder)).isDirectory()) return;
    if (code !== 'ENOENT' || existsSync(dirname(folder))) throw error;
    await makeFolder(dirname(folder));
    await makeFolder(folder);
  }
}
