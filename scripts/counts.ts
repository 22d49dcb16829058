import { readFileSync, writeFileSync } from 'node:fs';
import { glob, readFile } from 'node:fs/promises';
import { basename, dirname, join, normalize, resolve } from 'node:path';
import { z } from 'zod';
import { filesOn, readFlows } from './architecture.ts';

const ROOT = resolve(import.meta.dirname, '..');
const CEILINGS = resolve(import.meta.dirname, 'ceilings.json');

/** Words of an earlier dialect of this project. Standard terms replace them; CONTRIBUTING.md has the table. */
const RETIRED_WORDS = `
  aside ask asked asking asks astray audience border draft entitled entitlement forget forgets forgotten handed hear heard
  hears keep keeps kept known look looked looks moment moments mornings parts reading readings room rooms root roots said
  say saying says sealing sighting sightings stand standing stands surface surfaces taken tell telling tells told torn
`
  .trim()
  .split(/\s+/);

/** A use of retired words that stays: the text that is not counted, in the files whose paths match `in` (null: in all). */
type Exception = { text: RegExp; in: RegExp | null; reason: string };

const EXCEPTIONS: readonly Exception[] = [
  { text: /^\|.*\|$/gm, in: /^CONTRIBUTING\.md$/, reason: 'the table of retired words' },
  {
    text: /^\* \[CHANGE\] .*$/gm,
    in: /^CHANGELOG\.md$/,
    reason: 'former names, beside those in their place',
  },
  { text: /.+/g, in: /^test\/unit\/counts\.test\.ts$/, reason: 'the test of the counts' },
  { text: /\bkeep-?alive|KeepAlive/gi, in: null, reason: 'connections that stay open, in HTTP and TCP' },
  { text: /\bdraft[ -](?:0?7|2020-12)\b/g, in: null, reason: 'versions of JSON Schema' },
  {
    text: /\b(?:has|have) taken over\b|\btaken_over\b|\bTaken over\b/g,
    in: null,
    reason: 'a process does the work of another',
  },
  {
    text: /\b(?:is|are|was|were|be|becomes?|became|been|being|not|newly|longer|where|nothing|something|stays?|as|only|well|already|it|to|,)[\s*/-]+known\b/gi,
    in: null,
    reason: 'the adjective behind its noun, in prose',
  },
  {
    text: /\bknown(?=[\s*]+(?!(?:and|or|in|of|then)\b)[a-z])/gi,
    in: null,
    reason: 'the adjective before its noun, in prose',
  },
  {
    text: /(?<![\w-])(?:[Pp]arts|PARTS)\b|\b(?:in|optional)-parts\b|\bformatToParts\b/g,
    in: null,
    reason:
      'pieces of a text, an amount or an installation, in prose and as a variable; an interface of Intl',
  },
  {
    text: /\bborder\b/g,
    in: /^src\/(?:console\/|books\/formats\/|notifiers\/email\/)/,
    reason: 'a property of CSS',
  },
  {
    text: /\b(?:is)?root\b|NonRoot|readOnlyRoot|\b(?:transactions|state|receipts)Root/gi,
    in: /^(?!src\/(?:domain|store|queues|operations|daemon)\/)/,
    reason: 'the folder of a repository or system, its first user, the top of a tree',
  },
  { text: /\bsquare[\s*]+root\b/g, in: null, reason: 'mathematics' },
  { text: /\b(?:is)?KnownEvent\b/g, in: null, reason: 'public names of the package intentwatch-consumer' },
  {
    text: /\breading (?:the append only file|offset)\b|\bReading the manifest file\b|\bfor reading: /g,
    in: /^test\//,
    reason: 'error messages of redis-server',
  },
];

/** The programs of this repository; a type name occurs once in each. */
const PROGRAMS = ['src', 'sandbox', 'demo', 'consumer/src'];

/** A file with fewer lines and a single importer belongs in that importer. */
const SMALL_LINES = 60;

/** A source file: its path from the root, and its text. */
export type Source = { path: string; text: string };

/** A count that only goes down: its name in `ceilings.json`, its measure, and its final value. */
export type Count = { name: string; of: (sources: readonly Source[]) => number; goal?: number };

/** The flows of `docs/architecture.md`, each with its final number of files. */
const FLOW_GOALS = {
  'Poll to webhook': 20,
  'A reload that adds a receiver': 10,
  'Verify and book': 12,
  'POST /subjects': 12,
};

export const COUNTS: readonly Count[] = [
  ...RETIRED_WORDS.map((word) => ({
    name: `word: ${word}`,
    of: (all: readonly Source[]) => wordCount(all, word),
  })),
  {
    name: 'doc comments that open with what, whether, how, where or who',
    of: (all) => matches(all.filter(isCode), /\/\*\*\s*(?:\*\s*)?(?:What|Whether|How|Where|Who)\b/g),
  },
  { name: 'type names that occur twice in a program', of: duplicateTypes },
  { name: 'types named …Parts', of: (all) => matches(all.filter(isDaemon), /\btype \w+Parts\b/g) },
  { name: 'uses of Pick and Omit', of: (all) => matches(all.filter(isDaemon), /\b(?:Pick|Omit)</g) },
  {
    name: 'arguments of scripts by position',
    of: (all) => matches(all.filter(isLua), /\b(?:KEYS|ARGV)\[|#ARGV\b(?!\.)|\(ARGV\b(?!\.)/g),
  },
  { name: 'files of src (TypeScript)', of: (all) => all.filter(isDaemon).filter(isTypeScript).length },
  {
    name: 'lines of src (TypeScript)',
    of: (all) =>
      sum(
        all
          .filter(isDaemon)
          .filter(isTypeScript)
          .map(({ text }) => linesOf(text)),
      ),
  },
  { name: 'small files with a single importer', of: smallFiles },
  {
    name: 'files of src over 400 lines',
    of: (all) => all.filter(isDaemon).filter(({ text }) => linesOf(text) > 400).length,
  },
  ...Object.entries(FLOW_GOALS).map(([title, goal]) => ({
    name: `files on the flow "${title}"`,
    of: (all: readonly Source[]) => filesOnFlow(all, title),
    goal,
  })),
];

function filesOnFlow(all: readonly Source[], title: string): number {
  const page = all.find(({ path }) => path === 'docs/architecture.md')?.text ?? '';
  const flow = readFlows(page).find((one) => one.title === title);
  return flow === undefined ? 0 : filesOn(flow);
}

function isDaemon({ path }: Source): boolean {
  return path.startsWith('src/');
}

function isTypeScript({ path }: Source): boolean {
  return path.endsWith('.ts');
}

function isLua({ path }: Source): boolean {
  return path.endsWith('.lua');
}

function isCode({ path }: Source): boolean {
  return /\.(?:ts|mjs|js)$/.test(path);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

function linesOf(text: string): number {
  return text.split('\n').length - 1;
}

function matches(sources: readonly Source[], pattern: RegExp): number {
  return sum(sources.map(({ text }) => text.match(pattern)?.length ?? 0));
}

const tallies = new WeakMap<readonly Source[], Map<string, number>>();

/** Number of occurrences of a word, in prose and as a part of a name. */
function wordCount(all: readonly Source[], word: string): number {
  const counted = tallies.get(all);
  if (counted !== undefined) return counted.get(word) ?? 0;
  const tally = new Map<string, number>();
  for (const source of all) {
    for (const [found] of withoutExceptions(source).matchAll(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g)) {
      const lower = found.toLowerCase();
      tally.set(lower, (tally.get(lower) ?? 0) + 1);
    }
  }
  tallies.set(all, tally);
  return tally.get(word) ?? 0;
}

function withoutExceptions({ path, text }: Source): string {
  return EXCEPTIONS.filter((one) => one.in === null || one.in.test(path)).reduce(
    (rest, one) => rest.replace(one.text, ''),
    text,
  );
}

function duplicateTypes(all: readonly Source[]): number {
  return sum(
    PROGRAMS.map((program) => {
      const seen = new Map<string, number>();
      for (const { text } of all.filter(
        ({ path }) => path.startsWith(`${program}/`) && path.endsWith('.ts'),
      )) {
        for (const [, name = ''] of text.matchAll(/^(?:export )?(?:type|interface|class) (\w+)/gm)) {
          seen.set(name, (seen.get(name) ?? 0) + 1);
        }
      }
      return [...seen.values()].filter((count) => count > 1).length;
    }),
  );
}

function smallFiles(all: readonly Source[]): number {
  const daemon = all.filter(isDaemon).filter(isTypeScript);
  const importers = new Map<string, number>();
  for (const { path, text } of daemon) {
    const targets = [...text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, target = '']) =>
      normalize(join(dirname(path), target)),
    );
    for (const target of new Set(targets)) importers.set(target, (importers.get(target) ?? 0) + 1);
  }
  return daemon.filter(({ path, text }) => linesOf(text) < SMALL_LINES && importers.get(path) === 1).length;
}

/** Reads every source file and page, except generated ones and the data of tests. */
export async function readSources(root = ROOT): Promise<Source[]> {
  const patterns = [
    '{src,sandbox,demo,consumer,test,bench,scripts,examples,config,packaging,docs}/**/*.{ts,lua,js,mjs,md,py,go,css,html,yaml,sql}',
    '*.md',
  ];
  const paths: string[] = [];
  for await (const path of glob(patterns, {
    cwd: root,
    exclude: (name) => /^(?:node_modules|dist)$/.test(basename(name)),
  })) {
    if (path !== 'scripts/counts.ts') paths.push(path);
  }
  const texts = await Promise.all(paths.sort().map((path) => readFile(join(root, path), 'utf8')));
  return paths
    .map((path, index) => ({ path, text: texts[index] ?? '' }))
    .filter(({ text }) => !text.startsWith('// Generated by '));
}

const ceilingsSchema = z.record(z.string(), z.int().nonnegative());

/** Counts above their ceilings, a line each; empty where none is. */
export function aboveCeilings(
  sources: readonly Source[],
  ceilings: Readonly<Record<string, number>>,
): string {
  return COUNTS.flatMap(({ name, of }) => {
    const found = of(sources);
    const most = ceilings[name];
    if (most === undefined) return [`${name}: found ${found}, and no ceiling in scripts/ceilings.json`];
    return found > most ? [`${name}: found ${found}, expected ${most} or fewer`] : [];
  }).join('\n');
}

/** Counts that have a goal, a line each. */
export async function countsWithGoals(): Promise<string> {
  const sources = await readSources();
  return COUNTS.flatMap(({ name, of, goal }) =>
    goal === undefined ? [] : [`        ${name}: ${of(sources)}, goal ${goal}`],
  ).join('\n');
}

/** Checks every count of this repository against `ceilings.json`. */
export async function countsAboveCeilings(): Promise<string> {
  return aboveCeilings(await readSources(), ceilingsSchema.parse(JSON.parse(readFileSync(CEILINGS, 'utf8'))));
}

// Typed by hand: lowers the ceilings to the present counts.
if (import.meta.main) {
  const sources = await readSources();
  const counts = Object.fromEntries(COUNTS.map(({ name, of }) => [name, of(sources)]));
  writeFileSync(CEILINGS, `${JSON.stringify(counts, null, 2)}\n`);
  for (const { name, goal } of COUNTS) {
    const aim = goal === undefined ? '' : `  (goal: ${goal})`;
    console.log(`${String(counts[name]).padStart(7)}  ${name}${aim}`);
  }
}
