import { readdir, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { printedTargets } from './detection/targets.ts';

/** A benchmark is a file beside this one that exports `run`, which prints its table and resolves with the exit code. */
const BENCHMARK = z.object({
  run: z.custom<(args: string[]) => Promise<number>>((run) => typeof run === 'function'),
});

/** Flag of every benchmark: the file for its figures, as JSON. */
const JSON_FLAG = '--json=';

const files = await readdir(import.meta.dirname);
const names = files
  .filter((file) => file.endsWith('.ts') && file !== 'run.ts')
  .map((file) => file.slice(0, -'.ts'.length))
  .sort();

const [name = '', ...args] = process.argv.slice(2);
if (names.includes(name)) {
  const file = args.find((arg) => arg.startsWith(JSON_FLAG))?.slice(JSON_FLAG.length);
  const { run } = BENCHMARK.parse(await import(`./${name}.ts`));
  process.exitCode = await run(args.filter((arg) => !arg.startsWith(JSON_FLAG))).catch((error: unknown) => {
    // Of `parseArgs`.
    if (!(error instanceof TypeError && 'code' in error)) throw error;
    console.error(error.message);
    return 1;
  });
  if (file !== undefined) await writeFile(file, `${JSON.stringify(printedTargets(), null, 2)}\n`);
} else {
  const found = name === '' ? 'no name' : JSON.stringify(name);
  console.error(`found ${found}, expected: npm run bench -- ${names.join('|')}`);
  process.exitCode = 1;
}
