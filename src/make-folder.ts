import { existsSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Makes a folder for this user alone, with those above it, where there is none. Node's own `recursive` never ends where a
 * folder exists but takes none, as in `/proc`.
 */
export async function makeFolder(folder: string): Promise<void> {
  const parent = dirname(folder);
  // From the top: of two who make the same folders at once, each finds those above its own.
  if (!existsSync(parent)) await makeFolder(parent);
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    const exists = error instanceof Error && 'code' in error && error.code === 'EEXIST';
    if (!exists || !(await stat(folder)).isDirectory()) throw error;
  }
}
