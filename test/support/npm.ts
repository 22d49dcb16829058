import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Variables of an outer `npm test` must not steer the npm of a test; those for access to the registry stay. */
const INHERITED =
  /^npm_(?!config_(registry|cache|userconfig|globalconfig|https?_proxy|proxy|noproxy|cafile)$)/i;

/** The environment of this process without the variables that an outer npm sets for its own children. */
export function npmEnvironment(): Record<string, string> {
  const entries = Object.entries(process.env).flatMap(([name, value]) =>
    value === undefined || INHERITED.test(name) ? [] : [[name, value] as const],
  );
  return Object.fromEntries(entries);
}

/** Runs npm to its end; throws with its output when it fails. */
export async function npm(args: readonly string[], cwd: string): Promise<void> {
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--prefer-offline'];
  await promisify(execFile)('npm', [...args, ...quiet], { cwd, env: npmEnvironment() });
}
