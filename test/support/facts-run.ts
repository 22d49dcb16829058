import { join } from 'node:path';
import { Program } from './program.ts';

const RUN = join(import.meta.dirname, '../chaos/facts.ts');

/** Runs `npm run facts` with one seed to its end: its exit code, and the end of its output. */
export async function factsRun(seed: number): Promise<{ code: number | null; output: string }> {
  const run = await Program.start(RUN, ['--seed', String(seed)]);
  const { code } = await run.ending();
  return { code, output: run.output() };
}
