import { readdir, readFile } from 'node:fs/promises';
import { test } from 'vitest';
import { expectNothingLeft, npmStart } from '../support/npm-start.ts';

async function treeOf(root: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const parents = new Map<number, number>();
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    parents.set(Number(pid), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
  }
  const tree = [root];
  for (const parent of tree) {
    for (const [pid, its] of parents) if (its === parent) tree.push(pid);
  }
  return tree;
}

test('SIGTERM to everything below npm start ends the daemon, and no process holds its folder', async ({
  onTestFinished,
}) => {
  const started = await npmStart(onTestFinished);
  for (const pid of await treeOf(started.npm.pid)) {
    try {
      process.kill(pid, 'SIGTERM');
    } catch (error) {
      // One may have exited already because of another's signal.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
  await started.npm.ending();
  await expectNothingLeft(started);
});
