import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { resultsSchema } from '../../bench/compare/results.ts';
import { Program } from '../support/program.ts';

const RUN = resolve(import.meta.dirname, '../../bench/run.ts');

/** Some of the benchmarks, in the smallest sizes: no figure of these is worth anything. */
const ARGS: Readonly<Record<string, readonly string[]>> = {
  latency: ['--rounds=1', '--rates=20,200', '--seconds=2', '--wallets=5'],
  backlog: ['--rounds=1', '--events=200', '--wallets=5'],
};

/** A benchmark of exact counts finds none that is wrong, however small and slow it is. */
const EXACT = /: (?:lost|delivered twice|invented)$/;

const FIGURES = z.array(z.object({ what: z.string(), found: z.number() }));

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'intentwatch-benchmarks-'));
});

afterAll(() => rm(folder, { recursive: true, maxRetries: 5 }));

async function ended(name: string, args: readonly string[]): Promise<Program> {
  const program = await Program.start(RUN, [name, ...args]);
  await program.ending();
  return program;
}

test.each(
  Object.entries(ARGS),
)('the benchmark %s prints its table and stores its figures', async (name, args) => {
  const file = join(folder, `${name}.json`);
  const program = await ended(name, [...args, `--json=${file}`]);
  expect(program.stderr).toEqual([]);
  const figures = FIGURES.parse(JSON.parse(await readFile(file, 'utf8')));
  expect(figures).not.toEqual([]);
  for (const { what } of figures) expect(program.stdout.join('\n')).toContain(`${what}: `);
  expect(figures.filter(({ what, found }) => EXACT.test(what) && found !== 0)).toEqual([]);
});

test('two commits are compared in turns, and what was measured is not measured again', async () => {
  const results = join(folder, 'results');
  const args = ['--before=HEAD', '--rows=backlog', '--rounds=1', `--results=${results}`];
  await ended('compare', [...args, '--sides=after']);
  const program = await ended('compare', [...args, '--sides=after,baseline']);
  expect(program.stderr).toEqual([]);
  const { runs } = resultsSchema.parse(JSON.parse(await readFile(join(results, 'backlog.json'), 'utf8')));
  expect(runs.map(({ side, round }) => ({ side, round }))).toEqual([
    { side: 'after', round: 1 },
    { side: 'baseline', round: 1 },
  ]);
  expect(program.stdout.join('\n')).not.toContain('backlog, round 1, after');
});

test('a row that is not there is refused', async () => {
  const program = await ended('compare', ['--before=HEAD', '--rows=idle,none']);
  expect(program.stderr).toEqual([expect.stringMatching(/^--rows: found none, expected latency, /)]);
});
