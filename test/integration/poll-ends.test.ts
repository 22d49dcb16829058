import { performance } from 'node:perf_hooks';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Dispatcher } from '../../src/queues/polls/dispatcher.ts';
import { PollEnds, type Polled } from '../../src/queues/polls/poll-ends.ts';
import { PollFailures } from '../../src/queues/polls/poll-failures.ts';
import { PollQueues } from '../../src/queues/polls/poll-queues.ts';
import { Signals } from '../../src/signals.ts';
import { NOTHING_OBSERVED } from '../../src/store/observed.ts';
import { type EndedPoll, PlanStore, type PollEnd, type PollEnded } from '../../src/store/plan.ts';
import { type PollStart, startPolls } from '../../src/store/poll-start.ts';
import { UpstreamFailure } from '../../src/upstream/client/failure.ts';
import { intents, PlanStage, wallets } from '../support/plan-stage.ts';

const WALLETS = wallets(4);

const QUIET: Polled = {
  end: 'next',
  next: { virtualSeconds: 10, restMs: 5_000, latestMs: 30_000, alarmMs: null, unseen: false },
  observed: NOTHING_OBSERVED,
  outcome: 'answered',
};

/** So many seconds of Retry-After need not last before three of them are an outage. */
const UNAVAILABLE = new UpstreamFailure({
  endpoint: 'status',
  code: 'unavailable',
  found: '503',
  expected: '200',
  httpStatus: 503,
  problemCode: null,
  retryAfterMs: 60_000,
});

/** A plan that records the ends of each call. */
class RecordedPlan extends PlanStore {
  readonly calls: (readonly EndedPoll[])[] = [];

  get sizes(): number[] {
    return this.calls.map((polls) => polls.length);
  }

  override async end(...args: Parameters<PlanStore['end']>): Promise<PollEnded[]> {
    this.calls.push(args[1]);
    return super.end(...args);
  }
}

let stage: PlanStage;

beforeEach(() => {
  stage = new PlanStage();
});

afterEach(() => {
  vi.restoreAllMocks();
  stage.close();
});

async function started(on = stage): Promise<PollStart[]> {
  await on.budget(100);
  await on.name(WALLETS);
  const { polls } = await on.claim(WALLETS.length, 'p1', 1_000);
  const starts = await Promise.all(polls.map((poll) => on.take(poll)));
  return starts.filter((start) => start !== null);
}

function endOf(poll: PollStart, outcome: PollEnd = 'next'): EndedPoll {
  return { poll, outcome, next: QUIET.next, observed: NOTHING_OBSERVED };
}

describe('the end of a poll that changed nothing', () => {
  let plan: RecordedPlan;
  let queues: PollQueues;
  let dispatcher: Dispatcher;
  let held: PollStart[];
  const replies: (boolean | null)[] = [];
  const follow = async (isWaitedFor: boolean | null): Promise<void> => void replies.push(isWaitedFor);

  beforeEach(async () => {
    replies.length = 0;
    held = await started();
    plan = new RecordedPlan(stage.redis, stage.keys, { atMs: () => String(stage.nowMs) });
    queues = new PollQueues(stage);
    dispatcher = new Dispatcher(
      { plan, queues, signals: new Signals(), log: pino({ level: 'silent' }) },
      { endpointGroup: 'status', process: 'p1', capacity: 100 },
    );
    for (const { member, token } of held) dispatcher.hold({ claimedToken: '', member, token });
    dispatcher.start();
  });

  afterEach(async () => {
    await dispatcher.close();
    await queues.close();
  });

  test('waits for the others, and goes with the last of them', async () => {
    const ends = held.map((start) => dispatcher.end(start, QUIET, follow));
    expect(plan.sizes).toEqual([WALLETS.length]);
    await Promise.all(ends);
    expect(replies).toEqual(WALLETS.map(() => false));
  });

  test('goes with the next claim', async () => {
    const [one] = held;
    if (one === undefined) throw new Error('nothing was claimed');
    const end = dispatcher.end(one, QUIET, follow);
    expect(plan.sizes).toEqual([]);
    await dispatcher.round();
    expect(plan.sizes).toEqual([1]);
    await end;
    expect(replies).toEqual([false]);
  });

  test.each<[string, Partial<Polled>, Partial<PollStart>]>([
    ['is due again at once', { next: { ...QUIET.next, restMs: 0 } }, {}],
    ['has an alarm before long', { next: { ...QUIET.next, alarmMs: 10 } }, {}],
    ['failed', { end: 'failed', outcome: 'failed' }, {}],
    ['saw a transfer', { observed: { ...NOTHING_OBSERVED, open: { a: 'b' } } }, {}],
    ['saw the end of one', { observed: { ...NOTHING_OBSERVED, ended: ['a'] } }, {}],
    ['was a probe', {}, { lane: 'probe' }],
    ['was suspected', {}, { lane: 'suspect' }],
  ])('does not wait where the poll %s, and takes those along that wait', (_, polled, start) => {
    const [one, other] = held;
    if (one === undefined || other === undefined) throw new Error('nothing was claimed');
    void dispatcher.end(one, QUIET, follow);
    void dispatcher.end({ ...other, ...start }, { ...QUIET, ...polled }, follow);
    expect(plan.sizes).toEqual([2]);
  });

  test('counts before a failure that came later, also where it has waited', async () => {
    const [denied, also, answered, later] = held;
    if (denied === undefined || also === undefined || answered === undefined || later === undefined)
      throw new Error('nothing was claimed');
    await stage.answer(denied.member, 'denied');
    await stage.answer(also.member, 'denied');
    const end = dispatcher.end(answered, QUIET, async (isWaitedFor) => {
      if (isWaitedFor) await stage.answer(answered.member, 'ok');
    });
    await dispatcher.doubt();
    expect(await stage.answer(later.member, 'denied')).toMatchObject({ before: 'ok', after: 'ok' });
    await end;
  });

  test('goes also where the round of the next claim fails before that', async () => {
    const [one] = held;
    if (one === undefined) throw new Error('nothing was claimed');
    vi.spyOn(queues, 'missing').mockRejectedValue(new Error('away'));
    const end = dispatcher.end(one, QUIET, follow);
    await expect(dispatcher.round()).rejects.toThrow('away');
    expect(plan.sizes).toEqual([1]);
    await end;
  });

  test('does not wait while failures count, so that it ends them', async () => {
    const signals = new Signals();
    const moves: unknown[] = [];
    signals.on('upstream.moved', (move) => moves.push(move));
    const log = pino({ level: 'silent' });
    const failures = new PollFailures('status', { health: stage.health, signals, log });
    const fail = async (start: PollStart): Promise<void> => {
      await dispatcher.doubt();
      await failures.handle(UNAVAILABLE, start);
      await dispatcher.doubt();
    };
    const [one, other, success, last] = held;
    if (!one || !other || !success || !last) throw new Error('nothing was claimed');
    await fail(one);
    await fail(other);
    const end = dispatcher.end(success, QUIET, async (isWaitedFor) => {
      expect(isWaitedFor).toBe(true);
      await failures.answered(success);
    });
    expect(plan.sizes).toEqual([1]);
    await end;
    await fail(last);
    // Three in a row would be an outage.
    expect(moves).toEqual([]);
  });

  test('waits again once a later end has found that no failure counts', async () => {
    const [one, other] = held;
    if (one === undefined || other === undefined) throw new Error('nothing was claimed');
    await dispatcher.doubt();
    await dispatcher.end(one, QUIET, follow);
    expect(plan.sizes).toEqual([1]);
    void dispatcher.end(other, QUIET, follow);
    expect(plan.sizes).toEqual([1]);
  });

  test('waits no longer when the dispatcher stops', async () => {
    const [one] = held;
    if (one === undefined) throw new Error('nothing was claimed');
    const end = dispatcher.end(one, QUIET, follow);
    dispatcher.stop();
    expect(plan.sizes).toEqual([1]);
    await end;
    expect(replies).toEqual([false]);
  });
});

test('the time that an end has waited is no part of its rest', async () => {
  const [one] = await started();
  if (one === undefined) throw new Error('nothing was claimed');
  const plan = new RecordedPlan(stage.redis, stage.keys);
  const ends = new PollEnds(plan, 'status');
  const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000);
  const alarmed = { ...endOf(one), next: { ...QUIET.next, alarmMs: 300 } };
  const end = ends.end(alarmed, true, async () => undefined);
  clock.mockReturnValue(1_400);
  await ends.flush();
  await end;
  const waited = { ...QUIET.next, restMs: 4_600, latestMs: 29_600, alarmMs: 0 };
  expect(plan.calls[0]?.map(({ next }) => next)).toEqual([waited]);
});

test('ends that are sent together leave the plan that they leave one by one', async () => {
  const outcomes: PollEnd[] = ['next', 'failed', 'back', 'finish'];
  const other = new PlanStage();
  const [together, alone] = [await started(), await started(other)];
  const endsOf = (starts: readonly PollStart[]): EndedPoll[] =>
    starts.map((start, at) => endOf(start, outcomes[at]));
  await stage.plan.end('status', endsOf(together));
  for (const end of endsOf(alone)) await other.plan.end('status', [end]);
  expect(await planOf(stage)).toEqual(await planOf(other));
  other.close();
});

/** The places of a plan. */
async function planOf({ redis, keys }: PlanStage): Promise<unknown> {
  const plan = keys.plan('status');
  const places = [
    'resting',
    'fair',
    'bound',
    'latest',
    'first',
    'requested',
    'failing',
    'leases',
    'polled:wallet',
  ];
  const [items, claims, ...members] = await Promise.all([
    redis.hgetall(`${plan}:items`),
    redis.hgetall(`${plan}:claims`),
    ...places.map((place) => redis.zrange(`${plan}:${place}`, '0', '-1')),
  ]);
  return { items, claims, members };
}

describe('wrong keys of one subject', () => {
  test('concern no other end that is sent with its own', async () => {
    const [one, other] = await started();
    if (one === undefined || other === undefined) throw new Error('nothing was claimed');
    await stage.redis.set(stage.keys.wallet(one.subject), 'no hash');
    const observed = { ...NOTHING_OBSERVED, facts: { pages: 1 } };
    const replies = await stage.plan.end('status', [
      { ...endOf(one), observed },
      { ...endOf(other), observed },
    ]);
    expect(replies).toEqual([expect.any(Error), false]);
    expect(String(replies[0])).toContain('WRONGTYPE');
  });

  test('concern no other poll that starts with its own', async () => {
    await stage.budget(100);
    await stage.name(WALLETS);
    const { polls } = await stage.claim(2, 'p1', 1_000);
    const [one] = polls;
    if (one === undefined) throw new Error('nothing was claimed');
    await stage.redis.set(`${stage.keys.wallet('')}${one.member}`, 'no hash');
    const [fault, start] = await startPolls({ ...stage, atMs: () => String(stage.nowMs) }, polls, 'p1');
    expect(String(fault)).toContain('WRONGTYPE');
    expect(start).toMatchObject({ member: polls[1]?.member });
  });

  test('nor does a time of it that is no number', async () => {
    const two = intents(2);
    await stage.budget(100);
    await stage.name(two);
    await stage.redis.zadd(`${stage.keys.plan('status')}:polled:intent`, '+inf', two[0] ?? '');
    const { polls } = await stage.claim(2, 'p1', 1_000);
    const starts = await startPolls({ ...stage, atMs: () => String(stage.nowMs) }, polls, 'p1');
    expect(starts.map((start) => start instanceof Error || start?.member)).toEqual(
      polls.map(({ member }) => member),
    );
  });
});
