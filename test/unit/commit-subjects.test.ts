import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LONGEST_SUBJECT, longSubjects } from '../../scripts/commit-subjects.ts';

test('only the commits after the check itself are held to short subjects, and none of a shallow clone', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-subjects-'));
  const whole = join(folder, 'whole');
  const git = (cwd: string, ...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], { cwd }).toString();
  const commit = (subject: string): string => git(whole, 'commit', '-q', '--allow-empty', '-m', subject);
  const fits = 'x'.repeat(LONGEST_SUBJECT);
  try {
    await mkdir(join(whole, 'scripts'), { recursive: true });
    expect(await longSubjects(whole)).toEqual([]);
    git(whole, 'init', '-q');
    commit(`${fits} before`);
    expect(await longSubjects(whole)).toEqual([]);
    await writeFile(join(whole, 'scripts/commit-subjects.ts'), '');
    git(whole, 'add', '.');
    commit(`${fits} with it`);
    commit(fits);
    expect(await longSubjects(whole)).toEqual([]);
    commit(`${fits}y`);
    const [found = '', ...others] = await longSubjects(whole);
    expect(found.slice(found.indexOf(' ') + 1)).toBe(`${fits}y`);
    expect(others).toEqual([]);
    git(folder, 'clone', '-q', '--depth', '1', `file://${whole}`, 'shallow');
    expect(await longSubjects(join(folder, 'shallow'))).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
});
