import { afterEach } from 'vitest';
import { ChildDaemon } from './child-daemon.ts';
import type { TestConfig } from './daemon.ts';

/** The resources that a test file opens, closed after each test in reverse order, also after a failure. */
export function opening(): {
  /** Closes something after the test. */
  later: (close: () => Promise<unknown>) => void;
  /** Starts a part and closes it after the test. */
  started: <T extends { start(): Promise<void>; close(): Promise<void> }>(part: T) => Promise<T>;
  /** A daemon in a process of its own, ended after the test. */
  child: (config: TestConfig, nodeArgs?: readonly string[], within?: readonly string[]) => ChildDaemon;
} {
  const open: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of open.splice(0).reverse()) await close();
  });
  const later = (close: () => Promise<unknown>): void => void open.push(close);
  return {
    later,
    started: async (part) => {
      await part.start();
      later(() => part.close());
      return part;
    },
    child: (config, nodeArgs = [], within = []) => {
      const daemon = new ChildDaemon(config, nodeArgs, within);
      later(() => daemon.kill());
      return daemon;
    },
  };
}
