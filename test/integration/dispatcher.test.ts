import { setImmediate as turn } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { walletId } from '../../src/domain/subjects/subject.ts';
import { Dispatcher } from '../../src/queues/polls/dispatcher.ts';
import { PollQueues } from '../../src/queues/polls/poll-queues.ts';
import { Signals } from '../../src/signals.ts';
import { type ClaimResult, PlanStore, REDIS_TIME } from '../../src/store/plan.ts';
import { startPolls } from '../../src/store/poll-start.ts';
import { eventually } from '../support/eventually.ts';
import { holdTimers } from '../support/held-timers.ts';
import { PlanStage } from '../support/plan-stage.ts';
import { RedisProcess } from '../support/redis-process.ts';

const WALLETS = [walletId(`0x${'1'.repeat(40)}`), walletId(`0x${'2'.repeat(40)}`)];

/** The time that a claim may be on its way to a worker before it is checked. */
const CLAIM_LEASE_MS = 3_000;

let stage: PlanStage;
let queues: PollQueues;

beforeEach(() => {
  stage = new PlanStage();
  queues = new PollQueues(stage);
});

afterEach(async () => {
  await queues.close();
  stage.close();
});

function dispatcherOf(plan: PlanStore): Dispatcher {
  const deps = { plan, queues, signals: new Signals(), log: pino({ level: 'silent' }) };
  return new Dispatcher(deps, { endpointGroup: 'status', process: 'p1', capacity: WALLETS.length });
}

/** A plan that signals when it has claimed as much as the dispatcher takes, and never answers a check; it counts its claims. */
class SlowPlan extends PlanStore {
  readonly full = Promise.withResolvers<void>();
  checks = 0;
  claims = 0;
  #polls = 0;

  override async claim(...args: Parameters<PlanStore['claim']>): Promise<ClaimResult> {
    this.claims += 1;
    const claimed = await super.claim(...args);
    this.#polls += claimed.polls.length;
    if (this.#polls === WALLETS.length) this.full.resolve();
    return claimed;
  }

  override async repair(): Promise<string[]> {
    this.checks += 1;
    return new Promise(() => undefined);
  }
}

describe('a dispatcher', () => {
  test('that may claim nothing more lets others go on, also when it is woken', async () => {
    await stage.budget(100);
    await stage.name(WALLETS);
    const plan = new SlowPlan(stage.redis, stage.keys);
    const dispatcher = dispatcherOf(plan);
    dispatcher.start();
    await plan.full.promise;
    dispatcher.wake();
    // A loop that never yields would let no turn of the event loop begin.
    for (let turns = 0; turns < 100; turns += 1) await turn();
    await dispatcher.close();
  });

  test('holds polls for workers that claim them late, as on a busy machine', async () => {
    await stage.budget(100);
    await stage.name(WALLETS);
    const plan = new PlanStore(stage.redis, stage.keys);
    const dispatcher = dispatcherOf(plan);
    dispatcher.start();
    const queue = new Queue('status', { connection: stage.redis, prefix: stage.keys.queues });
    const sent = await eventually('both were passed on', async () => {
      const found = (await queue.getJobs(['wait', 'delayed', 'prioritized'])).flatMap(
        ({ data }) => data.polls,
      );
      return found.length === WALLETS.length && found;
    });
    const leasedUntilMs = async (): Promise<number[]> =>
      (await stage.redis.zrange(`${stage.keys.plan('status')}:leases`, '0', '-1', 'WITHSCORES'))
        .filter((_, index) => index % 2 === 1)
        .map(Number);
    const first = Math.max(...(await leasedUntilMs()));
    await eventually('the leases go on when the first ones have run out', async () =>
      (await leasedUntilMs()).every((untilMs) => untilMs > first + CLAIM_LEASE_MS),
    );
    const deps = { ...stage, atMs: REDIS_TIME };
    const started = await startPolls(deps, sent, 'p1');
    expect(started.filter((start) => start === null)).toEqual([]);
    await dispatcher.close();
    await queue.close();
  });

  test('reports the reason when it cannot claim for some time, and stops when it can', async () => {
    const redis = await RedisProcess.create({ durable: false });
    const full = new PlanStage(redis.url);
    await full.budget(100);
    await full.redis.config('SET', 'maxmemory', '1');
    const others = new PollQueues(full);
    const deps = { queues: others, signals: new Signals(), log: pino({ level: 'silent' }) };
    const dispatcher = new Dispatcher(
      { ...deps, plan: new PlanStore(full.redis, full.keys) },
      { endpointGroup: 'status', process: 'p1', capacity: 2 },
    );
    dispatcher.start();
    expect(dispatcher.failure()).toBeNull();
    expect(await eventually('it reports the reason', () => dispatcher.failure())).toMatch(/^OOM /);
    await full.redis.config('SET', 'maxmemory', '0');
    await eventually('it reports no more', () => dispatcher.failure() === null);
    await dispatcher.close();
    await others.close();
    full.close();
    await redis.close();
  });

  test('starts one check of the plan at a time with a Redis that does not answer', async () => {
    // It gives up a check after 5 s.
    holdTimers(5_000);
    const plan = new SlowPlan(stage.redis, stage.keys);
    const dispatcher = dispatcherOf(plan);
    dispatcher.start();
    await eventually('a check', () => plan.checks > 0);
    // It claims every second where nothing is due, and checks every two: these take as long as three checks.
    const before = plan.claims;
    await eventually('claims go on beside it', () => plan.claims >= before + 6);
    expect(plan.checks).toBe(1);
    await dispatcher.close();
  });
});
