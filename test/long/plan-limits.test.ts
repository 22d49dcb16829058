import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { virtualSeconds } from '../../src/domain/cadence/wait.ts';
import { coveredWait, termsOf, watched } from '../../src/domain/cadence/watched.ts';
import { intentId, type SubjectId, walletId } from '../../src/domain/subjects/subject.ts';
import { backoffMs } from '../../src/queues/polls/poll-failures.ts';
import { nextListing } from '../../src/queues/polls/wallet-plan.ts';
import type { ClaimedPoll } from '../../src/store/plan.ts';
import { readPlanState } from '../../src/store/plan-state.ts';
import type { PollStart } from '../../src/store/poll-start.ts';
import { parseFacts } from '../../src/store/wallets.ts';
import { learningOf } from '../support/commit-deps.ts';
import { intents, PlanStage, SUCCESS, wallets } from '../support/plan-stage.ts';

let stage: PlanStage;
beforeEach(() => {
  stage = new PlanStage();
});
afterEach(() => stage.close());

const plan = (): string => stage.keys.plan('status');

/** Leaves the pages of a wallet as the only source of a subject. */
async function shownBy(wallet: SubjectId, subjects: readonly SubjectId[]): Promise<void> {
  const at = await stage.redis.hget(stage.keys.wanted, `s|${wallet}`);
  for (const subject of subjects) {
    await stage.redis.hset(stage.keys.claims(subject), `s|${wallet}`, `${at}::1`);
    await stage.plan.track([subject]);
  }
}

async function pageShows(
  subjects: readonly SubjectId[],
  virtualSeconds: number,
  coverMs = 30_000,
): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const poll = await stage.next();
    const start = poll === null ? null : await stage.take(poll);
    if (start?.member.startsWith('wallet:')) {
      const covered = subjects.map((subject) => ({
        subject,
        alarmMs: null,
        virtualSeconds,
        latestMs: 600_000,
      }));
      await stage.end(start, 'next', SUCCESS.next, { covered, coverMs, shown: subjects });
      return;
    }
    if (start !== null) await stage.end(start, 'next', { virtualSeconds, restMs: 5_000, latestMs: 600_000 });
    stage.nowMs += 250;
  }
  throw new Error('no wallet was polled');
}

describe('a filled transfer that only pages showed', () => {
  test('is polled within its longest wait once it has left all pages, also at a high price', async () => {
    await stage.budget(5);
    const many = wallets(200);
    const [wallet = walletId('0x0')] = many;
    const [filled = intentId('0x0')] = intents(1);
    await stage.name(many);
    const learning = learningOf(stage.redis, stage.keys);
    const nowMs = Date.now();
    const seen = { subject: filled, status: 'filled', route: '', sinceMs: nowMs - 60_000 };
    const virtual = coveredWait(seen, { nowMs, model: learning.model });
    const { limits } = watched(seen, { nowMs, model: learning.model });
    await stage.run(60, async () => SUCCESS, 200);
    await shownBy(wallet, [filled]);
    await pageShows([filled], virtual.virtualSeconds);
    const beganMs = stage.nowMs;
    let firstMs: number | null = null;
    while (firstMs === null && stage.nowMs - beganMs < 4 * 1_000 * limits.mostSeconds) {
      await stage.run(
        20,
        async (member) => {
          if (member === filled) firstMs ??= stage.nowMs - beganMs;
          return SUCCESS;
        },
        400,
      );
    }
    expect(firstMs ?? Number.POSITIVE_INFINITY).toBeLessThan(2 * 1_000 * limits.mostSeconds);
  });
});

describe('beside many wallets', () => {
  test.each([100, 500])('a single named transfer is polled within its longest wait (%i)', async (count) => {
    const [status, ageSeconds] = ['pending', 60];
    await stage.budget(5);
    const [named = intentId('0x0')] = intents(1);
    await stage.name([...wallets(count), named]);
    const { model } = learningOf(stage.redis, stage.keys);
    const facts = (nowMs: number, virtual: number) =>
      parseFacts({ 'polled:head': String(nowMs), 'virtual:head': String(virtual), pages: '1' }, nowMs);
    const times: number[] = [];
    let most = 0;
    const beganMs = stage.nowMs;
    const sinceMs = stage.nowMs - ageSeconds * 1_000;
    await stage.run(
      1_200,
      async (member, start: PollStart) => {
        const { virtual, price, roundSeconds } = start;
        const nowMs = stage.nowMs;
        if (member === named) {
          times.push(nowMs - beganMs);
          const changes = watched({ subject: named, status, route: '', sinceMs }, { nowMs, model });
          const { limits } = changes;
          most = limits.mostSeconds;
          const terms = termsOf(changes, nowMs);
          return {
            outcome: 'next',
            next: {
              virtualSeconds: virtualSeconds({ terms, constant: 0, price }),
              restMs: 1_000 * limits.leastSeconds,
              latestMs: 1_000 * limits.mostSeconds,
            },
          };
        }
        const next = nextListing(
          model,
          { nowMs, virtual, price, roundSeconds },
          { facts: facts(nowMs, virtual), open: [] },
        );
        return {
          outcome: 'next',
          next: {
            virtualSeconds: next.virtualSeconds,
            restMs: next.restMs,
            latestMs: next.latestMs ?? 30_000,
          },
        };
      },
      400,
    );
    times.push(stage.nowMs - beganMs);
    const gaps = times.slice(1).map((at, index) => (at - (times[index] ?? 0)) / 1_000);
    expect(Math.max(...gaps)).toBeLessThan(2 * most);
  });
});

describe('a subject on pages', () => {
  test('is not late by an old longest wait when pages release it', async () => {
    await stage.budget(5);
    const [wallet = walletId('0x0')] = wallets(1);
    const shown = intents(30);
    await stage.name(wallets(1));
    await shownBy(wallet, shown);
    // Each is polled once by itself, and then shown by pages for ten minutes.
    await stage.run(30, async () => SUCCESS);
    for (let round = 0; round < 40; round++) {
      await pageShows(shown, 10, 60_000);
      stage.nowMs += 15_000;
    }
    let lateMs = 0;
    let overdue = 0;
    const polled = new Set<string>();
    for (let step = 0; step < 200; step++) {
      await stage.run(0.5, async (member, start: PollStart) => {
        if (polled.has(member) || member === wallet) return SUCCESS;
        polled.add(member);
        lateMs = Math.max(lateMs, start.lateMs);
        return SUCCESS;
      });
      overdue = Math.max(overdue, (await readPlanState(stage.redis, stage.keys, 'status')).overdueSeconds);
    }
    expect(lateMs).toBeLessThan(60_000);
    expect(overdue).toBeLessThan(60);
  });
});

describe('the clock of a plan that is lost', () => {
  test('does not let a claim of before wait for a slot an hour ahead', async () => {
    await stage.budget(5);
    await stage.name(wallets(2));
    await stage.run(2, async () => SUCCESS);
    stage.nowMs += 3_600_000;
    await stage.run(2, async () => SUCCESS);
    stage.nowMs += 2_000;
    const poll = await stage.next();
    if (poll === null) throw new Error('nothing was claimed');
    stage.nowMs -= 3_600_000;
    await stage.redis.del(plan());
    await stage.budget(5);
    const start = await stage.take(poll);
    expect(start?.inMs ?? 0).toBeLessThan(60_000);
  });

  test('does not let a suspect wait for longer than five minutes', async () => {
    await stage.budget(5);
    const [odd = walletId('0x0')] = wallets(2);
    await stage.name(wallets(2));
    await stage.run(2, async () => SUCCESS);
    stage.nowMs += 3_600_000;
    await stage.run(2, async () => SUCCESS);
    for (const place of [':resting', ':fair', ':bound', ':latest', ':first', ':requested'])
      await stage.redis.zrem(plan() + place, odd);
    await stage.redis.hset(`${plan()}:crashes`, odd, '3');
    await stage.redis.zadd(`${plan()}:suspects`, stage.nowMs + 120_000, odd);
    stage.nowMs -= 3_600_000;
    await stage.redis.del(plan());
    await stage.budget(5);
    for (let second = 0; second < 5; second++) await stage.plan.repair('status');
    const polled = await stage.run(420, async () => SUCCESS, 500);
    expect(polled.get(odd) ?? 0).toBeGreaterThan(0);
  });
});

describe('a process that begins anew again and again', () => {
  test('gets back the state of the one before, though each lives for seconds only', async () => {
    await stage.budget(50);
    const all = wallets(20);
    await stage.name(all);
    const lost = new Set<string>();
    const lastAt = new Map<string, number>();
    for (let life = 0; life < 20; life++) {
      const process = `p${life}`;
      for (let ms = 0; ms < 7_000; ms += 250) {
        const { polls } = await stage.claim(20, process, 100);
        for (const poll of polls) {
          const start = await stage.take(poll, process);
          if (start === null) continue;
          lastAt.set(start.member, stage.nowMs);
          await stage.end(start, 'next', SUCCESS.next);
        }
        if (ms % 2_000 === 0) await stage.plan.renew('status', { process, polls: [] });
        stage.nowMs += 250;
      }
      // It dies with two polls under way.
      stage.nowMs += 250;
      const { polls } = await stage.claim(2, process, 100);
      for (const poll of polls) if ((await stage.take(poll, process)) !== null) lost.add(poll.member);
      stage.nowMs += 6_000;
    }
    const dark = all.filter((wallet) => stage.nowMs - (lastAt.get(wallet) ?? 0) > 60_000);
    expect(dark).toEqual([]);
  });
});

describe('a subject that fails while it is requested', () => {
  test('backs off all the same', async () => {
    await stage.budget(5);
    const [broken = intentId('0x0')] = intents(1);
    await stage.name([broken]);
    let fails = 0;
    const endMs = stage.nowMs + 600_000;
    let requestMs = stage.nowMs;
    const request = async (): Promise<void> => {
      if (stage.nowMs < requestMs) return;
      requestMs = stage.nowMs + 15_000;
      await stage.plan.pollSoon([broken]);
    };
    while (stage.nowMs < endMs) {
      await request();
      const poll = await stage.next();
      const start = poll === null ? null : await stage.take(poll);
      if (start === null) {
        stage.nowMs += 500;
        continue;
      }
      fails = Math.max(fails, start.fails);
      for (let ms = 0; ms < 15_000; ms += 1_000) {
        stage.nowMs += 1_000;
        await request();
        await stage.plan.renew('status', { process: 'p1', polls: [start] });
      }
      await stage.end(start, 'failed', { restMs: backoffMs(start.fails) });
    }
    expect(fails).toBeGreaterThan(3);
  });
});

describe('foreign members', () => {
  test('of the items of a plan do not come again and again', async () => {
    await stage.budget(5);
    await stage.name(wallets(10));
    for (let index = 0; index < 50; index++)
      await stage.redis.hset(`${plan()}:items`, `foreign${index}`, 'fair 0 0 0 0 0 0');
    for (let round = 0; round < 10; round++) await stage.plan.repair('status');
    let foreign = 0;
    for (let ms = 0; ms < 60_000; ms += 200) {
      const { polls } = await stage.claim(20, 'p1', 100);
      for (const poll of polls) {
        if (poll.member.startsWith('foreign')) {
          foreign += 1;
          await expect(stage.take(poll)).rejects.toThrow();
          continue;
        }
        const start = await stage.take(poll);
        if (start === null) continue;
        await stage.end(start, 'next', SUCCESS.next);
      }
      stage.nowMs += 200;
    }
    expect(foreign).toBeLessThanOrEqual(60);
  });
});

describe('an endpoint group', () => {
  test('three refused for good among ten make few events at a start', async () => {
    await stage.budget(10);
    const [one = '', two = '', three = ''] = wallets(10);
    await stage.name(wallets(10));
    const moves: string[] = [];
    const pending: { start: PollStart; at: number }[] = [];
    const endMs = stage.nowMs + 60_000;
    while (stage.nowMs < endMs) {
      for (const poll of (await stage.claim(20, 'p1', 100)).polls) {
        const start = await stage.take(poll);
        if (start !== null) pending.push({ start, at: stage.nowMs + start.inMs + 300 });
      }
      stage.nowMs += 50;
      for (const done of pending.filter(({ at }) => at <= stage.nowMs)) {
        pending.splice(pending.indexOf(done), 1);
        const { start } = done;
        const refused = [one, two, three].includes(start.member);
        if (refused) {
          const { before, after } = await stage.answer(start.member, 'denied', { agoMs: 300 });
          if (before !== after) moves.push(`${stage.nowMs - endMs + 60_000}: ${after}`);
          await stage.end(start, start.lane === 'probe' ? 'back' : 'failed', {
            restMs: backoffMs(start.fails),
          });
        } else if (await stage.end(start, 'next', SUCCESS.next)) {
          const { before, after } = await stage.answer(start.member, 'ok', { agoMs: 300 });
          if (before !== after) moves.push(`${stage.nowMs - endMs + 60_000}: ${after}`);
        }
      }
    }
    expect(moves.length).toBeLessThanOrEqual(4);
  });

  test('is not unauthorized by one 403 beside two timeouts', async () => {
    await stage.name(wallets(10));
    const [one = '', two = '', three = ''] = wallets(10);
    await stage.answer(one, 'unreachable');
    await stage.answer(two, 'unreachable');
    expect((await stage.answer(three, 'denied')).after).toBe('ok');
  });

  test('that is unreachable is not called unauthorized for the one that is refused for good', async () => {
    await stage.budget(5);
    const [culprit = ''] = wallets(10);
    await stage.name(wallets(10));
    const moves: string[] = [];
    let isDown = false;
    const pollOnce = async (member: string, { fails, lane }: PollStart) => {
      const kind = member === culprit ? 'denied' : isDown ? 'unreachable' : 'ok';
      const { before, after } = await stage.answer(member, kind);
      if (before !== after) moves.push(after);
      if (kind === 'ok') return SUCCESS;
      return { outcome: lane === 'probe' ? 'back' : 'failed', next: { restMs: backoffMs(fails) } } as const;
    };
    await stage.run(20, pollOnce);
    isDown = true;
    await stage.run(180, pollOnce);
    isDown = false;
    await stage.run(60, pollOnce);
    expect(moves).toEqual(['unreachable', 'ok']);
  });
});

describe('a subject that is answered 429', () => {
  test('alone, again and again, does not make the others wait', async () => {
    await stage.budget(5);
    await stage.name(wallets(10));
    const [culprit = ''] = wallets(10);
    const pollOnce = async (member: string, { fails, lane }: PollStart) => {
      if (member !== culprit) {
        await stage.answer(member, 'ok');
        return SUCCESS;
      }
      await stage.answer(member, 'throttled', { retryAfterMs: 30_000 });
      return {
        outcome: lane === 'probe' ? 'back' : 'failed',
        next: { restMs: backoffMs(fails) },
      } as const;
    };
    await stage.run(120, pollOnce);
    const polled = await stage.run(60, pollOnce);
    for (const wallet of wallets(10).slice(1)) expect(polled.get(wallet) ?? 0).toBeGreaterThan(15);
  });

  test('like others is a reason to pause, each time', async () => {
    await stage.budget(5);
    await stage.name(wallets(10));
    let pauses = 0;
    await stage.run(120, async (member, { fails }) => {
      const second = Math.floor(stage.nowMs / 1_000) % 20;
      const { pauseMs } = await stage.answer(member, second < 3 ? 'throttled' : 'ok', {
        retryAfterMs: 5_000,
      });
      if (pauseMs !== null) pauses++;
      return second < 3 ? { outcome: 'failed', next: { restMs: backoffMs(fails) } } : SUCCESS;
    });
    expect(pauses).toBeGreaterThanOrEqual(5);
  });
});

describe('a poll on its way to a worker', () => {
  /** Delays each job by six seconds on its way to its worker. Returns the number of polls in a minute. */
  async function polledLate(isReported: boolean): Promise<number> {
    await stage.budget(5);
    await stage.name(wallets(4));
    let [polled, returned] = [0, 0];
    let imported: { poll: ClaimedPoll; atMs: number }[] = [];
    for (let step = 0; step < 600; step++) {
      stage.nowMs += 100;
      for (const { poll } of imported.filter(({ atMs }) => atMs <= stage.nowMs - 6_000)) {
        const start = await stage.take(poll);
        if (start === null) continue;
        polled++;
        await stage.end(start, 'next', { restMs: 1_000 });
      }
      imported = imported.filter(({ atMs }) => atMs > stage.nowMs - 6_000);
      const reported = isReported ? imported.map(({ poll }) => poll) : [];
      const claimed = await stage.claim(10, 'p1', 0, reported);
      returned += claimed.returned;
      imported.push(...claimed.polls.map((poll) => ({ poll, atMs: stage.nowMs })));
    }
    expect(returned > 0).toBe(!isReported);
    return polled;
  }

  test('stays there while the process reports it, for any delay of the workers', async () => {
    expect(await polledLate(true)).toBeGreaterThanOrEqual(24);
  });

  test('goes back where no process knows of it', async () => {
    expect(await polledLate(false)).toBe(0);
  });
});
