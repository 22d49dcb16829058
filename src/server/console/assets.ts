import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';

/** A file of the console as it is served. */
export type Asset = { body: Buffer; type: string; etag: string };

const FOLDER = join(import.meta.dirname, '../../console');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** The files of the console by name, and `htm.js`: the one library that they import, in one file. */
export function readAssets(): ReadonlyMap<string, Asset> {
  const own = readdirSync(FOLDER).filter((name) => TYPES[extname(name)] !== undefined);
  const { resolve } = createRequire(import.meta.url);
  // Found by its folder: for `require`, the package names a file that it does not have.
  const library = join(dirname(resolve('htm')), '../preact/standalone.module.js');
  return new Map([
    ...own.map((name) => [name, assetOf(join(FOLDER, name), name)] as const),
    ['htm.js', assetOf(library, 'htm.js')],
  ]);
}

function assetOf(path: string, name: string): Asset {
  const body = readFileSync(path);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { body, type: TYPES[extname(name)] ?? '', etag };
}
