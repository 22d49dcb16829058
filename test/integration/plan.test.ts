import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { intentId, type SubjectId, walletId } from '../../src/domain/subjects/subject.ts';
import { backoffMs } from '../../src/queues/polls/poll-failures.ts';
import type { ClaimedPoll, ClaimResult } from '../../src/store/plan.ts';
import type { PollStart } from '../../src/store/poll-start.ts';
import { intents, PlanStage, pollsOf, SUCCESS, wallets } from '../support/plan-stage.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { hashOf } from '../support/scripted-upstream.ts';

let stage: PlanStage;

beforeEach(() => {
  stage = new PlanStage();
});

afterEach(() => stage.close());

describe('a plan conserves work', () => {
  test('polls each of few subjects as soon as its shortest wait allows, for any wait that it is worth', async () => {
    await stage.budget(10);
    await stage.name(wallets(5));
    const polled = await stage.run(20, async () => ({
      outcome: 'next',
      next: { virtualSeconds: 500, restMs: 1_000 },
    }));
    for (const wallet of wallets(5)) expect(polled.get(wallet)).toBeGreaterThanOrEqual(18);
  });

  test('uses the budget while subjects are eligible, evenly, from the first second and after each change of it', async () => {
    await stage.name(wallets(200));
    for (const budget of [10, 50, 5, 20]) {
      await stage.budget(budget);
      await stage.run(2, async () => SUCCESS);
      const polled = await stage.run(10, async () => SUCCESS);
      const all = [...polled.values()].reduce((sum, count) => sum + count, 0);
      expect(all, `at ${budget} requests/s`).toBeGreaterThanOrEqual(9.5 * budget);
      expect(all, `at ${budget} requests/s`).toBeLessThanOrEqual(10 * budget + 1);
    }
  });

  test('polls subjects that change often more often than the rest, in the ratio of their virtual waits', async () => {
    await stage.budget(10);
    const [busy, ...rest] = wallets(100);
    await stage.name(wallets(100));
    const polled = await stage.run(400, async (member) => ({
      outcome: 'next',
      next: { virtualSeconds: member === busy ? 10 : 40, restMs: 1_000 },
    }));
    const mean = pollsOf(polled, rest) / rest.length;
    expect((polled.get(busy ?? '') ?? 0) / mean).toBeGreaterThan(3);
    expect((polled.get(busy ?? '') ?? 0) / mean).toBeLessThan(5);
  });

  test('gives out no more than the budget in any second, over two processes', async () => {
    await stage.budget(10);
    await stage.name(wallets(300));
    const slots: number[] = [];
    for (let step = 0; step < 400; step++) {
      const { polls } = await stage.claim(50, step % 3 === 0 ? 'p2' : 'p1', 100);
      for (const poll of polls) {
        slots.push(stage.nowMs + poll.inMs);
        await stage.end(poll, 'next', SUCCESS.next);
      }
      stage.nowMs += step % 7 === 0 ? 130 : 20;
    }
    const busiest = Math.max(
      ...slots.map((from) => slots.filter((at) => at >= from && at < from + 1_000).length),
    );
    expect(busiest).toBeLessThanOrEqual(10);
    expect(slots.length).toBeGreaterThan(0.9 * 10 * ((slots.at(-1) ?? 0) - (slots[0] ?? 0)) * 1e-3);
  });

  test('gives out no more than the budget in any second to polls that all come too late', async () => {
    await stage.budget(5);
    await stage.name(wallets(100));
    const polls: ClaimedPoll[] = [];
    for (let step = 0; step < 70; step++) {
      polls.push(...(await stage.claim(20, 'p1', 100)).polls);
      stage.nowMs += 100;
    }
    expect(polls.length).toBeGreaterThan(30);
    const slots: number[] = [];
    for (const poll of polls) {
      const start = await stage.take(poll);
      if (start !== null) slots.push(stage.nowMs + start.inMs);
    }
    const busiest = Math.max(
      ...slots.map((from) => slots.filter((at) => at >= from && at < from + 1_000).length),
    );
    expect(busiest).toBeLessThanOrEqual(5);
    const { polls: further } = await stage.claim(20, 'p1', 100);
    expect(further).toEqual([]);
  });

  test('gives the newly named half of the budget at most while others are eligible', async () => {
    await stage.budget(5);
    const old = wallets(20);
    await stage.name(old);
    const before = await stage.run(60, async () => SUCCESS);
    await stage.name(intents(2_000), 'first');
    // Unknown subjects are still polled, and must not starve the others either.
    const meanwhile = await stage.run(60, async (member) =>
      member.startsWith('intent:')
        ? { outcome: 'next', next: { virtualSeconds: 5, restMs: 5_000, unseen: true } }
        : SUCCESS,
    );
    expect(pollsOf(meanwhile, old)).toBeGreaterThanOrEqual(pollsOf(before, old) / 2 - 2);
    const news = [...meanwhile.keys()].filter((member) => member.startsWith('intent:')).length;
    expect(news).toBeGreaterThan(100);
  });

  test('polls all wallets of a cold start once before it comes back to any of them', async () => {
    await stage.budget(5);
    const all = wallets(1_000);
    await stage.name(all, 'first');
    const roundMs = 1_000 * (all.length / 5);
    const polled = await stage.run((1.1 * roundMs) / 1_000, async () => ({
      outcome: 'next',
      next: { virtualSeconds: 85, restMs: 1_000, latestMs: 2 * roundMs },
    }));
    expect([...polled.keys()].length).toBe(all.length);
  });

  test('polls overdue subjects, though they are worth nothing', async () => {
    await stage.budget(10);
    const [dull = walletId('0x0'), ...rest] = wallets(100);
    await stage.name(wallets(100));
    const polled = await stage.run(300, async (member) => ({
      outcome: 'next',
      next:
        member === dull
          ? { virtualSeconds: 1e6, restMs: 1_000, latestMs: 30_000 }
          : { virtualSeconds: 1, restMs: 1_000 },
    }));
    expect(polled.get(dull)).toBeGreaterThanOrEqual(9);
    expect(pollsOf(polled, rest)).toBeGreaterThan(2_700);
  });

  test('lets subjects on pages rest, but not named subjects', async () => {
    await stage.budget(5);
    const [wallet = walletId('0x0')] = wallets(1);
    const [named = '', shown = ''] = intents(2);
    await stage.name([...wallets(1), ...intents(2)]);
    const claims = stage.keys.claims(intentId(hashOf(1)));
    await stage.redis.hset(claims, `s|${wallet}`, String(await stage.redis.hget(claims, `s|${shown}`)));
    await stage.redis.hset(
      stage.keys.wanted,
      `s|${wallet}`,
      String(await stage.redis.hget(stage.keys.wanted, `s|${shown}`)),
    );
    await stage.redis.hdel(claims, `s|${shown}`);
    await stage.run(5, async () => SUCCESS);
    const poll = await stage.next();
    const started = poll === null ? null : await stage.take(poll);
    if (started === null) throw new Error('nothing was claimed');
    const covered = intents(2).map((subject) => ({
      subject,
      alarmMs: null,
      latestMs: 600_000,
      virtualSeconds: 10,
    }));
    await stage.end(started, 'next', SUCCESS.next, { covered, coverMs: 600_000 });
    stage.nowMs += 1_100;
    const polled = await stage.run(20, async () => SUCCESS);
    expect(polled.get(named)).toBeGreaterThan(10);
    expect(polled.get(shown) ?? 0).toBeLessThanOrEqual(1);
  });

  test('polls a subject with an alarm in time, in any place where it waits', async () => {
    await stage.budget(5);
    await stage.name(wallets(1));
    const poll = await stage.next();
    if (poll === null) throw new Error('nothing was claimed');
    await stage.end(poll, 'next', { restMs: 3_600_000, alarmMs: 7_000 });
    stage.nowMs += 6_900;
    expect(await stage.next()).toBeNull();
    stage.nowMs += 200;
    const alarmed = await stage.next();
    expect(alarmed?.member).toBe(wallets(1)[0]);
    expect(alarmed === null ? null : (await stage.take(alarmed))?.lane).toBe('requested');
  });

  test('costs a claim the same beside a hundred thousand that rest', async () => {
    // A server of its own: all its requests are counted.
    const server = await RedisProcess.create({ durable: false });
    onTestFinished(() => server.close());
    const stage = new PlanStage(server.url);
    onTestFinished(() => stage.close());
    await stage.budget(1_000);
    await stage.name(wallets(50));
    const cost = async (): Promise<number> => {
      await stage.redis.config('RESETSTAT');
      await stage.run(1, async () => SUCCESS);
      const stats = await stage.redis.info('commandstats');
      const calls = [...stats.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)];
      return calls.reduce((sum, [, , count]) => sum + Number(count), 0);
    };
    await stage.run(2, async () => SUCCESS);
    const few = await cost();
    for (let index = 0; index < 100; index++) {
      await stage.plan.track(
        Array.from({ length: 1_000 }, (_, at) => intentId(hashOf(1_000 + index * 1_000 + at))),
        3_600_000,
      );
    }
    expect(await cost()).toBeLessThan(1.3 * few);
  });
});

describe('a claim', () => {
  test('is refused to a second worker, and to one that comes after it was given back', async () => {
    await stage.budget(5);
    await stage.name(wallets(1));
    const poll = await stage.next();
    if (poll === null) throw new Error('nothing was claimed');
    const started = await stage.take(poll);
    expect(started?.subject).toBe(wallets(1)[0]);
    expect(await stage.take(poll, 'p2')).toBeNull();
    expect(await stage.end(poll)).toBeNull();
    if (started === null) throw new Error('nothing was claimed');
    expect(await stage.end(started)).toBe(false);
    expect(await stage.end(started)).toBeNull();
  });

  test('goes back when its job was lost, within seconds, and comes again under another token', async () => {
    await stage.budget(5);
    await stage.name(wallets(1));
    await stage.plan.renew('status', { process: 'p1', polls: [] });
    // Redis was frozen, and grants no requests of that time.
    stage.nowMs += 20_000;
    const lost = await stage.next();
    for (let second = 0; second < 4; second++) {
      stage.nowMs += 1_000;
      await stage.plan.renew('status', { process: 'p1', polls: [] });
    }
    const again = await stage.next();
    expect(again?.member).toBe(lost?.member);
    expect(again?.token).not.toBe(lost?.token);
    expect(lost === null ? null : await stage.take(lost)).toBeNull();
  });

  test('is stored as long as its process renews it', async () => {
    await stage.budget(5);
    await stage.name(wallets(1));
    const poll = await stage.next();
    const started = poll === null ? null : await stage.take(poll);
    if (started === null) throw new Error('nothing was claimed');
    for (let second = 0; second < 60; second++) {
      stage.nowMs += 1_000;
      await stage.plan.renew('status', { process: 'p1', polls: [started] });
      expect(await stage.next('p2')).toBeNull();
    }
    expect(await stage.end(started)).toBe(false);
  });

  test('ends also where ten thousand transfers of a wallet are noted and released at once', async () => {
    await stage.budget(5);
    await stage.name(wallets(1));
    const many = intents(10_000);
    for (const observed of [
      { open: Object.fromEntries(many.map((subject) => [subject, '[]'])) },
      { ended: many },
    ]) {
      const poll = await stage.next();
      const started = poll === null ? null : await stage.take(poll);
      if (started === null) throw new Error('nothing was claimed');
      expect(await stage.end(started, 'next', {}, observed)).toBe(false);
      stage.nowMs += 1_000;
    }
  });

  test('of a subject that was requested meanwhile is followed by another at once', async () => {
    await stage.budget(100);
    await stage.name(wallets(1));
    const poll = await stage.next();
    if (poll === null) throw new Error('nothing was claimed');
    await stage.plan.pollSoon([wallets(1)[0] ?? walletId('0x0')]);
    await stage.end(poll, 'finish');
    stage.nowMs += 100;
    expect((await stage.next())?.member).toBe(poll.member);
  });
});

describe('a process that is gone', () => {
  /** Takes the poll of a subject in a process of that name, and ends the process without a result. */
  async function dieWith(member: SubjectId, process: string): Promise<void> {
    for (let tries = 0; tries < 2_000; tries++) {
      const poll = await stage.next(process);
      if (poll?.member === member) {
        expect(await stage.take(poll, process)).not.toBeNull();
        return;
      }
      if (poll !== null) await stage.end(poll, 'next', { restMs: 600_000 });
      stage.nowMs += 500;
    }
    throw new Error(`${member} was never claimed`);
  }

  /** Ends the process of that name without a result for its five polls. Returns the claims of another within ten seconds. */
  async function fiveDieWith(process: string): Promise<ClaimResult> {
    const { polls } = await stage.claim(5, process, 200);
    for (const poll of polls) await stage.take(poll, process);
    expect(polls).toHaveLength(5);
    for (let second = 0; second < 9; second++) {
      stage.nowMs += 1_000;
      await stage.plan.renew('status', { process: 'alive', polls: [] });
    }
    return stage.claim(5, 'alive', 200);
  }

  test('releases its subjects to the others within ten seconds, side by side', async () => {
    await stage.budget(50);
    await stage.name(wallets(5));
    const { polls, crashed, returned } = await fiveDieWith('dead');
    expect([polls.length, crashed, returned]).toEqual([5, [], 5]);
  });

  test('with the same subjects a second time has each polled alone, and cleared by one success', async () => {
    await stage.budget(50);
    await stage.name(wallets(5));
    const { polls } = await fiveDieWith('dead');
    for (const poll of polls) await stage.take(poll, 'second');
    for (let second = 0; second < 9; second++) {
      stage.nowMs += 1_000;
      await stage.plan.renew('status', { process: 'alive', polls: [] });
    }
    const first = await stage.claim(5, 'alive');
    expect(first.crashed.map(({ crashes }) => crashes)).toEqual([2, 2, 2, 2, 2]);
    expect(first.polls).toHaveLength(1);
    const again = await stage.claim(5, 'alive');
    expect(again.polls).toEqual([]);
    const seen = new Set<string>();
    let [poll] = first.polls;
    while (poll !== undefined && seen.size < 5) {
      seen.add(poll.member);
      const started = await stage.take(poll, 'alive');
      if (started === null) throw new Error('nothing was claimed');
      await stage.end(started, 'next', { restMs: 60_000 });
      stage.nowMs += 100;
      [poll] = (await stage.claim(1, 'alive')).polls;
    }
    expect(seen.size).toBe(5);
    expect(await stage.redis.hlen(`${stage.keys.plan('status')}:crashes`)).toBe(0);
  });

  test('counts as gone also when it died right after it had signalled its presence', async () => {
    await stage.budget(50);
    await stage.name(wallets(1));
    const poll = await stage.next('dead');
    if (poll === null || (await stage.take(poll, 'dead')) === null) throw new Error('nothing was claimed');
    stage.nowMs += 100;
    await stage.plan.renew('status', { process: 'dead', polls: [] });
    for (let second = 0; second < 10; second++) {
      stage.nowMs += 1_000;
      await stage.claim(1, 'alive');
    }
    expect(await stage.redis.hget(`${stage.keys.plan('status')}:crashes`, poll.member)).toBe('1');
  });

  test('again and again with the same subject has it polled within five minutes all the same, for ever', async () => {
    await stage.budget(50);
    const [poison = walletId('0x0')] = wallets(1);
    await stage.name(wallets(1));
    for (let crash = 1; crash <= 6; crash++) {
      const before = stage.nowMs;
      await dieWith(poison, `p${crash}`);
      expect(stage.nowMs - before).toBeLessThanOrEqual(330_000);
    }
  });

  test('counts no process as dead when it was Redis that stopped', async () => {
    await stage.budget(50);
    await stage.name(wallets(3));
    const { polls } = await stage.claim(3, 'p1', 100);
    const started = await Promise.all(polls.map((poll) => stage.take(poll, 'p1')));
    stage.nowMs += 60_000;
    const { crashed, returned } = await stage.claim(3, 'p2');
    expect({ crashed, returned }).toEqual({ crashed: [], returned: 0 });
    for (const start of started) {
      if (start === null) throw new Error('nothing was claimed');
      expect(await stage.end(start)).toBe(false);
    }
  });

  test('counts no process as dead when a live process has lost a poll of its own', async () => {
    await stage.budget(50);
    await stage.name(wallets(1));
    const poll = await stage.next();
    if (poll === null || (await stage.take(poll)) === null) throw new Error('nothing was claimed');
    const again: string[] = [];
    for (let second = 0; second < 20; second++) {
      stage.nowMs += 1_000;
      const { crashed, polls } = await stage.claim();
      expect(crashed).toEqual([]);
      for (const one of polls) {
        again.push(one.member);
        await stage.take(one);
      }
    }
    expect(again).toEqual([poll.member]);
  });
});

describe('a poll that fails', () => {
  const failed = (fails: number) => ({ outcome: 'failed', next: { restMs: backoffMs(fails) } }) as const;

  test('backs off alone, and takes a tenth of the budget with all others that do', async () => {
    await stage.budget(5);
    const healthy = wallets(20);
    const broken = intents(50);
    await stage.name(healthy);
    const before = await stage.run(60, async () => SUCCESS);
    await stage.name(broken, 'first');
    await stage.run(60, async (member, { fails }) =>
      member.startsWith('intent:') ? failed(fails) : SUCCESS,
    );
    const meanwhile = await stage.run(120, async (member, { fails }) =>
      member.startsWith('intent:') ? failed(fails) : SUCCESS,
    );
    expect(pollsOf(meanwhile, broken)).toBeLessThanOrEqual(0.1 * 5 * 120 + 1);
    expect(pollsOf(meanwhile, healthy) / 2).toBeGreaterThan(0.85 * pollsOf(before, healthy));
  });

  test('comes back at once when it succeeds again', async () => {
    await stage.budget(5);
    const [wallet = walletId('0x0')] = wallets(1);
    await stage.name(wallets(10));
    await stage.run(60, async (member, { fails }) => (member === wallet ? failed(fails) : SUCCESS));
    await stage.run(320, async () => SUCCESS);
    const after = await stage.run(20, async () => SUCCESS);
    expect(after.get(wallet)).toBeGreaterThanOrEqual(7);
  });

  test('waits for its backoff all the same when it is requested meanwhile', async () => {
    await stage.budget(100);
    await stage.name(wallets(1));
    const poll = await stage.next();
    if (poll === null) throw new Error('nothing was claimed');
    await stage.plan.pollSoon(wallets(1));
    await stage.end(poll, 'failed', { restMs: 5_000 });
    stage.nowMs += 4_900;
    expect(await stage.next()).toBeNull();
    stage.nowMs += 200;
    const again = await stage.next();
    expect(again === null ? null : (await stage.take(again))?.lane).toBe('requested');
  });

  test('and was requested stays so until a poll succeeds, so that it is made even where tracking is over', async () => {
    await stage.budget(100);
    await stage.name(intents(1));
    const pollOnce = async (): Promise<PollStart> => {
      const poll = await stage.next();
      const start = poll === null ? null : await stage.take(poll);
      if (start === null) throw new Error('nothing was claimed');
      return start;
    };
    const failed = async (): Promise<PollStart> => {
      const start = await pollOnce();
      await stage.end(start, 'failed', { restMs: 5_000 });
      stage.nowMs += 5_100;
      return start;
    };
    expect((await failed()).isRequested).toBe(false);
    await failed();
    // It stays among the failing ones, with its time.
    await stage.plan.pollSoon(intents(1));
    for (let fails = 2; fails < 5; fails += 1)
      expect(await failed()).toMatchObject({ isRequested: true, fails });
    await stage.end(await pollOnce(), 'next', { restMs: 1_000 });
    stage.nowMs += 1_100;
    expect((await pollOnce()).isRequested).toBe(false);
  });

  test('retains the alarm that was set for it', async () => {
    await stage.budget(100);
    await stage.name(wallets(1));
    for (const outcome of ['next', 'failed'] as const) {
      const poll = await stage.next();
      if (poll === null) throw new Error('nothing was claimed');
      const next = outcome === 'next' ? { restMs: 1_000, alarmMs: 7_000 } : { restMs: 3_600_000 };
      await stage.end(poll, outcome, next);
      stage.nowMs += 1_000;
    }
    stage.nowMs += 5_100;
    expect((await stage.next())?.member).toBe(wallets(1)[0]);
  });

  test('at every second try, like all others, does not leave the budget unused', async () => {
    await stage.budget(5);
    await stage.name(wallets(40));
    let turn = 0;
    const everySecond = async (_: string, { fails }: { fails: number }) =>
      turn++ % 2 === 0 ? failed(fails) : SUCCESS;
    await stage.run(300, everySecond);
    const polled = await stage.run(120, everySecond);
    const all = [...polled.values()].reduce((sum, count) => sum + count, 0);
    expect(all).toBeGreaterThan(0.4 * 5 * 120);
  });
});

describe('an endpoint group', () => {
  test('is not called unauthorized for one subject that answers 403 among ten', async () => {
    await stage.budget(5);
    const [culprit = walletId('0x0'), ...others] = wallets(10);
    await stage.name(wallets(10));
    const moves: string[] = [];
    const pollOnce = async (member: string, { fails }: { fails: number }) => {
      const { after } = await stage.answer(member, member === culprit ? 'denied' : 'ok');
      moves.push(after);
      return member === culprit
        ? ({ outcome: 'failed', next: { restMs: backoffMs(fails) } } as const)
        : SUCCESS;
    };
    const polled = await stage.run(120, pollOnce);
    expect(new Set(moves)).toEqual(new Set(['ok']));
    expect(pollsOf(polled, others)).toBeGreaterThan(0.9 * 5 * 120);
  });

  test('is unauthorized when three different subjects are refused and none succeeds between; the first success ends it', async () => {
    await stage.budget(5);
    const [one = '', two = '', three = ''] = wallets(3);
    await stage.name(wallets(10));
    await stage.answer(one, 'denied');
    await stage.answer(two, 'denied');
    await stage.answer('other', 'ok');
    expect((await stage.answer(three, 'denied')).after).toBe('ok');
    await stage.answer(one, 'denied');
    expect((await stage.answer(one, 'denied')).after).toBe('ok');
    expect((await stage.answer(two, 'denied')).after).toBe('unauthorized');
    expect(await stage.answer(three, 'ok')).toMatchObject({ before: 'unauthorized', after: 'ok' });
  });

  test('is unauthorized at once when the key is refused', async () => {
    await stage.name(wallets(10));
    expect((await stage.answer('one', 'refused')).after).toBe('unauthorized');
  });

  test('that is down is probed by one subject after the other, one at a time', async () => {
    await stage.budget(50);
    await stage.name(wallets(10));
    await stage.answer('one', 'refused');
    const probed: string[] = [];
    const polled = await stage.run(300, async (member, start) => {
      expect(start.lane).toBe('probe');
      probed.push(member);
      await stage.answer(member, 'refused');
      return { outcome: 'back', next: {} };
    });
    expect(polled.size).toBe(10);
    expect(probed.length).toBeGreaterThanOrEqual(18);
    expect(probed.length).toBeLessThanOrEqual(21);
  });

  test('is probed also by a subject suspected of having ended its process, where there is no other', async () => {
    await stage.budget(5);
    await stage.name(wallets(1));
    await stage.answer(wallets(1)[0] ?? '', 'refused');
    stage.nowMs += 20_000;
    const probe = await stage.next('dead');
    if (probe === null || (await stage.take(probe, 'dead')) === null) throw new Error('nobody probes');
    const polled = await stage.run(400, async (member) => {
      await stage.answer(member, 'ok');
      return SUCCESS;
    });
    expect(polled.get(probe.member)).toBeGreaterThan(100);
  });

  test('with three subjects that are refused for good among ten soon polls the others without failures, also after an outage', async () => {
    await stage.budget(5);
    const [one = '', two = '', three = '', ...others] = wallets(10);
    await stage.name(wallets(10));
    let moves = 0;
    let isDown = false;
    const pollOnce = async (member: string, { fails, lane }: { fails: number; lane: string }) => {
      const isRefused = [one, two, three].includes(member);
      const kind = isDown ? 'unreachable' : isRefused ? 'denied' : 'ok';
      const { before, after } = await stage.answer(member, kind);
      if (before !== after) moves += 1;
      if (kind === 'ok') return SUCCESS;
      return { outcome: lane === 'probe' ? 'back' : 'failed', next: { restMs: backoffMs(fails) } } as const;
    };
    await stage.run(30, pollOnce);
    moves = 0;
    await stage.run(90, pollOnce);
    expect(moves).toBe(0);
    isDown = true;
    await stage.run(60, pollOnce);
    isDown = false;
    moves = 0;
    const polled = await stage.run(120, pollOnce);
    expect(moves).toBe(1);
    expect(pollsOf(polled, others)).toBeGreaterThan(0.9 * 5 * 120);
  });

  test('pauses for a minute at most, for any Retry-After that a 503 names', async () => {
    await stage.budget(5);
    await stage.name(wallets(20));
    const hour = 3_600_000;
    const pollOnce = async (member: string, { fails }: { fails: number }) => {
      await stage.answer(member, 'unreachable', { retryAfterMs: hour });
      return { outcome: 'failed', next: { restMs: backoffMs(fails, Math.min(60_000, hour)) } } as const;
    };
    await stage.run(15, pollOnce);
    expect((await stage.health.state('status')).state).toBe('unreachable');
    let firstMs: number | null = null;
    const beganMs = stage.nowMs;
    await stage.run(70, async (member) => {
      firstMs ??= stage.nowMs - beganMs;
      await stage.answer(member, 'ok');
      return SUCCESS;
    });
    expect(firstMs).not.toBeNull();
    expect(firstMs).toBeLessThanOrEqual(61_000);
    const after = await stage.run(10, async () => SUCCESS);
    expect(after.size).toBe(20);
  });

  test('pauses once for ten 429 that were under way together, then is probed, then goes on', async () => {
    await stage.budget(50);
    await stage.name(wallets(20));
    const pauses: (number | null)[] = [];
    for (let index = 0; index < 10; index++) {
      stage.nowMs += 10;
      pauses.push((await stage.answer(`w${index}`, 'throttled', { agoMs: 300 })).pauseMs);
    }
    expect(pauses.filter((ms) => ms !== null)).toEqual([1_000]);
    expect(await stage.next()).toBeNull();
    stage.nowMs += 1_000;
    const { polls } = await stage.claim(10, 'p1', 100);
    expect(polls).toHaveLength(1);
    expect((await stage.claim(10, 'p1', 100)).polls).toHaveLength(0);
    const [probe] = polls;
    if (probe === undefined) throw new Error('nobody probes');
    const started = await stage.take(probe);
    if (started === null) throw new Error('nothing was claimed');
    expect(await stage.end(started, 'next', SUCCESS.next)).toBe(true);
    await stage.answer(started.member, 'ok');
    stage.nowMs += 1_000;
    expect((await stage.claim(10, 'p1', 100)).polls.length).toBeGreaterThan(1);
  });

  test('pauses for a quarter of an hour at most, for any Retry-After that a 429 names', async () => {
    await stage.budget(5);
    await stage.name(wallets(5));
    await stage.answer('one', 'throttled', { retryAfterMs: 86_400_000 });
    stage.nowMs += 899_000;
    expect(await stage.next()).toBeNull();
    stage.nowMs += 2_000;
    expect(await stage.next()).not.toBeNull();
  });
});

describe('a clock that jumps', () => {
  test('forward and back by an hour darkens nothing', async () => {
    await stage.budget(10);
    await stage.name(wallets(10));
    await stage.run(10, async () => SUCCESS);
    stage.nowMs += 3_600_000;
    await stage.run(20, async () => SUCCESS);
    stage.nowMs -= 3_600_000;
    const polled = await stage.run(20, async () => SUCCESS);
    expect(polled.size).toBe(10);
    expect(pollsOf(polled, wallets(10))).toBeGreaterThan(150);
  });

  test('and takes the clock of the plan with it, lost in a failover, darkens nothing', async () => {
    await stage.budget(10);
    await stage.name(wallets(10));
    stage.nowMs += 3_600_000;
    await stage.run(10, async () => SUCCESS);
    stage.nowMs -= 3_600_000;
    await stage.redis.del(stage.keys.plan('status'));
    await stage.budget(10);
    for (let second = 0; second < 5; second++) await stage.plan.repair('status');
    const polled = await stage.run(20, async () => SUCCESS);
    expect(polled.size).toBe(10);
  });
});

describe('a key that was lost', () => {
  test('of the lanes comes back by the check, a part of the plan at a time', async () => {
    await stage.budget(100);
    const lost = wallets(30);
    await stage.name(lost);
    await stage.redis.del(`${stage.keys.plan('status')}:fair`, `${stage.keys.plan('status')}:latest`);
    const mended: string[] = [];
    for (let round = 0; round < 5; round++) mended.push(...(await stage.plan.repair('status')));
    expect(new Set(mended)).toEqual(new Set(lost));
    const polled = await stage.run(2, async () => SUCCESS);
    expect(polled.size).toBe(30);
  });

  test('of the leases comes back by the check', async () => {
    await stage.budget(100);
    await stage.name(wallets(3));
    await stage.claim(3, 'p1', 100);
    await stage.redis.del(`${stage.keys.plan('status')}:leases`);
    await stage.plan.repair('status');
    for (let second = 0; second < 10; second++) {
      stage.nowMs += 1_000;
      await stage.plan.renew('status', { process: 'p1', polls: [] });
    }
    const polled = await stage.run(2, async () => SUCCESS);
    expect(polled.size).toBe(3);
  });

  test.each([
    ...[
      'offset',
      'last',
      'v',
      'next',
      'budget',
      'graceUntil',
      'failNext',
      'dv',
      'dt',
      'rateAt',
      'used',
      'tokens',
    ].flatMap((field) => ['odd', 'nan', '9e15'].map((value) => ({ hash: 'plan', field, value }) as const)),
    ...['state', 'pausedUntil', 'pausedAt', 'probeAt', 'probes', 'pace', 'paceAt', 'failures'].map(
      (field) => ({ hash: 'endpointGroup', field, value: 'odd' }) as const,
    ),
  ])('or written by something else does not stop the plan: $value as $field of the $hash', async (odd) => {
    await stage.budget(5);
    await stage.name(wallets(2));
    await stage.run(3, async () => SUCCESS);
    await stage.redis.hset(stage.keys[odd.hash]('status'), odd.field, odd.value);
    const pollOnce = async (member: string) => {
      await stage.answer(member, 'ok');
      return SUCCESS;
    };
    await stage.run(5, pollOnce);
    expect((await stage.run(5, pollOnce)).size).toBe(2);
    expect((await stage.health.state('status')).state).toBe('ok');
  });

  test.each(['odd', '9'.repeat(30)])('is found again where the place of the repair is %s', async (place) => {
    await stage.budget(100);
    await stage.name(wallets(3));
    await stage.redis.del(`${stage.keys.plan('status')}:fair`, `${stage.keys.plan('status')}:latest`);
    await stage.redis.hset(stage.keys.repairCursors('status'), ':items', place);
    expect((await stage.plan.repair('status')).length).toBe(3);
  });

  test('or written by something else gives no token twice, however many digits the counter has', async () => {
    await stage.budget(100);
    await stage.name(wallets(6));
    await stage.redis.hset(stage.keys.plan('status'), 'tokens', '9'.repeat(20));
    const tokens: string[] = [];
    for (let times = 0; times < 2; times += 1) {
      const { polls } = await stage.claim(3, 'p1', 100);
      tokens.push(...polls.map(({ token }) => token));
    }
    expect(tokens).toHaveLength(6);
    expect(new Set(tokens).size).toBe(6);
  });

  test('or written by something else harms nothing but itself', async () => {
    await stage.budget(100);
    await stage.name(wallets(3));
    const [odd = ''] = wallets(1);
    await stage.redis.hset(`${stage.keys.plan('status')}:items`, odd, '{"of":"another shape"}');
    await stage.redis.zadd(`${stage.keys.plan('status')}:resting`, 1, 'nobody');
    const polled = await stage.run(5, async () => SUCCESS);
    expect(polled.size).toBe(3);
  });
});
