import { describe, expect, test } from 'vitest';
import { createGenerator } from '../../sandbox/world/generator.ts';
import type { TransferPlan } from '../../sandbox/world/plan.ts';
import { expectedBy } from '../../src/domain/cadence/expected.ts';
import { expectedHazard } from '../../src/domain/cadence/hazard.ts';
import { type Knowledge, knowledgeOf, type StoredTally } from '../../src/domain/cadence/knowledge.ts';
import {
  emptyTally,
  type Increment,
  increments,
  observed,
  type StatusPoll,
} from '../../src/domain/cadence/learning.ts';
import { ARRIVAL_RULE, failedOf, type Statistic, WATCH_RULES } from '../../src/domain/cadence/watch-rules.ts';
import { unseenSnapshot } from '../../src/domain/changes/next-snapshot.ts';
import {
  gaslessId,
  gatewayJobId,
  intentId,
  quoteId,
  type SubjectId,
  vaultId,
} from '../../src/domain/subjects/subject.ts';
import { ANY_ROUTE } from '../../src/domain/transfers/transfer.ts';
import { withIncrements } from '../support/tally.ts';

const START_MS = 1_795_174_200_000;
const INTENT = intentId('0xaa');

/** A pending transfer of the sandbox: when and how it leaves that status. */
type Life = { endsSeconds: number; status: 'filled' | 'expired' | 'failed' };

function lifeOf({ fate, waits }: TransferPlan): Life {
  if (fate === 'refunded') return { endsSeconds: waits.toExpiry, status: 'expired' };
  if (fate === 'failed') return { endsSeconds: waits.toFailure, status: 'failed' };
  return { endsSeconds: waits.toFill, status: 'filled' };
}

function lives(seed: number, count: number): Life[] {
  const generator = createGenerator({ seed, wallets: 10 });
  const plans = Array.from({ length: count }, (_, index) => generator.transfer({ stream: 'born', index }));
  return plans.filter(({ fate }) => fate !== 'unborn').map(lifeOf);
}

/** The knowledge from transfers that were polled at an interval, each from its first second on. */
function learnedFrom(seen: readonly Life[], everySeconds: number): Knowledge {
  const given = { rules: WATCH_RULES, arrivals: ARRIVAL_RULE, nowMs: START_MS };
  const tallies = new Map<Statistic, StoredTally>();
  const add = (statistic: Statistic, more: readonly Increment[]): void => {
    const before = tallies.get(statistic) ?? {
      route: ANY_ROUTE,
      statistic,
      tally: emptyTally(),
      landmarkMs: START_MS,
    };
    tallies.set(statistic, { ...before, tally: withIncrements(before.tally, more, 1) });
  };
  let knowledge = knowledgeOf([], given);
  for (const [index, { endsSeconds, status }] of seen.entries()) {
    for (let age = 1; ; age += everySeconds) {
      const now = { seconds: age + everySeconds, isOver: age + everySeconds >= endsSeconds };
      const poll: StatusPoll = {
        subject: INTENT,
        before: { ...pendingAt(START_MS), status: 'pending' },
        seenAtMs: START_MS + age * 1_000,
        status: now.isOver ? status : 'pending',
        nowMs: START_MS + now.seconds * 1_000,
      };
      const reported = observed(poll);
      if (reported !== null) {
        const curve = knowledge.curve(ANY_ROUTE, 'pending');
        add('pending', increments(curve, reported.interval));
        const failed = increments(knowledge.failed(ANY_ROUTE, 'pending'), {
          ...reported.interval,
          ended: true,
        });
        if (reported.failed)
          add(
            failedOf('pending'),
            failed.map((one) => ({ ...one, watchedSeconds: 0 })),
          );
      }
      if (now.isOver) break;
    }
    if (index % 20 === 0) knowledge = knowledgeOf([...tallies.values()], given);
  }
  return knowledgeOf([...tallies.values()], given);
}

function pendingAt(sinceMs: number) {
  return { ...unseenSnapshot(sinceMs), status: 'pending', updatedAt: null, changedAtMs: sinceMs };
}

describe('against the own distribution of the sandbox', () => {
  const knowledge = learnedFrom(lives(11, 1_000), 3);
  const others = lives(12, 4_000);

  test.for([
    0, 10, 30, 60, 120,
  ])('of those still pending after %i s as many fill in time as predicted', (age) => {
    hold(knowledge, others, { age, tolerance: 0.05 });
  });

  test.for([
    0, 2, 5, 10,
  ])('also where they are four times as fast as expected, and few were seen: after %i s', (age) => {
    const faster = (seen: readonly Life[]): Life[] =>
      seen.map((life) => ({ ...life, endsSeconds: life.endsSeconds / 4 }));
    hold(learnedFrom(faster(lives(13, 300)), 1), faster(others), { age, tolerance: 0.07 });
  });

  test('no time is given for one that has most likely been removed', () => {
    const nowMs = START_MS + 3_600_000;
    expect(expectedBy({ subject: INTENT, snapshot: pendingAt(START_MS), nowMs }, knowledge.ends)).toBe(null);
  });
});

/** Compares the estimate for transfers of a pending time with the fates of others. */
function hold(
  knowledge: Knowledge,
  others: readonly Life[],
  { age, tolerance }: { age: number; tolerance: number },
): void {
  const nowMs = START_MS + age * 1_000;
  const reported = expectedBy({ subject: INTENT, snapshot: pendingAt(START_MS), nowMs }, knowledge.ends);
  if (reported === null) throw new Error('found no expected time, expected one');
  const pending = others.filter(({ endsSeconds }) => endsSeconds > age);
  const by = (at: string): number =>
    pending.filter(
      ({ endsSeconds, status }) => status === 'filled' && START_MS + endsSeconds * 1_000 <= Date.parse(at),
    ).length;
  const filled = pending.filter(({ status }) => status === 'filled').length;
  const found = {
    age,
    pending: pending.length,
    reported: reported.probability,
    inTime: by(reported.at) / pending.length,
    ofFilled: by(reported.at) / filled,
    halfOfFilled: by(reported.medianAt) / filled,
  };
  expect(Math.abs(found.inTime - found.reported), JSON.stringify(found)).toBeLessThan(tolerance);
  expect(Math.abs(found.ofFilled - 0.9), JSON.stringify(found)).toBeLessThan(tolerance);
  expect(Math.abs(found.halfOfFilled - 0.5), JSON.stringify(found)).toBeLessThan(2 * tolerance);
}

describe('the expected status', () => {
  const curve = expectedHazard(WATCH_RULES.pending.expectation);
  const ends = () => ({ usual: curve, failed: curve.map(() => 1e-7) });
  const reported = (
    subject: SubjectId,
    status: string,
    endsOf: () => ReturnType<typeof ends> | null = ends,
  ) => expectedBy({ subject, snapshot: { ...pendingAt(START_MS), status }, nowMs: START_MS }, endsOf);
  const vault = vaultId({ chainId: 8453, address: '0x3333333333333333333333333333333333333333' });

  test.for<[SubjectId, string, string | undefined]>([
    [INTENT, 'PENDING', 'filled'],
    [INTENT, 'filled', 'settled'],
    [INTENT, 'settled', undefined],
    [INTENT, 'expired', undefined],
    [INTENT, 'refundable', undefined],
    [INTENT, 'a-new-word', undefined],
    [vault, 'PENDING', undefined],
    [vault, 'FUNDING_DETECTED', 'published'],
    [gaslessId('u'), 'pending', 'submitted'],
    [gaslessId('u'), 'submitted', 'published'],
    [gatewayJobId('u'), 'PERMIT_SENT', 'completed'],
    [quoteId('u'), 'active', undefined],
  ])('of %s in %s is %s', ([subject, status, next]) => {
    expect(reported(subject, status)?.status).toBe(next);
  });

  test('is not given with too few observations', () => {
    expect(reported(INTENT, 'pending', () => null)).toBe(null);
    const few = knowledgeOf([], { rules: WATCH_RULES, arrivals: ARRIVAL_RULE, nowMs: START_MS });
    expect(few.ends('1:10', 'pending')).toBe(null);
  });
});
