import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { readRecord } from '../../src/store/append-only.ts';
import { EmbeddedRedis } from '../../src/store/embedded.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { redisPid } from '../support/redis-pid.ts';

const { later } = opening();

test('a start that fails again and again for one reason is reported once, and anew after a success', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-test-restart-'));
  later(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const [attempts, failure] = [join(folder, 'attempts'), join(folder, 'failure')];
  const real = (await promisify(execFile)('which', ['redis-server'])).stdout.trim();
  // The user of many containers can write to any folder: a script fails in the place of the server.
  const script = `#!/bin/sh\necho >> ${attempts}\ncat ${failure} 2>/dev/null && exit 1\nexec ${real} "$@"\n`;
  await writeFile(join(folder, 'redis-server'), script, { mode: 0o700 });
  const path = process.env.PATH;
  process.env.PATH = `${folder}:${path}`;
  later(async () => {
    process.env.PATH = path;
  });
  const countOf = async (): Promise<number> => (await readFile(attempts)).length;

  const troubles: string[] = [];
  const dataDir = join(folder, 'data');
  const redis = new EmbeddedRedis({
    dataDir,
    onTrouble: (reason) => troubles.push(reason),
    onTruncated: () => undefined,
    onGaps: () => undefined,
  });
  later(() => redis.close());
  await redis.takeFolder();
  await redis.start();
  const socket = join(dataDir, 'redis.sock');

  const failWith = async (reason: string): Promise<void> => {
    await writeFile(`${failure}.new`, `1:M 28 Nov 2026 10:00:00.000 # ${reason}\n`);
    await rename(`${failure}.new`, failure);
  };
  /** Ends the server, has some starts fail for each reason, and then one succeed. */
  const failFor = async (reasons: readonly string[]): Promise<void> => {
    const pid = await redisPid(socket);
    await failWith(reasons[0] ?? '');
    process.kill(pid, 'SIGKILL');
    for (const reason of reasons) {
      await failWith(reason);
      const before = await countOf();
      await eventually('some starts have failed', async () => (await countOf()) >= before + 4);
    }
    // Written at the end of a start.
    await rm(join(dataDir, 'redis-written.json'));
    await rm(failure);
    await eventually('a start succeeds', async () => (await readRecord(dataDir)) !== null);
  };
  const READ_ONLY = "Can't open or create append-only dir appendonlydir: Read-only file system";
  await failFor([READ_ONLY, 'another reason']);
  await failFor([READ_ONLY]);
  const again = expect.stringContaining('starting it again');
  const readOnly = expect.stringContaining(READ_ONLY);
  expect(troubles).toEqual([again, readOnly, expect.stringContaining('another reason'), again, readOnly]);
});
