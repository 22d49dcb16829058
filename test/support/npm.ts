import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** What an outer `npm test` hands down must not steer the npm of a test; how to reach the registry is stored. */
const INHERITED =
  /^npm_(?!config_(registry|cache|userconfig|globalconfig|https?_proxy|proxy|noproxy|cafile)$)/i;

/** The environment of this process without what an npm around it has set for its own children. */
export function npmEnvironment(): Record<string, string> {
  const entries = Object.entries(process.env).flatMap(([name, value]) =>
    value === undefined || INHERITED.test(name) ? [] : [[name, value] as const],
  );
  return Object.fromEntries(entries);
}

/** Runs npm to its end; throws with what it printed when it fails. */
export async function npm(args: readonly string[], cwd: string): Promise<void> {
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--prefer-offline'];
  await promisify(execFile)('npm', [...args, ...quiet], { cwd, env: npmEnvironment() });
}
