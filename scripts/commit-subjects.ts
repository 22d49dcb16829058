import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The most characters that the subject of a commit has. */
export const LONGEST_SUBJECT = 72;

/** The file whose first commit is the last one that is not checked. */
const SELF = 'scripts/commit-subjects.ts';

/**
 * Finds the commits after the one that added this check whose subject is too long, each as its short id and subject. None where
 * the folder is no clone, or a shallow one, whose history does not say which they are.
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
