import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Duty, type DutyRules, sharedWaitMs } from '../../src/duty.ts';

const errors: unknown[] = [];
let rounds = 0;

function dutyOf(rules: Partial<DutyRules>): Duty {
  const run: DutyRules['run'] = async (signal) => {
    rounds += 1;
    return rules.run?.(signal);
  };
  return new Duty({ everyMs: 1_000, onError: (error) => void errors.push(error), ...rules, run });
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  errors.length = 0;
  rounds = 0;
});

afterEach(() => {
  vi.useRealTimers();
});

const roundsIn = async (ms: number): Promise<number> => {
  await vi.advanceTimersByTimeAsync(ms);
  return rounds;
};

describe('a duty', () => {
  test('waits after each round as long as the round returns, or its usual time', async () => {
    let waitMs: number | undefined = 200;
    const duty = dutyOf({ run: async () => (waitMs === undefined ? undefined : { waitMs }) });
    duty.start(50);
    expect(await roundsIn(49)).toBe(0);
    expect(await roundsIn(1)).toBe(1);
    expect(await roundsIn(199)).toBe(1);
    waitMs = undefined;
    expect(await roundsIn(1)).toBe(2);
    expect(await roundsIn(999)).toBe(2);
    expect(await roundsIn(1)).toBe(3);
    await duty.close();
  });

  test('begins the next round at once after a wait of 0, without a timer', async () => {
    const duty = dutyOf({ run: async () => (rounds < 5 ? { waitMs: 0 } : undefined) });
    duty.start(0);
    expect(await roundsIn(0)).toBe(5);
    expect(vi.getTimerCount()).toBe(1);
    await duty.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('ends shared waits of a second or more together, by one timer, and never later', async () => {
    await roundsIn(300);
    const [first, second, slow] = [1_000, 1_000, 2_000].map((everyMs) => dutyOf({ everyMs, isShared: true }));
    first?.start();
    await roundsIn(100);
    second?.start();
    slow?.start();
    expect(vi.getTimerCount()).toBe(2);
    expect(await roundsIn(599)).toBe(0);
    expect(await roundsIn(1)).toBe(2);
    expect(vi.getTimerCount()).toBe(1);
    expect(await roundsIn(999)).toBe(2);
    expect(await roundsIn(1)).toBe(5);
    first?.soon(400);
    expect(await roundsIn(399)).toBe(5);
    expect(await roundsIn(1)).toBe(6);
    await Promise.all([first?.close(), second?.close()]);
    expect(vi.getTimerCount()).toBe(1);
    await slow?.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each([
    { atMs: 0, ms: 999, sharedMs: 999 },
    { atMs: 0, ms: 1_000, sharedMs: 1_000 },
    { atMs: 1, ms: 1_000, sharedMs: 999 },
    { atMs: 999, ms: 1_000, sharedMs: 1_001 },
    { atMs: 400, ms: 5_000, sharedMs: 4_600 },
  ])('waits $sharedMs ms for a shared wait of $ms ms at $atMs ms', async ({ atMs, ms, sharedMs }) => {
    await vi.advanceTimersByTimeAsync(atMs);
    expect(sharedWaitMs(ms)).toBe(sharedMs);
  });

  test('begins sooner on request, and never later', async () => {
    const duty = dutyOf({});
    duty.start();
    duty.soon(300);
    duty.soon(600);
    expect(await roundsIn(299)).toBe(0);
    expect(await roundsIn(1)).toBe(1);
    duty.soon();
    expect(await roundsIn(0)).toBe(2);
    expect(await roundsIn(1_000)).toBe(3);
    await duty.close();
  });

  test('makes one round at a time; a request meanwhile leads to one more', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const duty = dutyOf({ run: async () => (rounds === 1 ? promise : undefined) });
    duty.start(0);
    await roundsIn(0);
    for (let request = 0; request < 3; request += 1) duty.soon();
    duty.soon(500);
    expect(await roundsIn(5_000)).toBe(1);
    resolve();
    expect(await roundsIn(0)).toBe(2);
    expect(await roundsIn(999)).toBe(2);
    await duty.close();
  });

  test('begins nothing before its start, and without a usual time only what is requested', async () => {
    const duty = dutyOf({ everyMs: Number.POSITIVE_INFINITY });
    duty.soon();
    expect(duty.isOn).toBe(false);
    expect(await roundsIn(5_000)).toBe(0);
    duty.start();
    expect(duty.isOn).toBe(true);
    expect(await roundsIn(5_000)).toBe(1);
    duty.soon(100);
    expect(await roundsIn(5_000)).toBe(2);
    await duty.close();
    expect(duty.isOn).toBe(false);
  });

  test('counts from the begin of a round where it is steady, and begins at once after a longer one', async () => {
    const work = [300, 1_500, 0];
    const duty = dutyOf({
      isSteady: true,
      run: () => new Promise((resolve) => setTimeout(resolve, work[rounds - 1] ?? 0)),
    });
    duty.start();
    expect(await roundsIn(1_000)).toBe(1);
    expect(await roundsIn(999)).toBe(1);
    expect(await roundsIn(1)).toBe(2);
    expect(await roundsIn(1_499)).toBe(2);
    expect(await roundsIn(1)).toBe(3);
    await Promise.all([duty.close(), roundsIn(10)]);
  });

  test.each([
    0, 1, 2, 3, 4, 5, 6, 8, 12,
  ])('loses no request that comes %i microtasks after the end of a round', async (count) => {
    const duty = dutyOf({
      run: async () => {
        if (rounds > 1) return;
        void (async () => {
          for (let turn = 0; turn < count; turn += 1) await null;
          duty.soon();
        })();
      },
    });
    duty.start(0);
    expect(await roundsIn(100)).toBe(2);
    await duty.close();
  });

  test('goes on without a round that does not end, and closes', async () => {
    const duty = dutyOf({ mostMs: 500, run: () => new Promise(() => undefined) });
    duty.start(0);
    expect(await roundsIn(1_499)).toBe(1);
    expect(await roundsIn(1)).toBe(2);
    await Promise.all([duty.close(), roundsIn(500)]);
    expect(errors).toEqual([]);
  });

  test('reports a failed round, and waits before the next whatever is requested', async () => {
    const duty = dutyOf({
      onError: (error) => {
        errors.push(error);
        return { waitMs: 400 };
      },
      run: async () => {
        if (rounds > 1) return;
        duty.soon();
        throw new Error('away');
      },
    });
    duty.start(0);
    expect(await roundsIn(399)).toBe(1);
    expect(errors).toEqual([new Error('away')]);
    expect(await roundsIn(1)).toBe(2);
    await duty.close();
  });

  test('ends after the round under way, whose failure is not reported, and begins nothing more', async () => {
    const { promise, reject } = Promise.withResolvers<void>();
    let signal: AbortSignal | undefined;
    const duty = dutyOf({
      run: async (given) => {
        signal = given;
        await promise;
      },
    });
    duty.start(0);
    await roundsIn(0);
    const closed = Promise.all([duty.close(), duty.close()]);
    expect(signal?.aborted).toBe(true);
    reject(new Error('cut off'));
    await closed;
    duty.soon();
    duty.start(0);
    expect(await roundsIn(10_000)).toBe(1);
    expect(errors).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
