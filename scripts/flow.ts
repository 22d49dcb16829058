import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, normalize, relative, resolve } from 'node:path';

/** Layers of `src`, the lowest first: each imports only earlier ones. Entries of one layer do not import each other. */
export const FLOW: readonly (readonly string[])[] = [
  ['domain'],
  ['errors.ts'],
  ['event-loop.ts', 'files.ts', 'log.ts', 'secret.ts', 'v8-flags.ts', 'version.ts', 'with-timeout.ts'],
  ['duty.ts', 'redact.ts', 'thread.ts', 'thread-program.ts'],
  ['network'],
  ['config'],
  ['upstream', 'store'],
  ['chains'],
  ['signals.ts'],
  ['pollers', 'notifiers'],
  ['queues'],
  ['books'],
  ['operations'],
  ['metrics', 'server'],
  ['console', 'daemon'],
  ['exit.ts'],
  ['client'],
  ['commands'],
  ['main.ts'],
];

/** An import against the flow, with its file. */
export type Uphill = { from: string; to: string; reason: string };

/** Finds imports against the flow in source files, given as their path within `src` -> their text. */
export function findUphill(sources: ReadonlyMap<string, string>): Uphill[] {
  return [...sources].flatMap(([from, text]) =>
    [...text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].flatMap(([, target = '']) => {
      const to = normalize(join(dirname(from), target));
      const reason = to.startsWith('..') ? wrongOutside(from, to) : wrongWith(partOf(from), partOf(to));
      return reason === null ? [] : [{ from, to, reason }];
    }),
  );
}

function partOf(path: string): string {
  return path.split('/')[0] ?? '';
}

/** The daemon may use only the commands that start the sandbox and the demo. */
function wrongOutside(from: string, to: string): string | null {
  const isStart = from === 'commands/commands.ts' && /^\.\.\/(sandbox|demo)\/command\.ts$/.test(to);
  return isStart
    ? null
    : 'src imports nothing outside src but, in commands/commands.ts, the sandbox and the demo';
}

function wrongWith(from: string, to: string): string | null {
  if (from === to) return null;
  const [at, target] = [from, to].map((part) => FLOW.findIndex((level) => level.includes(part)));
  if (at === -1 || target === -1)
    return `${at === -1 ? from : to} has no place in the flow of scripts/flow.ts`;
  if (at === undefined || target === undefined || target < at) return null;
  return `${from} imports only files before it in the flow of scripts/flow.ts, and ${to} does not`;
}

/** Finds imports of `src` against the flow, a line each; empty for none. */
export async function importsAgainstTheFlow(root: string): Promise<string> {
  const folder = resolve(root, 'src');
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.ts'));
  const sources = new Map<string, string>();
  for (const { parentPath, name } of files) {
    const path = resolve(parentPath, name);
    sources.set(relative(folder, path), await readFile(path, 'utf8'));
  }
  return findUphill(sources)
    .map(({ from, to, reason }) => `src/${from} imports src/${to}: ${reason}`)
    .join('\n');
}
