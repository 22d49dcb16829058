import { readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';

const IMPORT = /(?:from|import)\s*\(?\s*'(\.[^']+)'/g;
const INCLUDE = /^-- @include ([a-z-]+)$/gm;
const COMMANDS = 'src/store/commands';

/** Finds the test files for a source file. */
export type MappedTests = (file: string, most: number) => string[];

/** Imports by which a test counts as nearer where its name shares a word with the file. */
const BONUS = 3;

/**
 * Maps source files to the tests of `npm test` by names and imports: the nearest first, and of equally near ones those that
 * import least. A script of Redis has the tests of the modules that run it, an include those of its scripts.
 */
export async function mapTests(folder: string): Promise<MappedTests> {
  const texts = new Map<string, string>();
  for await (const path of glob(['src/**/*.{ts,lua}', 'test/**/*.ts', 'sandbox/**/*.ts', 'demo/**/*.ts'], {
    cwd: folder,
  }))
    texts.set(path, readFileSync(join(folder, path), 'utf8'));
  const imports = new Map([...texts].map(([path, text]) => [path, importsOf(path, text)]));
  const tests = [...texts.keys()].filter((path) => /^test\/(?!long\/).*\.test\.ts$/.test(path));
  const distances = new Map(tests.map((test) => [test, distancesFrom(test, imports)]));

  const ownersOf = (file: string): string[] => {
    if (!file.endsWith('.lua')) return [file];
    if (file.includes('/include/')) {
      const name = file.replace(/.*\/(.*)\.lua$/, '$1');
      return [...texts]
        .filter(([path, text]) => path.endsWith('.lua') && includesOf(text).includes(name))
        .flatMap(([path]) => ownersOf(path));
    }
    const camel = file
      .slice(COMMANDS.length + 1)
      .replace(/-\d+\.lua$/, '')
      .replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    return [...texts]
      .filter(([path, text]) => path.startsWith('src/') && new RegExp(`\\bscripts\\.${camel}\\b`).test(text))
      .map(([path]) => path);
  };

  return (file, most) => {
    const owners = ownersOf(file);
    const words = wordsOf(file);
    return tests
      .map((test) => {
        const from = distances.get(test);
        const nearest = Math.min(...owners.map((owner) => from?.get(owner) ?? Number.POSITIVE_INFINITY));
        const isNamed = wordsOf(test).some((word) => words.includes(word));
        return { test, distance: nearest - (isNamed ? BONUS : 0), size: from?.size ?? 0 };
      })
      .filter(({ distance }) => Number.isFinite(distance))
      .sort((a, b) => a.distance - b.distance || a.size - b.size)
      .slice(0, most)
      .map(({ test }) => test);
  };
}

/** Words of a file's name, without a plural. */
function wordsOf(path: string): string[] {
  const [name = ''] = path.split('/').at(-1)?.split('.') ?? [];
  return name
    .split('-')
    .map((word) => word.replace(/(?:ies|y|s)$/, ''))
    .filter((word) => word.length > 3);
}

function importsOf(path: string, text: string): string[] {
  return [...text.matchAll(IMPORT)].map(([, target = '']) => normalize(join(dirname(path), target)));
}

function includesOf(text: string): string[] {
  return [...text.matchAll(INCLUDE)].map(([, name = '']) => name);
}

/** Number of imports from a file to each file that it needs. */
function distancesFrom(start: string, imports: ReadonlyMap<string, readonly string[]>): Map<string, number> {
  const distances = new Map([[start, 0]]);
  const queue = [start];
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    for (const next of imports.get(path) ?? []) {
      if (distances.has(next)) continue;
      distances.set(next, (distances.get(path) ?? 0) + 1);
      queue.push(next);
    }
  }
  return distances;
}
