/**
 * Selects some of many cases, spread evenly from the first to the last: `most` of them in `npm test`, all with `FUZZ_SEED`
 * set, as in the long tier and in `npm run fuzz`.
 */
export function spread<T>(cases: Iterable<T>, most: number): T[] {
  const all = [...cases];
  if (process.env.FUZZ_SEED !== undefined || all.length <= most) return all;
  const picked = Array.from({ length: most }, (_, index) =>
    Math.round((index * (all.length - 1)) / (most - 1)),
  );
  return all.filter((_, index) => picked.includes(index));
}
