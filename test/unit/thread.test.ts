import { afterEach, describe, expect, test } from 'vitest';
import { Thread } from '../../src/thread.ts';
import { eventually } from '../support/eventually.ts';

const threads: { close(): void }[] = [];
afterEach(() => {
  for (const thread of threads.splice(0)) thread.close();
});

function threadOf(code: string, mostMs = 60_000): Thread<unknown, unknown> {
  const module = `data:text/javascript,${encodeURIComponent(code)}`;
  const thread = new Thread<unknown, unknown>({ module, mostMs });
  threads.push(thread);
  return thread;
}

const COUNTING = 'let tasks = 0; export function work(task) { tasks += 1; return [task, tasks]; }';

describe('a thread', () => {
  test('does one task after the other', async () => {
    const thread = threadOf(COUNTING);
    expect(await Promise.all([thread.run('a'), thread.run('b')])).toEqual([
      ['a', 1],
      ['b', 2],
    ]);
  });

  test('fails for a task that throws, and begins anew for the next', async () => {
    const thread = threadOf(
      'let tasks = 0; export function work(task) { if (task === 1) throw new Error("no"); return (tasks += 1); }',
    );
    expect(await thread.run(0)).toBe(1);
    await expect(thread.run(1)).rejects.toThrow('no');
    expect(await thread.run(0)).toBe(1);
  });

  test('ends with a task that runs too long', async () => {
    const thread = threadOf('export function work(task) { while (task) {} return 0; }', 100);
    await expect(thread.run(true)).rejects.toThrow('is not read within 0.1 s');
  });

  test('that is closed does the tasks that come later in a thread anew', async () => {
    const thread = threadOf(COUNTING);
    await thread.run('a');
    thread.close();
    expect(await thread.run('b')).toEqual(['b', 1]);
  });

  test('that is closed does not begin anew for the tasks that wait', async () => {
    const thread = threadOf(COUNTING);
    const [first, second] = [thread.run('a'), thread.run('b')];
    const outcomes = Promise.allSettled([first, second]);
    thread.close();
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });

  test('that ends by itself between two tasks begins anew for the next', async () => {
    const thread = threadOf(
      `let tasks = 0;
       export function work(task) {
         if (typeof task !== 'string') Atomics.waitAsync(task, 0, 0).value.then(() => { throw new Error('late'); });
         return tasks += 1;
       }`,
    );
    const ending = new Int32Array(new SharedArrayBuffer(4));
    expect(await thread.run(ending)).toBe(1);
    // Not before the answer has come.
    Atomics.notify(ending, 0);
    await eventually('it begins anew', async () => (await thread.run('b').catch(() => null)) === 1);
  });

  test('fails for a task that cannot be copied', async () => {
    const thread = threadOf(COUNTING);
    await expect(thread.run(() => 'a')).rejects.toThrow('could not be cloned');
  });
});
