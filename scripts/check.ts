import { spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { LONGEST_SUBJECT, longSubjects } from './commit-subjects.ts';
import { countsAboveCeilings, countsWithGoals } from './counts.ts';
import { importsAgainstTheFlow } from './flow.ts';

const root = resolve(import.meta.dirname, '..');

/** One check of `npm run check`: `run` returns the problems, or an empty string. */
type Check = { name: string; run: () => Promise<string> };

/** A place where pure code reads a clock or randomness: 1-based line and the found text. */
export type Impurity = { line: number; found: string };

const IMPURE = [
  /\bDate\s*\.\s*now\b/g,
  /\bnew\s+Date\b(?!\s*\(\s*[^\s)])/g,
  /(?<!\bnew\s+)\bDate\s*\(/g,
  /\bMath\s*\.\s*random\b/g,
  // An alias of either hides later calls.
  /=\s*(?:Date|Math)\s*(?=[;,)\n]|$)/g,
];

/** Replaces comments by blanks of the same length, so that lines retain their numbers; strings stay unchanged. */
function withoutComments(source: string): string {
  const parts = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
  return source.replace(parts, (part) => (part.startsWith('/') ? part.replace(/[^\n]/g, ' ') : part));
}

/** Finds impure clocks and randomness. Biome forbids whole globals only; `new Date(nowMs)` and `Math.floor` are pure. */
export function findImpurities(source: string): Impurity[] {
  const code = withoutComments(source);
  const found = IMPURE.flatMap((pattern) =>
    [...code.matchAll(pattern)].map((match) => ({
      line: code.slice(0, match.index).split('\n').length,
      found: match[0].trim(),
    })),
  );
  return found.sort((a, b) => a.line - b.line);
}

/** Runs an installed tool from the repository's root; returns its whole output when it fails. */
function tool(command: string, args: string[]): Promise<string> {
  return new Promise((done, reject) => {
    const child = spawn(resolve(root, 'node_modules/.bin', command), args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.once('error', reject);
    child.once('close', (code, signal) => {
      const output = Buffer.concat(chunks).toString().trimEnd();
      done(
        code === 0
          ? ''
          : output || `${command} ended with ${signal ?? `exit code ${code}`} and printed nothing`,
      );
    });
  });
}

async function impuritiesOfDomain(): Promise<string> {
  const folder = resolve(root, 'src/domain');
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.ts'));
  if (files.length === 0)
    return `${relative(root, folder)} has no TypeScript files; expected the domain there`;
  const lines: string[] = [];
  for (const entry of files) {
    const path = resolve(entry.parentPath, entry.name);
    for (const { line, found } of findImpurities(await readFile(path, 'utf8'))) {
      lines.push(
        `${relative(root, path)}:${line} ${found}: src/domain reads no clock and no randomness; take it as a parameter`,
      );
    }
  }
  return lines.join('\n');
}

async function outdatedFiles(): Promise<string> {
  const { generatedFiles } = await import('./generate.ts');
  const lines: string[] = [];
  for (const { path, name, content } of await generatedFiles()) {
    const onDisk = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    if (onDisk === null) lines.push(`${name} is missing`);
    else if (onDisk !== content) lines.push(`${name} is out of date`);
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\ntype: npm run generate`;
}

const CHECKS: Check[] = [
  { name: 'types (tsc)', run: () => tool('tsc', ['--noEmit', '-p', 'tsconfig.json']) },
  { name: 'types of the console (tsc)', run: () => tool('tsc', ['--noEmit', '-p', 'src/console']) },
  {
    name: 'lint, format and dependency rules (biome)',
    run: () => tool('biome', ['check', '--error-on-warnings', '--max-diagnostics=50', '.']),
  },
  { name: 'imports go with the flow', run: () => importsAgainstTheFlow(root) },
  { name: 'domain reads no clock and no randomness', run: impuritiesOfDomain },
  { name: 'unused files, exports and dependencies (knip)', run: () => tool('knip', ['--no-progress']) },
  { name: 'generated files are current', run: outdatedFiles },
  { name: 'retired words and sizes stay below their ceilings', run: countsAboveCeilings },
  {
    name: 'subjects of commits are short',
    run: async () =>
      (await longSubjects(root)).map((line) => `over ${LONGEST_SUBJECT} characters: ${line}`).join('\n'),
  },
];

async function runChecks(): Promise<boolean> {
  let passed = true;
  for (const { name, run } of CHECKS) {
    const problem = await run().catch((error: unknown) =>
      error instanceof Error ? (error.stack ?? error.message) : String(error),
    );
    console.log(problem === '' ? `ok      ${name}` : `failed  ${name}\n${problem}\n`);
    if (problem !== '') passed = false;
  }
  console.log(`goals\n${await countsWithGoals()}`);
  return passed;
}

if (import.meta.main && !(await runChecks())) process.exitCode = 1;
