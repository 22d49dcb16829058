import { ConfigError, renderProblems } from './config/file/errors.ts';
import { printableLine } from './notifiers/printable.ts';
import { EmbeddedRedisError } from './store/embedded.ts';
import { UpstreamFailure } from './upstream/client/failure.ts';

/** The exit codes of every command. */
export const EXIT = { done: 0, failed: 1, tryAgain: 75, badConfig: 78, interrupted: 130 } as const;

/** No list of what was expected is longer. */
const LONGEST_LINE = 20_000;

/** What a command needs does not answer now, and may later. */
export class TryAgainError extends Error {
  override readonly name = 'TryAgainError';
}

/** Says on stderr why a command failed, in words for its user, and returns the exit code. */
export function reportFailure(error: unknown): number {
  if (error instanceof ConfigError) {
    process.stderr.write(`${printable(renderProblems(error))}\n`);
    return EXIT.badConfig;
  }
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`intentwatch: ${printable(message)}\n`);
  const passing =
    error instanceof TryAgainError ||
    (error instanceof EmbeddedRedisError && (error.code === 'in-use' || error.code === 'not-running')) ||
    (error instanceof UpstreamFailure && error.retryable);
  return passing ? EXIT.tryAgain : EXIT.failed;
}

/** Lines for a terminal: what they quote from outside cannot move its cursor. */
function printable(text: string): string {
  return text
    .split('\n')
    .map((line) => printableLine(line, LONGEST_LINE))
    .join('\n');
}
