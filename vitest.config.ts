import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files of the first of these take longest, whatever their size. */
const FOLDERS = ['/test/e2e/', '/test/long/', '/test/integration/'];

/** Begins with what takes longest, so that no long file is left over for the end. Where no times are known, size decides. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const found = FOLDERS.findIndex((folder) => moduleId.includes(folder));
      return found === -1 ? FOLDERS.length : found;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/redis-server.ts'],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    pool: 'forks',
    // Each test has servers, folders and Redis keys of its own: files can share a process, which saves its start each time.
    isolate: false,
    // Most tests wait for something to happen most of the time: more of them than processors run at once.
    maxWorkers: 8,
    sequence: { sequencer: LongestFirst },
  },
});
