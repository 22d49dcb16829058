import { afterEach, beforeEach, expect, test } from 'vitest';
import type { SubjectId } from '../../src/domain/subjects/subject.ts';
import { readWaits } from '../../src/store/plan-state.ts';
import { intents, PlanStage, pollsOf, SUCCESS, wallets } from '../support/plan-stage.ts';

let stage: PlanStage;

beforeEach(() => {
  stage = new PlanStage();
});

afterEach(() => stage.close());

/** Moves subjects into the state of having been removed from the config, or of coming back. */
async function suspend(state: 'out' | 'back', subjects: readonly SubjectId[]): Promise<void> {
  const { redis, keys } = stage;
  await redis.zadd(keys.suspensions, '1', `${state}:1`);
  await redis.hset(keys.suspended, ...subjects.flatMap((subject) => [`s|${subject}`, `${state}:1`]));
}

const AT_ONCE = { outcome: 'next', next: { virtualSeconds: 10, restMs: 0 } } as const;

test('subjects removed from the config are polled with the spare budget of the others', async () => {
  await stage.budget(20);
  const [live, out] = [wallets(10).slice(0, 5), wallets(10).slice(5)];
  await stage.name(wallets(10));
  await suspend('out', out);
  await stage.run(5, async () => SUCCESS);
  const polled = await stage.run(40, async () => SUCCESS);
  // The others are polled each second, as their shortest wait allows, and so are the removed ones.
  expect(pollsOf(polled, live)).toBeGreaterThan(180);
  expect(pollsOf(polled, out)).toBeGreaterThan(100);
});

test('subjects removed from the config use a twentieth of the budget at most where the others use all', async () => {
  await stage.budget(20);
  const [live, out] = [wallets(40).slice(0, 20), wallets(40).slice(20)];
  const others = intents(20);
  await stage.name([...wallets(40), ...others]);
  await suspend('out', [...out, ...others]);
  await stage.run(10, async () => AT_ONCE);
  const polled = await stage.run(60, async () => AT_ONCE);
  const all = pollsOf(polled, [...live, ...out, ...others]);
  expect(all).toBeGreaterThan(1_100);
  expect(pollsOf(polled, [...out, ...others]) / all).toBeLessThan(0.06);
  expect(pollsOf(polled, out)).toBeGreaterThan(0);
  expect(pollsOf(polled, others)).toBeGreaterThan(0);
  // A requested poll of a suspended subject waits like all its polls.
  await stage.plan.pollSoon(out);
  const requests = await stage.run(10, async () => AT_ONCE);
  expect(pollsOf(requests, out)).toBeLessThan(20);
  // Back in the config it has its share again.
  await suspend('back', [...out, ...others]);
  await stage.redis.zrem(stage.keys.suspensions, 'out:1');
  const [settled] = await stage.registry.suspensions.settle({ spanMs: null, confirmedMs: 0, trimMs: 0 });
  expect(settled).toMatchObject({ move: 'released', events: 0 });
  await stage.run(10, async () => AT_ONCE);
  const back = await stage.run(60, async () => AT_ONCE);
  expect(pollsOf(back, out) / pollsOf(back, live)).toBeGreaterThan(0.8);
});

test('a plan whose subjects are all removed from the config notices that the upstream answers again', async () => {
  await stage.budget(10);
  await stage.name(wallets(5));
  await suspend('out', wallets(5));
  await stage.run(5, async () => SUCCESS);
  const down = await stage.run(30, async (_, start) => {
    await stage.answer(start.subject, 'unreachable');
    return { outcome: 'failed', next: { restMs: 1_000 } };
  });
  expect(pollsOf(down, wallets(5))).toBeGreaterThan(3);
  const up = await stage.run(30, async (_, start) => {
    await stage.answer(start.subject, 'ok');
    return SUCCESS;
  });
  expect(pollsOf(up, wallets(5))).toBeGreaterThan(50);
});

test('subjects removed from the config do not count as the longest waiting', async () => {
  const { redis, keys } = stage;
  await stage.budget(10);
  await stage.name(wallets(2));
  const [live, out] = wallets(2);
  if (live === undefined || out === undefined) throw new Error('found no wallets');
  await suspend('out', [out]);
  await stage.run(3, async () => SUCCESS);
  await redis.zadd(keys.polledAt('status', 'wallet'), 5_000, live, 1_000, out);
  const waits = await readWaits(redis, keys, 10_000);
  expect(waits).toContainEqual({ kind: 'wallet', count: 2, longestSeconds: 5 });
});
