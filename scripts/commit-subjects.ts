import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

export const LONGEST_SUBJECT = 72;

/** File whose first commit is the last unchecked one. */
const SELF = 'scripts/commit-subjects.ts';

/**
 * Finds commits after the one that added this check with a too long subject, each as its short id and subject. Empty where
 * the folder is no clone, or a shallow one, whose history does not identify them.
 */
export async function longSubjects(root: string): Promise<string[]> {
  const git = async (...args: string[]): Promise<string> =>
    (await run('git', args, { cwd: root })).stdout.trim();
  if ((await git('rev-parse', '--is-shallow-repository').catch(() => '')) !== 'false') return [];
  const added = (await git('log', '--diff-filter=A', '--format=%H', '--', SELF)).split('\n').at(-1) ?? '';
  if (added === '') return [];
  const commits = await git('log', '--format=%h %s', `${added}..HEAD`);
  return commits.split('\n').filter((line) => line.slice(line.indexOf(' ') + 1).length > LONGEST_SUBJECT);
}
