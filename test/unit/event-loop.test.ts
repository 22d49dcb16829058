import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { itsTurn } from '../../src/event-loop.ts';

/** Holds the event loop, as work does. */
function hold(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

test('pieces of work run in the order of their requests', async () => {
  const ran: number[] = [];
  await Promise.all(
    [0, 1, 2, 3].map(async (piece) => {
      await itsTurn();
      ran.push(piece);
    }),
  );
  expect(ran).toEqual([0, 1, 2, 3]);
});

test('many pieces take little longer each than few', async () => {
  // CPU time: a busy machine changes it little.
  const cpuMsOf = async (count: number, rounds: number): Promise<number> => {
    const { user: before } = process.cpuUsage();
    for (let round = 0; round < rounds; round += 1)
      await Promise.all(Array.from({ length: count }, () => itsTurn()));
    return (process.cpuUsage().user - before) / 1_000;
  };
  await cpuMsOf(5_000, 2);
  const few = await cpuMsOf(5_000, 20);
  expect(await cpuMsOf(100_000, 1)).toBeLessThan(20 * few);
});

test('a piece runs at once where no other is under way', async () => {
  await nextTurn();
  const ran: string[] = [];
  const turn = nextTurn().then(() => ran.push('turn'));
  await itsTurn();
  ran.push('piece');
  await turn;
  expect(ran).toEqual(['piece', 'turn']);
});

test('long pieces leave turns of the event loop to everything else', async () => {
  const ran: string[] = [];
  let isOver = false;
  const others = (async () => {
    while (!isOver) {
      ran.push('other');
      await nextTurn();
    }
  })();
  await Promise.all(
    ['first', 'second', 'third'].map(async (piece) => {
      await itsTurn();
      hold(5);
      ran.push(piece);
    }),
  );
  isOver = true;
  await others;
  const betweenOf = (from: string, to: string): string[] => ran.slice(ran.indexOf(from) + 1, ran.indexOf(to));
  expect(betweenOf('first', 'second')).toContain('other');
  expect(betweenOf('second', 'third')).toContain('other');
});

test('a piece that fails holds up none after it', async () => {
  const failed = itsTurn().then(() => {
    throw new Error('failed');
  });
  await expect(failed).rejects.toThrow('failed');
  await itsTurn();
});
