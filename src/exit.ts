import { ConfigError, renderProblems } from './config/file/errors.ts';
import { messageOf } from './errors.ts';
import { printableLine } from './notifiers/printable.ts';
import { EmbeddedRedisError } from './store/start-failure.ts';
import { refusalSentence, UpstreamFailure } from './upstream/client/failure.ts';

export const EXIT = {
  done: 0,
  failed: 1,
  usage: 64,
  badInput: 65,
  unforeseen: 70,
  tryAgain: 75,
  badConfig: 78,
  interrupted: 130,
} as const;

/** Longest line of a message, such as a list of expected values. */
const LONGEST_LINE = 20_000;

/** A dependency of a command does not answer now, and may later. */
export class TryAgainError extends Error {
  override readonly name = 'TryAgainError';
}

/** An address or credential that a command was given is wrong; a retry does not help. */
export class BadSettingError extends Error {
  override readonly name = 'BadSettingError';
}

/** The input of a command is impossible; a retry does not help. */
export class BadInputError extends Error {
  override readonly name = 'BadInputError';
}

/** Writes to stderr why a command failed, for its user, and returns the exit code. */
export function reportFailure(error: unknown): number {
  if (error instanceof ConfigError) {
    process.stderr.write(`${printable(renderProblems(error))}\n`);
    return EXIT.badConfig;
  }
  const message = messageOf(error);
  process.stderr.write(`intentwatch: ${printable(message)}\n`);
  if (error instanceof BadSettingError) return EXIT.badConfig;
  // A retry with the same key is refused again.
  if (error instanceof UpstreamFailure && refusalSentence(error) !== null) return EXIT.badConfig;
  if (error instanceof BadInputError) return EXIT.badInput;
  const passing =
    error instanceof TryAgainError ||
    (error instanceof EmbeddedRedisError && (error.code === 'in-use' || error.code === 'not-running')) ||
    (error instanceof UpstreamFailure && error.retryable);
  return passing ? EXIT.tryAgain : EXIT.failed;
}

/** Makes lines safe for a terminal: quoted foreign text cannot move its cursor. */
function printable(text: string): string {
  return text
    .split('\n')
    .map((line) => printableLine(line, LONGEST_LINE))
    .join('\n');
}

/** npm passes a Ctrl-C on to a child that the terminal has already notified. Two signals within this span are one key press. */
const SAME_PRESS_MS = 500;

/** Resolves at the first SIGINT or SIGTERM. A second SIGINT exits with code 130. `release` removes the listeners. */
export function interrupted(): { wait: Promise<NodeJS.Signals>; release: () => void } {
  let firstAt: number | null = null;
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  const listen = (signal: NodeJS.Signals): void => {
    if (firstAt === null) {
      firstAt = performance.now();
      resolve(signal);
    } else if (signal === 'SIGINT' && performance.now() - firstAt > SAME_PRESS_MS) {
      process.exit(EXIT.interrupted);
    }
  };
  process.on('SIGINT', listen);
  process.on('SIGTERM', listen);
  return {
    wait: promise,
    release: () => {
      process.off('SIGINT', listen);
      process.off('SIGTERM', listen);
    },
  };
}
