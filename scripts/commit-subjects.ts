import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

export const LONGEST_SUBJECT = 72;

/** File whose first commit is the last unchecked one. */
const SELF = 'scripts/commit-subjects.ts';

/** Finds later commits with a too long subject, as id and subject. Empty without a full clone, whose history identifies them. */
export async function longSubjects(root: string): Promise<string[]> {
  const git = async (...args: string[]): Promise<string> =>
    (await run('git', args, { cwd: root })).stdout.trim();
  if ((await git('rev-parse', '--is-shallow-repository').catch(() => '')) !== 'false') return [];
  const added = (await git('log', '--diff-filter=A', '--format=%H', '--', SELF)).split('\n').at(-1) ?? '';
  if (added === '') return [];
  const commits = await git('log', '--format=%h %s', `${added}..HEAD`);
  return commits.split('\n').filter((line) => line.slice(line.indexOf(' ') + 1).length > LONGEST_SUBJECT);
}
