import { describe, expect, test } from 'vitest';
import { ResponseDates } from '../../src/daemon/clocks.ts';
import { redisTimeMs } from '../../src/store/commands.ts';
import { ConfirmedTime } from '../../src/store/confirmed-time.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { ShiftedClock } from '../support/shifted-clock.ts';

const { later } = opening();
const GCC = needs(PARTS.gcc);

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** More than a test takes, and far less than the skew of the clocks. */
const SLACK = 30_000;

/** A Redis whose clock the test sets, and processes whose clocks it sets. */
async function stage() {
  const clock = new ShiftedClock();
  later(async () => clock.close());
  const server = await RedisProcess.create({ durable: false, env: clock.env });
  later(() => server.close());
  const redis = connect({ kind: 'server', url: server.url });
  later(() => disconnect(redis));
  const keys = new Keys(testPrefix());
  const realMs = (): number => performance.timeOrigin + performance.now();
  let passedMs = 0;
  let aheadMs = 0;
  const set = (): void => clock.shift(passedMs + aheadMs);
  const process = (name: string) => {
    const own = { wallAheadMs: 0 };
    const monotonicMs = (): number => realMs() + passedMs;
    const dates = new ResponseDates(monotonicMs);
    const time = new ConfirmedTime({
      redis,
      keys,
      process: name,
      upstreamAhead: (at) => dates.leadsOverRedis(at),
      onCompared: () => undefined,
      onError: (error) => {
        throw error;
      },
      clocks: { monotonicMs, wallMs: () => realMs() + passedMs + aheadMs + own.wallAheadMs },
    });
    /** `count` responses of an upstream that is `ms` ahead of the true time, 2 s apart. */
    const respond = (count: number, ms = 0): void => {
      for (let index = 0; index < count; index += 1) {
        stage.pass(2_000);
        dates.note(realMs() + passedMs + ms);
      }
    };
    return { own, time, respond };
  };
  const stage = {
    redis,
    keys,
    process,
    pass: (ms: number): void => {
      passedMs += ms;
      set();
    },
    setAhead: (ms: number): void => {
      aheadMs = ms;
      set();
    },
    trueMs: () => realMs() + passedMs,
    events: async () =>
      (await new EventLog(redis, keys).after('0-0', 100)).entries.flatMap((entry) =>
        entry.kind === 'operator' ? [entry.event] : [],
      ),
  };
  return stage;
}

function expectNear(ms: number | undefined, expectedMs: number): void {
  expect(ms ?? 0).toBeGreaterThan(expectedMs - SLACK);
  expect(ms ?? 0).toBeLessThan(expectedMs + SLACK);
}

describe.skipIf(GCC.skip)(`the confirmed time${GCC.note}`, () => {
  test('is Redis time from the first poll on, and goes on with it', async () => {
    const { process, pass, trueMs, events } = await stage();
    const { time } = process('one');
    expect((await time.read()).confirmedMs).toBe(0);
    for (let rounds = 0; rounds < 3; rounds += 1) {
      expect(await time.compare()).toMatchObject({ state: 'steady', isHeld: false });
      expectNear((await time.read()).confirmedMs, trueMs());
      pass(10 * MINUTE);
    }
    expect(await events()).toEqual([]);
  });

  test('goes on with the monotonic clock after a jump of 31 days, until the clock is right again', async () => {
    const { process, pass, setAhead, trueMs, events, redis } = await stage();
    const { time, respond } = process('one');
    await time.compare();
    respond(5);
    setAhead(31 * DAY);
    expect(time.mayActAt(await redisTimeMs(redis))).toBe(false);
    expect(await time.compare()).toMatchObject({ state: 'jumped', isHeld: true });
    for (let rounds = 0; rounds < 5; rounds += 1) {
      pass(20_000);
      respond(1);
      expectNear((await time.compare())?.confirmedMs, trueMs());
    }
    setAhead(0);
    expect(await time.compare()).toMatchObject({ state: 'steady', isHeld: false });
    expectNear((await time.read()).confirmedMs, trueMs());
    const reports = await events();
    expect(reports.map(({ type }) => type)).toEqual(['intentwatch.clock_jumped']);
    expectNear(1_000 * Number(reports[0]?.data.record.aheadSeconds), 31 * DAY);
    expect(reports[0]?.data.record.clock).toBe('redis');
  });

  test('holds again the acts of a clock that jumps again once its hour is over', async () => {
    const { process, pass, setAhead, events, redis } = await stage();
    const { time } = process('one');
    await time.compare();
    setAhead(2 * HOUR);
    await time.compare();
    pass(HOUR);
    expect(await time.compare()).toMatchObject({ state: 'jumped', isHeld: false });
    expect(time.mayActAt(await redisTimeMs(redis))).toBe(true);
    setAhead(31 * DAY);
    expect(time.mayActAt(await redisTimeMs(redis))).toBe(false);
    expect(await time.compare()).toMatchObject({ state: 'jumped', isHeld: true });
    expect(time.mayActAt(await redisTimeMs(redis))).toBe(false);
    pass(HOUR);
    expect(await time.compare()).toMatchObject({ state: 'jumped', isHeld: false });
    expect(time.mayActAt(await redisTimeMs(redis))).toBe(true);
    const words = (await events()).map(({ data }) => data.status);
    expect(words.filter((word) => word === 'clock_jumped')).toHaveLength(2);
  });

  test('is Redis time again when three responses agree with it, of whichever process', async () => {
    const { process, pass, setAhead, trueMs, events } = await stage();
    const [one, other] = [process('one'), process('other')];
    setAhead(-DAY);
    await one.time.compare();
    await other.time.compare();
    setAhead(0);
    expect(await one.time.compare()).toMatchObject({ state: 'jumped' });
    one.respond(2);
    expect(await one.time.compare()).toMatchObject({ state: 'jumped' });
    expect(await other.time.compare()).toMatchObject({ state: 'jumped' });
    other.respond(1);
    expectNear((await one.time.compare())?.confirmedMs, trueMs() - DAY);
    expect(await other.time.compare()).toMatchObject({ state: 'steady', isHeld: false });
    expect(await one.time.compare()).toMatchObject({ state: 'steady' });
    expectNear((await one.time.read()).confirmedMs, trueMs());
    pass(MINUTE);
    expect(await one.time.compare()).toMatchObject({ state: 'steady' });
    expect(await events()).toHaveLength(1);
  });

  test('is Redis time after a day by the monotonic clock, also where no response comes', async () => {
    const { process, pass, setAhead, trueMs, events } = await stage();
    const { time } = process('one');
    await time.compare();
    setAhead(3 * HOUR);
    await time.compare();
    for (let hours = 0; hours < 24; hours += 1) {
      expect(await time.compare()).toMatchObject({ state: 'jumped', isHeld: hours < 1 });
      pass(HOUR + 1_000);
    }
    expect(await time.compare()).toMatchObject({ state: 'steady', isHeld: false });
    expectNear((await time.read()).confirmedMs, trueMs() + 3 * HOUR);
    expect((await events()).map(({ data }) => data.status)).toEqual(['clock_jumped', 'clock_differs']);
  });

  test('does not count the pause of a process as a jump, nor that of another one that starts meanwhile', async () => {
    const { process, pass, trueMs, events } = await stage();
    const [frozen, other] = [process('frozen'), process('other')];
    await frozen.time.compare();
    pass(DAY);
    await frozen.time.compare();
    pass(5_000);
    await other.time.compare();
    for (let rounds = 0; rounds < 10; rounds += 1) {
      pass(MINUTE);
      await other.time.compare();
    }
    expect(await frozen.time.compare()).toMatchObject({ state: 'steady' });
    expectNear((await frozen.time.read()).confirmedMs, trueMs());
    expect(await events()).toEqual([]);
  });

  test('stays at the stop of all processes until responses confirm the elapsed time', async () => {
    const { process, pass, trueMs, events } = await stage();
    const before = process('before');
    await before.time.compare();
    before.respond(5);
    await before.time.compare();
    pass(31 * DAY);
    const after = process('after');
    expect(await after.time.compare()).toMatchObject({ state: 'stopped', isHeld: true });
    pass(MINUTE);
    expectNear((await after.time.compare())?.confirmedMs, trueMs() - 31 * DAY);
    after.respond(3);
    expect(await after.time.compare()).toMatchObject({ state: 'steady', isHeld: false });
    expectNear((await after.time.read()).confirmedMs, trueMs());
    expect(await events()).toEqual([]);
  });

  test('is not brought back by a Redis that went back while a process runs', async () => {
    const { process, pass, trueMs, redis, keys, events } = await stage();
    const { time } = process('one');
    await time.compare();
    const older = await redis.dumpBuffer(keys.clock);
    for (let hours = 0; hours < 3; hours += 1) {
      pass(HOUR);
      await time.compare();
    }
    await redis.restore(keys.clock, 0, older, 'REPLACE');
    await time.compare();
    expect(await time.compare()).toMatchObject({ state: expect.stringMatching(/steady|stopped/) });
    const { confirmedMs } = await time.read();
    expect(confirmedMs).toBeLessThanOrEqual(trueMs() + SLACK);
    expect(await events()).toEqual([]);
  });

  test('is held back where the log of an earlier version ended long ago', async () => {
    const { process, pass, trueMs, redis, keys } = await stage();
    await redis.xadd(keys.events, '*', 'v', '1', 'kind', 'subscribers');
    pass(31 * DAY);
    const { time } = process('one');
    expect(await time.compare()).toMatchObject({ state: 'stopped' });
    expectNear((await time.read()).confirmedMs, trueMs() - 31 * DAY);
  });

  test('goes back where responses show it ahead', async () => {
    const { process, setAhead, trueMs } = await stage();
    const { time, respond } = process('one');
    setAhead(31 * DAY);
    await time.compare();
    setAhead(0);
    expect(await time.compare()).toMatchObject({ state: 'jumped' });
    respond(3);
    expect(await time.compare()).toMatchObject({ state: 'steady' });
    expectNear((await time.read()).confirmedMs, trueMs());
  });

  test('one wrong response has no effect', async () => {
    const { process, setAhead } = await stage();
    const { time, respond } = process('one');
    await time.compare();
    respond(1, 6 * HOUR);
    expect(await time.compare()).toMatchObject({ upstreamAheadMs: null, isHeld: false });
    respond(2);
    expect(await time.compare()).toMatchObject({ upstreamAheadMs: null, isHeld: false });
    respond(1);
    expectNear((await time.compare())?.upstreamAheadMs ?? Number.NaN, 0);
    setAhead(6 * HOUR);
    expect(await time.compare()).toMatchObject({ state: 'jumped' });
  });

  test('an upstream that is off lets reminders wait for an hour, and then names itself, once', async () => {
    const { process, pass, events } = await stage();
    const { time, respond } = process('one');
    await time.compare();
    respond(5, 2 * HOUR);
    const off = await time.compare();
    expect(off).toMatchObject({ state: 'steady', isHeld: true });
    expectNear(off?.upstreamAheadMs ?? 0, 2 * HOUR);
    for (let quarters = 0; quarters < 5; quarters += 1) {
      pass(15 * MINUTE);
      respond(5, 2 * HOUR);
      await time.compare();
    }
    expect(await time.compare()).toMatchObject({ state: 'steady', isHeld: false });
    const reports = await events();
    expect(reports.map(({ type }) => type)).toEqual(['intentwatch.clock_differs']);
    expect(reports[0]?.data.record.clock).toBe('upstream');
    expectNear(1_000 * Number(reports[0]?.data.record.aheadSeconds), 2 * HOUR);
  });

  test('the process whose clock is wrong is named, or Redis where the upstream agrees with the process', async () => {
    const { process, pass, events, setAhead } = await stage();
    const one = process('one');
    one.own.wallAheadMs = HOUR;
    expect(await one.time.compare()).toMatchObject({ state: 'steady', isHeld: true });
    pass(HOUR);
    expect(await one.time.compare()).toMatchObject({ isHeld: false });
    one.own.wallAheadMs = 0;
    pass(2 * MINUTE);
    await one.time.compare();
    setAhead(-3 * HOUR);
    one.own.wallAheadMs = 3 * HOUR;
    await one.time.compare();
    for (let hours = 0; hours < 2; hours += 1) {
      pass(HOUR);
      one.respond(5);
      await one.time.compare();
    }
    const named = (await events()).map(({ data }) => [data.status, data.record.clock]);
    expect(named).toEqual([
      ['clock_differs', 'process'],
      ['clock_jumped', 'redis'],
      ['clock_differs', 'redis'],
    ]);
  });
});
