import { EXIT } from './exit.ts';

/** npm passes a Ctrl-C on to a child that the terminal has already told: two signals so close are one key press. */
const SAME_PRESS_MS = 500;

/**
 * Resolves at the first SIGINT or SIGTERM. A second SIGINT ends the process at once with exit code 130; the listeners
 * stay until `release` is called.
 */
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
