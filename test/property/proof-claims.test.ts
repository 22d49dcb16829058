import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { Payment } from '../../src/domain/proof/proof.ts';
import { intentId } from '../../src/domain/subjects/subject.ts';
import { runCheck } from '../../src/queues/checks/run-check.ts';
import type { Check } from '../../src/store/check-record.ts';
import { type RedisClient, redisTimeMs } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { CHAIN, ChecksStage, found, PAYEE, TOKEN, txOf } from '../support/checks-stage.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { syncConfig } from '../support/sync-config.ts';

const MOST_STEPS = 100;

let redis: RedisClient;
beforeAll(() => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
});
afterAll(() => redis.disconnect());

/** The claim of a transfer to the one transaction; `isRecipient`: the payee is a stated recipient. */
type Rival = { payment: Payment; amount: string; isRecipient: boolean };

/** `orders`: orders in which the rivals are stated and checked; `early`: number of rivals stated before the first checks. */
type Rivalry = { amounts: string[]; rivals: Rival[]; orders: [number[], number[]]; early: [number, number] };

const rivalry: fc.Arbitrary<Rivalry> = fc
  .record({
    amounts: fc.array(fc.constantFrom('0', '500', '900', '1000'), { minLength: 1, maxLength: 2 }),
    rivals: fc.array(
      fc.record({
        payment: fc.constantFrom<Payment>('destination', 'destination', 'destination', 'source', 'refund'),
        amount: fc.constantFrom('400', '500', '1000'),
        isRecipient: fc.boolean(),
      }),
      { minLength: 2, maxLength: 4 },
    ),
  })
  .chain(({ amounts, rivals }) => {
    const order = fc.shuffledSubarray([...rivals.keys()], { minLength: rivals.length });
    const early = fc.integer({ min: 1, max: rivals.length });
    return fc.record({
      amounts: fc.constant(amounts),
      rivals: fc.constant(rivals),
      orders: fc.tuple(order, order),
      early: fc.tuple(early, early),
    });
  });

/** The ends of the checks of rivals that are stated and checked in an order. */
async function endsOf(
  { amounts, rivals }: Pick<Rivalry, 'amounts' | 'rivals'>,
  { order, early }: { order: readonly number[]; early: number },
): Promise<Check[]> {
  const stage = new ChecksStage(redis);
  stage.script = () => ['own', 'other'].map((name) => found(name, { amounts }));
  const deps = stage.deps();
  const ids = rivals.map((_, index) => intentId(hashOf(index + 1)));
  const named = (isRecipient: boolean) =>
    ids.filter((_, index) => rivals[index]?.isRecipient === isRecipient);
  const wanted = {
    history: 'skip' as const,
    receivers: [],
    metadata: {},
    overdueAfterMs: null,
    warnBeforeMs: null,
  };
  await syncConfig(
    deps.stores.registry,
    {
      digest: 'one',
      graceSpanMs: 0,
      receivers: [],
      routes: [],
      subscriptions: [
        { ...wanted, name: 'to-recipient', recipients: [PAYEE], subjects: named(true) },
        { ...wanted, name: 'unknown', recipients: [], subjects: named(false) },
      ],
    },
    '0-0',
  );
  await redis.set(stage.keys.checksLease, 'feeder');
  const state = async (index: number): Promise<void> => {
    const { payment, amount } = rivals[index] ?? { payment: 'destination', amount: '0' };
    const stated = {
      subject: ids[index] ?? intentId(hashOf(0)),
      intentHash: hashOf(index + 1),
      payment,
      chainId: CHAIN,
      txHash: txOf(1),
      token: TOKEN,
      amount: payment === 'refund' ? null : amount,
      sent: payment === 'refund' ? amount : null,
    };
    const from = await stage.store.cursor();
    const step = { token: 'feeder', from, to: `log|0-${order.indexOf(index) + 1}` };
    const statedAtMs = await redisTimeMs(redis);
    expect(
      await stage.store.feed(step, [{ stated, sequence: 1, statedAtMs, updatedAt: null, corridor: null }]),
    ).toBe(1);
  };
  const all = async (): Promise<Check[]> => (await Promise.all(ids.map((id) => stage.store.of(id)))).flat();
  /** Checks all waiting rivals, in the order, until none waits. */
  const request = async (): Promise<void> => {
    for (let steps = 0; steps < MOST_STEPS; steps += 1) {
      const waiting = (await all()).filter((check) => check.state === 'waiting');
      const next = order.flatMap((index) =>
        waiting.filter(({ statement }) => statement.subject === ids[index]),
      )[0];
      if (next === undefined) return;
      const due = `${stage.keys.checks}:due:${CHAIN}`;
      for (const { id } of waiting) await redis.zadd(due, id === next.id ? '0' : '9'.repeat(13), id);
      const [claimed] = (await stage.store.claim(`claim ${steps}`, new Map([[CHAIN, 1]]))).claimed;
      if (claimed === undefined) throw new Error(`nothing was claimed of ${next.id}`);
      await runCheck(claimed, deps, AbortSignal.timeout(60_000));
      // A rival that waits for others is checked after them.
      order = [
        ...order.filter((index) => ids[index] !== next.statement.subject),
        ids.indexOf(next.statement.subject),
      ];
    }
    throw new Error(`something still waits after ${MOST_STEPS} steps`);
  };
  for (const index of order.slice(0, early)) await state(index);
  const later = order.slice(early);
  await request();
  for (const index of later) await state(index);
  await request();
  return all();
}

function wordOf({ state, because }: Check): string {
  return because === '' ? state : `${state} ${because}`;
}

function holders(ends: readonly Check[]): string[] {
  return ends.flatMap(({ statement, state, proof }, index) => {
    const space = statement.payment === 'source' ? 'in' : 'out';
    return state === 'verified' ? [`${space} log ${proof?.moved?.[0]?.index}: ${index}`] : [];
  });
}

/** Outcomes that may depend on which of several equal rivals was first. */
const BY_ARRIVAL = new Set(['verified', 'unchecked ambiguous', 'disputed other-intent']);

/** Outcomes that may depend on whether the possible moves were still free when a rival was judged. */
const BY_FREEDOM = new Set(['unchecked ambiguous', 'disputed other-intent']);

/** A rival that was judged while two moves were free for it; it is not once others have claimed them. */
const JUDGED_EARLY: Rivalry = {
  amounts: ['500', '1000'],
  rivals: [
    { payment: 'destination', amount: '400', isRecipient: true },
    { payment: 'destination', amount: '1000', isRecipient: true },
    { payment: 'destination', amount: '500', isRecipient: false },
    { payment: 'source', amount: '500', isRecipient: true },
  ],
  orders: [
    [3, 1, 0, 2],
    [3, 2, 1, 0],
  ],
  early: [1, 1],
};

function hasSeveral(amounts: readonly string[], { payment, amount }: Rival): boolean {
  const fits = (moved: bigint): boolean =>
    moved > 0n && (payment === 'refund' ? moved <= BigInt(amount) : moved >= BigInt(amount));
  return amounts.filter((moved) => fits(BigInt(moved))).length > 1;
}

const RUNS = 40;

test('no log proves two rivals, all of them end, and in any order alike where the same ones hold the logs', async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(rivalry, async ({ orders, early, ...given }) => {
      const one = await endsOf(given, { order: orders[0], early: early[0] });
      const other = await endsOf(given, { order: orders[1], early: early[1] });
      for (const ends of [one, other]) {
        const logs = holders(ends).map((held) => held.split(':')[0]);
        expect(new Set(logs).size).toBe(logs.length);
        for (const check of ends) seen.add(wordOf(check));
      }
      const isSame = isDeepStrictEqual(holders(one), holders(other));
      for (const [index, check] of one.entries()) {
        const [mine, theirs] = [wordOf(check), wordOf(other[index] ?? check)];
        const rival = given.rivals[index];
        const allowed = isSame ? BY_FREEDOM : BY_ARRIVAL;
        const mayDiffer = !isSame || (rival !== undefined && hasSeveral(given.amounts, rival));
        if (!mayDiffer || !allowed.has(mine) || !allowed.has(theirs)) expect(mine).toBe(theirs);
      }
    }),
    { numRuns: RUNS, examples: [[JUDGED_EARLY]] },
  );
  for (const word of BY_ARRIVAL) expect(seen).toContain(word);
}, 600_000);

/** Rivals of which no two fit into the one log: they differ only in their ties to it. */
const tightRivalry = fc
  .array(fc.record({ amount: fc.constantFrom('600', '1000'), isRecipient: fc.boolean() }), {
    minLength: 2,
    maxLength: 4,
  })
  .chain((shapes) => {
    const rivals = shapes.map((part): Rival => ({ payment: 'destination', ...part }));
    const order = fc.shuffledSubarray([...rivals.keys()], { minLength: rivals.length });
    return fc.record({
      rivals: fc.constant(rivals),
      order,
      early: fc.integer({ min: 1, max: rivals.length }),
    });
  });

test('a log for which there is one best is his in any order; of several that are alike one has it', async () => {
  let ties = 0;
  await fc.assert(
    fc.asyncProperty(tightRivalry, async ({ rivals, order, early }) => {
      const ends = await endsOf({ amounts: ['1000'], rivals }, { order, early });
      const tied = rivals.map(
        ({ amount, isRecipient }) => (isRecipient ? 2 : 0) + (amount === '1000' ? 1 : 0),
      );
      const most = Math.max(...tied);
      const best = ends.filter((_, index) => tied[index] === most).map(wordOf);
      const rest = ends.filter((_, index) => tied[index] !== most).map(wordOf);
      const second = most >= 2 ? 'disputed other-intent' : 'unchecked ambiguous';
      ties += best.length > 1 ? 1 : 0;
      expect(best.sort().reverse()).toEqual(['verified', ...best.slice(1).map(() => second)]);
      expect(rest).toEqual(rest.map(() => 'disputed other-intent'));
    }),
    { numRuns: RUNS },
  );
  expect(ties).toBeGreaterThan(0);
}, 600_000);
