import { expect, onTestFinished, test, vi } from 'vitest';
import { CACHES } from '../../src/domain/caches.ts';
import { FailedLogins, MAX_WAITING } from '../../src/server/failed-logins.ts';

/** End of a wait, in steps of 100 ms of a clock that moves only here. */
async function waitedMs(wait: Promise<void>): Promise<number> {
  let isOver = false;
  void wait.then(() => {
    isOver = true;
  });
  for (let ms = 0; ms <= 10_000; ms += 100) {
    await vi.advanceTimersByTimeAsync(ms === 0 ? 0 : 100);
    if (isOver) return ms;
  }
  throw new Error('the wait has not ended after 10 s');
}

function stopClock(): void {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
}

test('delays wrong sign-ins of an address from 100 ms, doubling to 5 s, and removes them after a minute', async () => {
  stopClock();
  const logins = new FailedLogins();
  const waits = [];
  for (let count = 0; count < 8; count += 1) waits.push(await waitedMs(logins.wait('a', 1_000)));
  expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  expect(await waitedMs(logins.wait('b', 1_000))).toBe(100);
  expect(await waitedMs(logins.wait('a', 62_000))).toBe(100);
});

test('is full for an address with 20 that wait, and for no other', () => {
  stopClock();
  const logins = new FailedLogins();
  for (let count = 0; count < MAX_WAITING; count += 1) void logins.wait('a', 1_000);
  expect([logins.isFull('a'), logins.isFull('b')]).toEqual([true, false]);
});

test('answers the one that waits longest where the addresses together have too many', async () => {
  stopClock();
  const logins = new FailedLogins();
  const first = logins.wait('first', 1_000);
  const others = Array.from({ length: CACHES.waitingSignIns.entries }, (_, index) =>
    logins.wait(`${index}`, 1_000),
  );
  expect(await waitedMs(first)).toBe(0);
  expect(await waitedMs(Promise.all(others).then(() => undefined))).toBe(100);
});
