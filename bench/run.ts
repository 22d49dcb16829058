import { readdir } from 'node:fs/promises';
import { z } from 'zod';

/** A benchmark is a file beside this one that exports `run`, which prints its table and resolves with the exit code. */
const BENCHMARK = z.object({
  run: z.custom<(args: string[]) => Promise<number>>((run) => typeof run === 'function'),
});

const files = await readdir(import.meta.dirname);
const names = files
  .filter((file) => file.endsWith('.ts') && file !== 'run.ts')
  .map((file) => file.slice(0, -'.ts'.length))
  .sort();

const [name = '', ...args] = process.argv.slice(2);
if (names.includes(name)) {
  process.exitCode = await BENCHMARK.parse(await import(`./${name}.ts`)).run(args);
} else {
  const found = name === '' ? 'no name' : JSON.stringify(name);
  console.error(`found ${found}, expected: npm run bench -- ${names.join('|')}`);
  process.exitCode = 1;
}
