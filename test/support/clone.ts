import { cp, mkdir, readdir, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');

const PARTS = [
  ...['bin', 'config', 'consumer', 'docs', 'examples', 'packaging', 'scripts', 'src', 'sandbox', 'demo'],
  'intentwatch',
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'README.md', 'LICENSE', 'CHANGELOG.md'],
];

/**
 * Makes a clone of this repository, as it is on disk, in an empty folder. Acts of npm scripts on it stay invisible to the
 * tests that run beside it. Installed packages are links, one for each entry: an npm that finds them out of date removes
 * only the links.
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
