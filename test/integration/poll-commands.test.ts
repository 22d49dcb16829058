import { Worker } from 'bullmq';
import { expect, onTestFinished, test } from 'vitest';
import { MOST_IN_JOB, POLL_JOB, PollQueues, TAKE_OVER } from '../../src/queues/polls/poll-queues.ts';
import { chunks } from '../../src/store/commands.ts';
import { NOTHING_OBSERVED } from '../../src/store/observed.ts';
import { startPolls } from '../../src/store/poll-start.ts';
import { PlanStage, SUCCESS, wallets } from '../support/plan-stage.ts';
import { RedisProcess } from '../support/redis-process.ts';

/** Commands of a poll that nothing disturbs, inside scripts as well: its claim, its way to a worker, its start and its end. */
const MOST_COMMANDS = 33;

/** A budget of 100 polls a second, claimed ten at a time; the plan is checked once in two seconds. */
const PER_SECOND = 100;
const AT_ONCE = 10;
const CHECKED_EVERY = 2 * (PER_SECOND / AT_ONCE);
const ROUNDS = 3 * CHECKED_EVERY;

test('an undisturbed poll takes the same few commands beside 2,000 wallets as beside 20,000', async () => {
  const few = await commandsOf(2_000);
  const many = await commandsOf(20_000);
  expect(few).toBeLessThan(MOST_COMMANDS);
  expect(many).toBeLessThan(MOST_COMMANDS);
  expect(many).toBeLessThan(1.1 * few);
});

/** Returns the mean number of commands of a poll beside so many wallets. */
async function commandsOf(count: number): Promise<number> {
  // A server of its own: all its commands are counted.
  const server = await RedisProcess.create({ durable: false });
  onTestFinished(() => server.close());
  const stage = new PlanStage(server.url);
  const queues = new PollQueues(stage);
  await stage.budget(PER_SECOND);
  await stage.name(wallets(count));
  let ended = Promise.withResolvers<void>();
  let left = 0;
  const worker = new Worker(
    'status',
    async ({ data }) => {
      const { polls } = POLL_JOB.parse(data);
      const starts = await startPolls({ ...stage, atMs: () => String(stage.nowMs) }, polls, 'p1');
      const ends = starts.flatMap((poll) => {
        if (poll === null || poll instanceof Error) return [];
        const next = { ...SUCCESS.next, alarmMs: null, unseen: false };
        return [{ poll, outcome: SUCCESS.outcome, next, observed: NOTHING_OBSERVED }];
      });
      await stage.plan.end('status', ends);
      left -= polls.length;
      if (left === 0) ended.resolve();
    },
    { connection: stage.redis, prefix: stage.keys.queues, concurrency: 4, ...TAKE_OVER },
  );
  onTestFinished(async () => {
    await worker.close();
    await queues.close();
    stage.close();
  });
  let polls = 0;
  const before = await commandsUntilNow(stage);
  for (let round = 0; round < ROUNDS; round++) {
    const claimed = await stage.claim(AT_ONCE, 'p1', 1_000 * (AT_ONCE / PER_SECOND));
    ended = Promise.withResolvers();
    left = claimed.polls.length;
    polls += left;
    await queues.add('status', chunks(claimed.polls, MOST_IN_JOB));
    if (left > 0) await ended.promise;
    if (round % CHECKED_EVERY === 0) await stage.plan.repair('status');
    stage.nowMs += 1_000 * (AT_ONCE / PER_SECOND);
  }
  expect(polls).toBeGreaterThan(0.9 * ROUNDS * AT_ONCE);
  return ((await commandsUntilNow(stage)) - before) / polls;
}

async function commandsUntilNow(stage: PlanStage): Promise<number> {
  const stats = await stage.redis.info('commandstats');
  return [...stats.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)].reduce(
    (sum, [, , calls]) => sum + Number(calls),
    0,
  );
}
