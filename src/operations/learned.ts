import { z } from 'zod';
import { CORRIDOR, corridorsOf } from '../domain/cadence/corridors.ts';
import { quantileSeconds } from '../domain/cadence/hazard.ts';
import { type OperationContext, UnknownError } from './operation.ts';

const TENTHS = z.number().min(0);

const STAGE = z.object({
  route: z.string().describe('Source and destination chain, such as `8453:10`; `*` for all.'),
  stage: z.string().describe('What ends, such as `pending`.'),
  observations: TENTHS.describe('How many ends were seen. One seen a day ago counts half.'),
  medianSeconds: TENTHS,
  p90Seconds: TENTHS,
  p99Seconds: TENTHS,
});

/** All learned statistics. */
export const LEARNED = z.object({
  corridors: z.array(CORRIDOR.meta({ id: 'Corridor' })),
  stages: z.array(STAGE.meta({ id: 'LearnedStage' })).describe('That of which most was seen first.'),
  newTransfers: z
    .object({ observations: TENTHS, everySeconds: TENTHS })
    .describe('How often a new transfer comes in a usual wallet.'),
});

export type Learned = z.infer<typeof LEARNED>;

/** Reads the learned statistics of each route, and of the arrivals of new transfers. */
export async function readLearned({ knowledge }: OperationContext): Promise<Learned> {
  const current = await knowledge();
  const { stages, arrivals } = current;
  return {
    corridors: corridorsOf(current),
    stages: stages
      .toSorted((a, b) => b.observations - a.observations)
      .map(({ route, watch, observations, curve }) => ({
        route,
        stage: watch,
        observations: tenths(observations),
        medianSeconds: tenths(quantileSeconds(curve, 0.5)),
        p90Seconds: tenths(quantileSeconds(curve, 0.9)),
        p99Seconds: tenths(quantileSeconds(curve, 0.99)),
      })),
    newTransfers: {
      observations: tenths(arrivals.observations),
      everySeconds: tenths(1 / arrivals.usualPerSecond),
    },
  };
}

/** Removes the learned statistics of a route, or of all (null). Returns the number of entries. */
export async function removeLearned(route: string | null, { stores }: OperationContext): Promise<number> {
  const gone = await stores.learned.reset(route);
  if (gone === 0 && route !== null) {
    throw new UnknownError(`found nothing learned on ${route}, expected a route of \`learned\``);
  }
  return gone;
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10;
}
