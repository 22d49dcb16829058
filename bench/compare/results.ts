import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { median } from '../detection/targets.ts';

export const RESULTS = join(import.meta.dirname, '../results');

/** Sides of a comparison: the commit before, the commit after, and the baseline. */
export const SIDES = ['before', 'after', 'baseline'] as const;
export type Side = (typeof SIDES)[number];

/** A figure as a benchmark prints it; null where its side has none. */
const figureSchema = z.object({
  what: z.string(),
  found: z.number().nullable(),
  most: z.number().optional(),
  least: z.number().optional(),
  goal: z.number().optional(),
  baseline: z.number().nullable().optional(),
  isRatio: z.boolean().optional(),
});
export type Figure = z.infer<typeof figureSchema>;

const runSchema = z.object({
  side: z.enum(SIDES),
  round: z.int().positive(),
  commit: z.string(),
  at: z.iso.datetime(),
  tookSeconds: z.number(),
  /** Average number of processes that wanted to run in the minute before: other work makes times longer. */
  load: z.number(),
  figures: z.array(figureSchema),
});
export type ComparedRun = z.infer<typeof runSchema>;

export const resultsSchema = z.object({
  row: z.string(),
  args: z.array(z.string()),
  runs: z.array(runSchema),
});

/** Results of a row, in the order in which they were measured. */
export type Results = z.infer<typeof resultsSchema>;

/** Reads the results of a row from a folder; null where it was never measured. */
export function readResults(row: string, folder = RESULTS): Results | null {
  const file = join(folder, `${row}.json`);
  return existsSync(file) ? resultsSchema.parse(JSON.parse(readFileSync(file, 'utf8'))) : null;
}

/** Median, least and most of the rounds of a side. */
export type Spread = { middle: number; least: number; most: number; rounds: number };

/** Value of a figure: what its run found, or its baseline. */
export type Value = 'found' | 'baseline';

/** Sums up a figure over the rounds of a side; null where no round has it. */
export function spreadOf(
  { runs }: Results,
  side: Side,
  what: string,
  value: Value = side === 'baseline' ? 'baseline' : 'found',
): Spread | null {
  const values = runs
    .filter((run) => run.side === side)
    .flatMap(({ figures }) => valuesOf(figures, what, value));
  if (values.length === 0) return null;
  return {
    middle: median(values),
    least: Math.min(...values),
    most: Math.max(...values),
    rounds: values.length,
  };
}

function valuesOf(figures: readonly Figure[], what: string, value: Value): number[] {
  return figures.flatMap((figure) => {
    const found = figure[value];
    return figure.what !== what || found === null || found === undefined ? [] : [found];
  });
}
