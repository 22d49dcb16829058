import { z } from 'zod';

/** Flags of benchmarks that run the daemon and a baseline in turns. */
export const SIDE_OPTIONS = {
  rounds: { type: 'string', default: '3' },
  side: { type: 'string', default: 'daemon,bare' },
} as const;

export const COUNT = z.coerce.number().int().min(1);

/** Either side of a comparison; null where it is not run. */
type Sides<T> = { daemon: T[]; bare: T[] };

/** Runs both sides in turns, so that a drift with time affects both, and neither always comes first. */
export async function inTurns<T>(
  { rounds, side }: { rounds: string; side: string },
  run: { daemon: () => Promise<T>; bare: () => Promise<T> },
  print: (name: string, found: T) => void,
): Promise<Sides<T>> {
  const wanted = new Set(side.split(','));
  const found: Sides<T> = { daemon: [], bare: [] };
  for (let round = 1; round <= COUNT.parse(rounds); round += 1) {
    const order = round % 2 === 1 ? (['daemon', 'bare'] as const) : (['bare', 'daemon'] as const);
    for (const one of order) {
      if (!wanted.has(one)) continue;
      const result = await run[one]();
      found[one].push(result);
      print(`round ${round}, ${one}`, result);
    }
  }
  return found;
}
