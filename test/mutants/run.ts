import { cp, glob, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { Program } from '../support/program.ts';
import { mapTests } from './mapped-tests.ts';
import { drawMutants, type Mutant, mutantsOf } from './mutate.ts';

// Breaks one line at a time in a copy of the program, and runs the tests that are mapped to its file. Prints a line of JSON
// for each, and the share that a test caught. First it runs all those tests without damage: one that fails proves nothing.

const SOURCES = ['src/domain/**/*.ts', 'src/queues/**/*.ts', 'src/store/commands/**/*.lua'];

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '100' },
    files: { type: 'string', default: '10' },
    seconds: { type: 'string', default: '120' },
    from: { type: 'string', default: '1' },
    folder: { type: 'string', default: join(import.meta.dirname, '../..') },
    mutants: { type: 'string' },
    list: { type: 'boolean', default: false },
  },
});
const NUMBER = z.coerce.number().int().min(1);
const folder = resolve(values.folder);

/** Mutants of a file of lines of JSON, found again in the sources by their text; those of lines that occur once. */
async function mutantsIn(file: string, all: readonly Mutant[]): Promise<Mutant[]> {
  const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line.startsWith('{'));
  return lines.flatMap((line) => {
    const wanted = z.object({ before: z.string(), after: z.string() }).parse(JSON.parse(line));
    const found = all.filter(
      ({ before, after }) => before.trim() === wanted.before.trim() && after.trim() === wanted.after.trim(),
    );
    return found.length === 1 ? found : [];
  });
}

async function allMutants(): Promise<Mutant[]> {
  const all: Mutant[] = [];
  const files = await Array.fromAsync(glob(SOURCES, { cwd: folder }));
  for (const file of files.toSorted())
    all.push(...mutantsOf(file, await readFile(join(folder, file), 'utf8')));
  return all;
}

/** Runs test files in a copy. `passed`, `failed`, or `hung` after the limit, which is a catch as well. */
async function run(
  copy: string,
  tests: readonly string[],
  seconds: string,
): Promise<'passed' | 'failed' | 'hung'> {
  const vitest = join(copy, 'node_modules/vitest/vitest.mjs');
  const started = await Program.run(
    [
      'timeout',
      '--kill-after=5',
      seconds,
      process.execPath,
      vitest,
      'run',
      '--bail=1',
      '--root',
      copy,
      ...tests,
    ],
    { HOME: process.env.HOME ?? '/' },
  );
  const { code } = await started.ending();
  if (code === 124 || code === 137) return 'hung';
  return code === 0 ? 'passed' : 'failed';
}

const all = await allMutants();
const drawn =
  values.mutants === undefined
    ? drawMutants(all, NUMBER.parse(values.seed), NUMBER.parse(values.count))
    : await mutantsIn(values.mutants, all);
const testsOf = await mapTests(folder);
const copy = await mkdtemp(join(tmpdir(), 'intentwatch-mutants-'));
let caught = 0;
try {
  await cp(folder, copy, {
    recursive: true,
    filter: (path) => !/\/(?:node_modules|\.git|data)$/.test(path),
  });
  await symlink(join(folder, 'node_modules'), join(copy, 'node_modules'));
  const some = drawn.slice(NUMBER.parse(values.from) - 1);
  const mapped = some.map(({ file }) => testsOf(file, NUMBER.parse(values.files)));
  if (!values.list && (await run(copy, [...new Set(mapped.flat())], '1800')) !== 'passed')
    throw new Error('a mapped test does not pass without damage');
  for (const [index, mutant] of some.entries()) {
    const tests = mapped[index] ?? [];
    if (values.list) {
      process.stdout.write(`${JSON.stringify({ ...mutant, tests })}\n`);
      continue;
    }
    const path = join(copy, mutant.file);
    const text = await readFile(path, 'utf8');
    const lines = text.split('\n');
    lines[mutant.line - 1] = mutant.after;
    await writeFile(path, lines.join('\n'));
    const fromMs = performance.now();
    const result = tests.length === 0 ? 'passed' : await run(copy, tests, values.seconds);
    await writeFile(path, text);
    if (result !== 'passed') caught += 1;
    const seconds = Math.round((performance.now() - fromMs) / 1_000);
    process.stdout.write(`${JSON.stringify({ ...mutant, result, seconds, tests: tests.length })}\n`);
  }
} finally {
  await rm(copy, { recursive: true, force: true, maxRetries: 5 });
}
process.stdout.write(`${caught} of ${drawn.length - NUMBER.parse(values.from) + 1} caught\n`);
