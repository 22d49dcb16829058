import { z } from 'zod';
import { ANY_ROUTE } from '../transfers/transfer.ts';
import { quantileSeconds } from './hazard.ts';
import { ENOUGH_OF_A_ROUTE, type Knowledge } from './knowledge.ts';
import { failedOf, type Watch } from './watch-rules.ts';

const COUNT = z.number().min(0);

const SECONDS = z.number().min(0);

const TIMING = z
  .object({
    p50Seconds: SECONDS.describe('Half have ended by then.'),
    p90Seconds: SECONDS.describe('9 of 10.'),
    p99Seconds: SECONDS.describe('99 of 100.'),
    observations: COUNT.describe('How many ends were seen. One seen a day ago counts half, here and below.'),
  })
  .nullable();

const SHARE = z.number().min(0).max(1).nullable();

export const CORRIDOR = z.object({
  corridor: z
    .string()
    .describe(
      'Source and destination chain, such as `8453:10`; `8453:*` where only the source is known; `*` for all.',
    ),
  fill: TIMING.describe(
    'How long `pending` takes, of those that are filled. Null while fewer than 20 were seen.',
  ),
  settlement: TIMING.describe('How long `filled` takes, of those that are settled. Null likewise.'),
  filled: COUNT.describe('Transfers that were seen pending, then filled.'),
  unfilled: COUNT.describe(
    'Transfers that were seen pending, then `expired`, `failed`, `refundable` or `refunded`.',
  ),
  overdue: COUNT.describe('Transfers that were reported as overdue, each once.'),
  refunded: COUNT.describe('Transfers that were paid back.'),
  unfilledShare: SHARE.describe('Of `filled` and `unfilled` together. Null while they are fewer than 20.'),
  overdueShare: SHARE.describe('`overdue` as a share of the same.'),
  refundedShare: SHARE.describe('`refunded` as a share of the same.'),
});

/** Learned values of a pair of chains. */
export type Corridor = z.infer<typeof CORRIDOR>;

/** Learned values of each pair of chains and of all of them (`*`), the most observed first. */
export function corridorsOf(knowledge: Knowledge): Corridor[] {
  const names = new Set(
    knowledge.stages
      .filter(({ watch }) => watch === 'pending' || watch === 'filled')
      .map(({ route }) => route),
  );
  return [...names]
    .map((name) => corridorOf(knowledge, name))
    .toSorted(
      (a, b) =>
        b.filled + b.unfilled - a.filled - a.unfilled ||
        Number(a.corridor === ANY_ROUTE) - Number(b.corridor === ANY_ROUTE) ||
        (a.corridor < b.corridor ? -1 : 1),
    );
}

function corridorOf(knowledge: Knowledge, corridor: string): Corridor {
  const { counted } = knowledge;
  const filled = counted(corridor, 'pending');
  const unfilled = counted(corridor, failedOf('pending'));
  const [overdue, refunded] = [counted(corridor, 'overdue'), counted(corridor, 'refunded')];
  const ended = filled + unfilled;
  // Each count decays from its own time, so a share is capped at 1.
  const share = (count: number): number | null =>
    ended < ENOUGH_OF_A_ROUTE ? null : rounded(Math.min(1, count / ended), 3);
  return {
    corridor,
    fill: timingOf(knowledge, corridor, 'pending'),
    settlement: timingOf(knowledge, corridor, 'filled'),
    filled: rounded(filled, 1),
    unfilled: rounded(unfilled, 1),
    overdue: rounded(overdue, 1),
    refunded: rounded(refunded, 1),
    unfilledShare: share(unfilled),
    overdueShare: share(overdue),
    refundedShare: share(refunded),
  };
}

function timingOf({ stages }: Knowledge, corridor: string, watch: Watch): Corridor['fill'] {
  const stage = stages.find((one) => one.route === corridor && one.watch === watch);
  if (stage === undefined || stage.observations < ENOUGH_OF_A_ROUTE) return null;
  const quantile = (share: number): number => rounded(quantileSeconds(stage.curve, share), 1);
  return {
    p50Seconds: quantile(0.5),
    p90Seconds: quantile(0.9),
    p99Seconds: quantile(0.99),
    observations: rounded(stage.observations, 1),
  };
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
