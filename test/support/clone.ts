import { cp, mkdir, readdir, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');

/** What starting and packing need of a clone. */
const PARTS = [
  ...['bin', 'config', 'consumer', 'docs', 'examples', 'packaging', 'scripts', 'src', 'sandbox', 'demo'],
  'intentwatch',
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'README.md', 'LICENSE', 'CHANGELOG.md'],
];

/**
 * Makes a clone of this repository, as it is on disk, in an empty folder. What npm scripts do to it the tests that run
 * beside never see: also what is installed is only pointed at, entry by entry, so that an npm that finds it out of date
 * takes away the pointers.
 */
export async function makeClone(folder: string): Promise<void> {
  for (const part of PARTS) await cp(join(ROOT, part), join(folder, part), { recursive: true });
  const modules = join(ROOT, 'node_modules');
  await mkdir(join(folder, 'node_modules'));
  for (const entry of await readdir(modules, { withFileTypes: true })) {
    const [from, to] = [join(modules, entry.name), join(folder, 'node_modules', entry.name)];
    if (entry.isFile()) await cp(from, to);
    else if (entry.name !== '.cache') await symlink(from, to);
  }
}
