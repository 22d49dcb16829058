// Makes what the package has in place of src: JavaScript with types and source maps, in dist. `npm pack` runs it before
// it packs and takes dist away afterwards; a clone runs its TypeScript as it is and never looks there.
//
//   node scripts/pack.mjs            makes dist
//   node scripts/pack.mjs --remove   takes it away
//
// Plain JavaScript: the npm that packs may run on a Node that cannot read the rest.

import { spawnSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const dist = join(root, 'dist');

function compile() {
  const tsc = join(root, 'node_modules/.bin/tsc');
  const { status } = spawnSync(tsc, ['-p', join(root, 'scripts/tsconfig.pack.json')], { stdio: 'inherit' });
  if (status !== 0) throw new Error(`tsc ended with ${status}, expected 0`);
  // Its receiver and its mail server are development dependencies: the demo is for a clone.
  rmSync(join(dist, 'demo'), { recursive: true });
}

/** What is read at run time beside JavaScript that is compiled: the scripts that Redis runs, and the page's files. */
function copyScripts() {
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

rmSync(dist, { recursive: true, force: true });
if (!process.argv.includes('--remove')) {
  compile();
  copyScripts();
}
