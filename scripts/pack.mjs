// Makes a package's files in place of its TypeScript: JavaScript with types and source maps, in dist. `npm pack` runs it
// before it packs and removes dist afterwards; a clone runs its TypeScript directly and never reads dist.
//
//   node scripts/pack.mjs                      makes dist of the daemon
//   node scripts/pack.mjs consumer             makes consumer/dist, and puts the license beside it
//   node scripts/pack.mjs [consumer] --remove  removes it
//
// Plain JavaScript: the npm that packs may run on a Node that cannot read the rest.

import { spawnSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');

function compile(project) {
  const tsc = join(root, 'node_modules/.bin/tsc');
  const { status } = spawnSync(tsc, ['-p', join(root, project)], { stdio: 'inherit' });
  if (status !== 0) throw new Error(`tsc ended with ${status}, expected 0`);
}

function makeDaemon() {
  compile('scripts/tsconfig.pack.json');
  const dist = join(root, 'dist/src');
  // Files that are read at run time beside JavaScript: the scripts of Redis, and the files of the page.
  const commands = 'store/commands';
  cpSync(join(root, 'src', commands), join(dist, commands), {
    recursive: true,
    filter: (path) => !path.endsWith('.ts'),
  });
  cpSync(join(root, 'src/console'), join(dist, 'console'), {
    recursive: true,
    filter: (path) => !/\.(ts|json)$/.test(path),
  });
}

function makeConsumer() {
  compile('consumer/tsconfig.json');
  cpSync(join(root, 'LICENSE'), join(root, 'consumer/LICENSE'));
}

const ofConsumer = process.argv.includes('consumer');
const made = ofConsumer ? ['consumer/dist', 'consumer/LICENSE'] : ['dist'];
for (const path of made) rmSync(join(root, path), { recursive: true, force: true });
if (!process.argv.includes('--remove')) (ofConsumer ? makeConsumer : makeDaemon)();
